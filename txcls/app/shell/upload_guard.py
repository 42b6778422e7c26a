"""The limits on uploaded files, enforced before Streamlit reads them."""

import asyncio

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.stats import CacheStat

from txcls.app.shell.limits import limits

UPLOAD_PATH = "/_stcore/upload_file/"
"""URL path to which browsers send files, before the session and the file id."""
MAX_UPLOADS = 4
"""Number of files of the maximum size that fit into the memory for all uploads together."""
UPLOAD_SECONDS = 120.0
"""Maximum time for a file to arrive."""
FORM_BYTES = 64 << 10
"""Allowance for the form data that a browser sends around a file."""


class BoundedUploads:
    """Middleware that bounds the files that Streamlit holds in memory until a page moves them to disk.

    A session's new file replaces its previous one; all sessions share room for `MAX_UPLOADS` files of maximum size.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.arriving = 0  # bytes of the uploads in progress

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse an upload that exceeds the limits; pass all other requests on."""
        session, is_upload, _ = scope.get("path", "").partition(UPLOAD_PATH)[2].partition("/")
        if scope["type"] != "http" or scope["method"] != "PUT" or not is_upload:
            return await self.app(scope, receive, send)
        size = dict(scope["headers"]).get(b"content-length", b"")
        limit = limits().upload_megabytes << 20
        if not limits().uploads:
            return await _refuse(403, "Uploads are switched off here", scope, receive, send)
        if not size.isdigit():
            return await _refuse(411, "An upload must have a Content-Length", scope, receive, send)
        if int(size) > limit + FORM_BYTES:
            message = f"A file may have at most {limits().upload_megabytes} MB here"
            return await _refuse(413, message, scope, receive, send)
        files = runtime.get_instance().uploaded_file_mgr
        files.remove_session_files(session)
        held = sum(
            stat.byte_length for stats in files.get_stats().values() for stat in stats if isinstance(stat, CacheStat)
        )
        if held + self.arriving + int(size) > MAX_UPLOADS * limit:
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
