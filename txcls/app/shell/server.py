"""The server around the pages: checks its settings, accepts no file, redirects old addresses, frees memory."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime import RuntimeState

from txcls.app import menu
from txcls.app.classroom import rooms
from txcls.app.shell import encoder_file, memory
from txcls.app.shell.limits import limits
from txcls.errors import ConfigError

POLL_SECONDS = 10.0
"""Seconds between two looks at whether anybody is here."""
N_PASSES = 3
"""Number of times that memory is returned after the last session has ended: its last run may still be ending."""
METHODS = ("GET", "HEAD", "OPTIONS")
"""The methods of all requests whose body is not read; only a small message to a class has another."""
UPLOAD_PATH = "/_stcore/upload_file"
"""Path of Streamlit's endpoint for files, which it opens even if no page has an uploader."""
OLD_PAGES = ("train", "batch")
"""Addresses of earlier pages, which lead to the playground."""


def check_settings() -> None:
    """Exit with a message if a setting of the host is invalid."""
    try:
        limits()
    except ConfigError as error:
        sys.exit(f"The app does not start. {error}")


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Prepare the process and start its background task before the server answers."""
    memory.return_freed_memory()
    freeing = asyncio.create_task(_free_memory_after_the_last_visit())
    yield
    freeing.cancel()


async def _free_memory_after_the_last_visit() -> None:
    """Return memory to the system whenever the last session has ended, also if nobody comes again."""
    passes = 0
    while True:
        await asyncio.sleep(POLL_SECONDS)
        if _has_sessions():
            passes = N_PASSES
        elif passes:
            passes -= 1
            memory.free_when_idle()


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
        """Refuse methods other than `METHODS`, but for messages to a class, and all requests to `UPLOAD_PATH`."""
        is_other = scope["type"] != "http" or rooms.is_message(scope)
        if is_other or (scope["method"] in METHODS and UPLOAD_PATH not in scope["path"]):
            return await self.app(scope, receive, send)
        headers = {"Connection": "close"}  # the rest of the body is not received either
        refusal = PlainTextResponse("This server accepts no files.", status_code=405, headers=headers)
        await refusal(scope, receive, send)


async def _to_playground(request: Request) -> Response:
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{_BASE}/{menu.PLAYGROUND.name}{query}", status_code=308)


_BASE = f"/{st.get_option('server.baseUrlPath').strip('/')}".rstrip("/")
MIDDLEWARE = [Middleware(AcceptsNoFiles)]
ROUTES = [
    *(Route(f"{_BASE}/{name}", _to_playground) for name in OLD_PAGES),
    Route(f"{_BASE}/{encoder_file.ADDRESS}/{{hash}}", encoder_file.send),
    *rooms.ROUTES,
]
