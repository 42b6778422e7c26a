"""Cookies in a frame of another site."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

XSRF_COOKIE = b"_streamlit_xsrf="
"""The start of the cookie that a browser must send back with an upload; Streamlit refuses it otherwise."""
CROSS_SITE = b"SameSite=None"
"""The cookie's attribute with `server.xsrfCookieSameSite=none`, for hosts that show the app in another site's frame."""


class PartitionedCookies:
    """Middleware that partitions the XSRF cookie by the site around the frame, if it is meant for such frames.

    In a frame, browsers that block third-party cookies, such as Chromium in a private window, accept only partitioned
    ones.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the attribute to the cookie in an answer's headers."""

        async def send_partitioned(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [(name, _partitioned(value)) for name, value in message["headers"]]
            await send(message)

        await self.app(scope, receive, send_partitioned if scope["type"] == "http" else send)


def _partitioned(value: bytes) -> bytes:
    return value + b"; Partitioned" if value.startswith(XSRF_COOKIE) and CROSS_SITE in value else value
