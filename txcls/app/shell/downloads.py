"""Links to files of a visitor's session, which a route of the server sends from disk.

Streamlit's download button would keep the whole file in the app's memory as long as a page shows it. A link here
contains a random key, which gives access to one file, and to nothing else in the session, while the process runs.
"""

import html
import secrets
import threading
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from txcls.app.jobs.sessions import on_removal

ADDRESS = "files"
"""Path of the links, below the app's URL."""
MAX_LINKS = 10_000
"""Maximum number of valid links; the oldest expire first."""
_links: dict[str, tuple[Path, str]] = {}
_lock = threading.Lock()


def download_link(label: str, path: Path, *, name: str, key: str, is_primary: bool = False) -> None:
    """Draw a link that looks like a button and downloads a file as `name`."""
    links: dict[Path, str] = st.session_state.setdefault("_downloads", {})
    link = links.setdefault(path, secrets.token_urlsafe(24))
    with _lock:
        _links[link] = (path, name)
        while len(_links) > MAX_LINKS:
            del _links[next(iter(_links))]
    style = "txcls-download primary" if is_primary else "txcls-download"
    st.html(f'<a class="{style}" id="{key}" href="{ADDRESS}/{link}" download>{html.escape(label)}</a>', width="content")


async def send(request: Request) -> Response:
    """Send the file of a link."""
    with _lock:
        path, name = _links.get(request.path_params["link"], (None, ""))
    if path is None or not path.is_file():
        return PlainTextResponse("This file is no longer here. Reload the page that the link is on.", status_code=404)
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return FileResponse(path, filename=name, media_type="application/octet-stream", headers=headers)


def _forget(session: Path) -> None:
    with _lock:
        for link in [link for link, (path, _) in _links.items() if session in path.parents]:
            del _links[link]


on_removal(_forget)
