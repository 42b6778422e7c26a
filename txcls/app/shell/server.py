"""The server around the pages: checks its settings, deletes old sessions, serves files, frees memory."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit import runtime
from streamlit.runtime import RuntimeState

from txcls.app.jobs import queue, sessions
from txcls.app.shell import downloads, encoder_file, memory
from txcls.app.shell.limits import limits
from txcls.app.shell.partitioned_cookies import PartitionedCookies
from txcls.app.shell.upload_guard import BoundedUploads
from txcls.errors import ConfigError

IDLE_SECONDS = 120.0
"""Time without connections after which nobody is expected to reconnect; Streamlit keeps sessions for the same time."""


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
    memory.on_idle(_forget_sessions)
    sessions.start_sweeping(queue.busy_seconds)
    freeing = asyncio.create_task(_free_memory_when_idle())
    yield
    freeing.cancel()


async def _free_memory_when_idle() -> None:
    """Return memory to the system once nobody has been connected for `IDLE_SECONDS`."""
    since = None
    while True:
        await asyncio.sleep(IDLE_SECONDS / 12)
        is_empty = runtime.exists() and runtime.get_instance().state is RuntimeState.NO_SESSIONS_CONNECTED
        if not is_empty:
            since = time.monotonic()  # from now on there may be memory to return
        elif since is not None and time.monotonic() - since > IDLE_SECONDS:
            memory.free_when_idle()
            since = None


def _forget_sessions() -> None:
    """Remove the sessions of visitors who did not come back; Streamlit only does so when it stores another one."""
    with suppress(AttributeError):  # the storage is not public
        runtime.get_instance()._session_mgr._session_storage._cache.expire()  # type: ignore[attr-defined]


MIDDLEWARE = [Middleware(BoundedUploads), Middleware(PartitionedCookies)]
BASE_PATH = st.get_option("server.baseUrlPath").strip("/")
ROUTES = [
    Route(f"/{BASE_PATH}/{address}".replace("//", "/"), send, methods=["GET"])
    for address, send in (
        (f"{downloads.ADDRESS}/{{link}}", downloads.send),
        (f"{encoder_file.ADDRESS}/{{hash}}", encoder_file.send),
    )
]
