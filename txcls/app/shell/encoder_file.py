"""The pre-trained encoder as a file of the app, the same for all visitors, which the page of the playground fetches."""

import gzip
from functools import lru_cache
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from txcls.errors import CheckpointError

if TYPE_CHECKING:
    from txcls.web.encoder import BrowserEncoder

ADDRESS = "encoder"
"""Path of the file, below the app's URL."""
YEAR = 365 * 24 * 3600


def encoder_address() -> str | None:
    """The encoder's address relative to the app's pages, with its hash; None if there is no readable encoder."""
    encoder = _encoder()
    return None if encoder is None else f"{ADDRESS}/{encoder.hash}"


async def send(request: Request) -> Response:
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
    from txcls.web.encoder import browser_encoder  # torch, which the server's start does without

    try:
        return browser_encoder()
    except CheckpointError:
        return None
