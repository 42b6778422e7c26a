"""The server around the pages: check its settings, sweep old sessions, bound uploads, serve files, return memory."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime import RuntimeState
from streamlit.runtime.stats import CacheStat

from txcls.app.jobs import queue, sessions
from txcls.app.shell import downloads, memory
from txcls.app.shell.limits import limits
from txcls.errors import ConfigError

UPLOADS = "/_stcore/upload_file/"
"""URL path to which browsers send files; session and file id follow."""
MAX_UPLOADS = 4
"""Number of files of the maximum size that fit into the memory for all uploads together."""
UPLOAD_SECONDS = 120.0
"""Maximum time for a file to arrive."""
FORM_BYTES = 64 << 10
"""Allowance for the form data that a browser sends around a file."""
REST_SECONDS = 120.0
"""Time without connections after which nobody is expected to reconnect; Streamlit keeps sessions equally long."""


def check_settings() -> None:
    """Exit with a message if a setting of the host is invalid."""
    try:
        limits()
        sessions.root()
    except ConfigError as error:
        sys.exit(f"The app does not start. {error}")


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Prepare the process and start its background tasks before the server answers."""
    memory.return_freed_memory()
    sessions.start_sweeping(queue.busy_seconds)
    resting = asyncio.create_task(_rest_while_nobody_is_here())
    yield
    resting.cancel()


async def _rest_while_nobody_is_here() -> None:
    """Return memory to the system once nobody has been connected for `REST_SECONDS`."""
    since = None
    while True:
        await asyncio.sleep(REST_SECONDS / 12)
        is_empty = runtime.exists() and runtime.get_instance().state is RuntimeState.NO_SESSIONS_CONNECTED
        if not is_empty:
            since = time.monotonic()  # from now on there may be memory to return
        elif since is not None and time.monotonic() - since > REST_SECONDS:
            memory.rest()
            since = None


class BoundedUploads:
    """Middleware that bounds the files that Streamlit holds in memory until a page moves them to disk.

    A session's new file replaces its previous one; all sessions share room for `MAX_UPLOADS` files of maximum size.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.arriving = 0  # bytes of the uploads in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse an upload that exceeds the limits; pass all other requests on."""
        session, is_upload, _ = scope.get("path", "").partition(UPLOADS)[2].partition("/")
        if scope["type"] != "http" or scope["method"] != "PUT" or not is_upload:
            return await self.app(scope, receive, send)
        size = dict(scope["headers"]).get(b"content-length", b"")
        most = limits().upload_megabytes << 20
        if not limits().uploads:
            return await _refuse(403, "Uploads are switched off here", scope, receive, send)
        if not size.isdigit():
            return await _refuse(411, "An upload must say how long it is", scope, receive, send)
        if int(size) > most + FORM_BYTES:
            return await _refuse(413, f"A file may have {limits().upload_megabytes} MB here", scope, receive, send)
        files = runtime.get_instance().uploaded_file_mgr
        files.remove_session_files(session)
        held = sum(
            stat.byte_length for stats in files.get_stats().values() for stat in stats if isinstance(stat, CacheStat)
        )
        if held + self.arriving + int(size) > MAX_UPLOADS * most:
            message = "Too many files are being uploaded; try again in a minute"
            return await _refuse(503, message, scope, receive, send)
        self.arriving += int(size)
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                await self.app(scope, receive, send)
        except TimeoutError:
            await _refuse(408, "The upload took too long", scope, receive, send)
        finally:
            self.arriving -= int(size)


async def _refuse(status: int, message: str, scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(message, status_code=status)(scope, receive, send)


MIDDLEWARE = [Middleware(BoundedUploads)]
ROUTES = [Route(f"{st.get_option('server.baseUrlPath').rstrip('/')}/{downloads.ADDRESS}/{{link}}", downloads.send)]
