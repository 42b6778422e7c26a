"""The server around the pages: checks its settings, accepts no file, redirects old addresses, frees memory, and sends
the playground the pre-trained encoder."""

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime import RuntimeState

from txcls.app.classroom import rooms
from txcls.app.shell.limits import free_when_idle, limits, return_freed_memory
from txcls.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from txcls.web.encoder import BrowserEncoder

POLL_SECONDS = 10.0
"""Seconds between two checks whether anybody is connected."""
N_PASSES = 3
"""Number of times that memory is returned after the last session has ended: its last run may still be ending."""
METHODS = ("GET", "HEAD", "OPTIONS")
"""The methods that requests may have, except small messages to a class; their bodies are not read."""
UPLOAD_PATH = "/_stcore/upload_file"
"""Path of Streamlit's endpoint for files, which it opens even if no page has an uploader."""
ENCODER = "encoder"
"""Path of the pre-trained encoder, below the app's URL."""
YEAR = 365 * 24 * 3600


def check_settings() -> None:
    """Exit with a message if a setting of the host is invalid."""
    try:
        limits()
    except ConfigError as error:
        sys.exit(f"The app does not start. {error}")


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Prepare the process and start its background task before the server answers."""
    return_freed_memory()
    freeing = asyncio.create_task(_free_memory_after_the_last_visit())
    yield
    freeing.cancel()


async def _free_memory_after_the_last_visit() -> None:
    """Return memory to the system whenever the last session has ended, even if nobody comes back."""
    passes = 0
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if _has_sessions():
            passes = N_PASSES
        elif passes:
            passes -= 1
            free_when_idle()


def _has_sessions() -> bool:
    """Whether a visitor is connected, or has left so recently that Streamlit keeps the session for a reconnect.

    Streamlit removes sessions that have expired only when it stores another one; here they are removed.
    """
    if not runtime.exists():
        return False
    instance = runtime.get_instance()
    left = instance._session_mgr._session_storage._cache  # type: ignore[attr-defined]  # not public
    left.expire()
    return instance.state is not RuntimeState.NO_SESSIONS_CONNECTED or len(left) > 0


class AcceptsNoFiles:
    """Middleware that refuses every request that could carry a file, before any of its body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse methods other than `METHODS`, except in messages to a class, and all requests to `UPLOAD_PATH`."""
        is_other = scope["type"] != "http" or rooms.is_message(scope)
        if is_other or (scope["method"] in METHODS and UPLOAD_PATH not in scope["path"]):
            return await self.app(scope, receive, send)
        headers = {"Connection": "close"}  # the rest of the body is not received either
        refusal = PlainTextResponse("This server accepts no files.", status_code=405, headers=headers)
        await refusal(scope, receive, send)


def encoder_address() -> str | None:
    """The encoder's address relative to the app's pages, with its hash; None if there is no readable encoder."""
    encoder = _encoder()
    return None if encoder is None else f"{ENCODER}/{encoder.hash}"


async def _send_encoder(request: Request) -> Response:
    """Send the encoder; browsers keep it, since its address changes with it."""
    encoder = await run_in_threadpool(_encoder)
    if encoder is None or request.path_params["hash"] != encoder.hash:
        return PlainTextResponse("The encoder is no longer at this address. Reload the page.", status_code=404)
    headers = {"Cache-Control": f"public, max-age={YEAR}, immutable", "X-Content-Type-Options": "nosniff"}
    content = encoder.content
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        content = await run_in_threadpool(_compressed, encoder)
        headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(content, media_type="application/octet-stream", headers=headers)


@lru_cache(maxsize=1)
def _compressed(encoder: "BrowserEncoder") -> bytes:
    """The encoder compressed once; Streamlit would compress it for each visitor, and answer nobody meanwhile."""
    return gzip.compress(encoder.content, 6)


def _encoder() -> "BrowserEncoder | None":
    from txcls.web.encoder import browser_encoder  # imports torch, which the server does not need to start

    try:
        return browser_encoder()
    except CheckpointError:
        return None


_BASE = f"/{st.get_option('server.baseUrlPath').strip('/')}".rstrip("/")
MIDDLEWARE = [Middleware(AcceptsNoFiles)]
ROUTES = [
    Route(f"{_BASE}/{ENCODER}/{{hash}}", _send_encoder),
    *rooms.ROUTES,
]
