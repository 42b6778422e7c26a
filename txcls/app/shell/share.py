"""A link to exactly the displayed view (`txcls.lessons.page_address`), and its QR code, generated on this machine."""

import base64
import io
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from txcls.app.shell import view_state
from txcls.lessons.page_address import MAX_LINKED_CHARACTERS, View

MAX_IN_CODE = 1800
"""Maximum length of a link in a QR code: the modules of a longer one are too fine for phones in a lecture hall."""
TOO_LONG = "With this text, the link is too long for a QR code that a phone can read."
LOCAL_HOSTS = ("localhost", "127.", "::1")
ONLY_HERE = (
    "A phone cannot open this link, which leads to the phone itself. Open the app by this computer's name or address "
    "in the network instead."
)
"""The warning if the app is open at one of `LOCAL_HOSTS`."""


def share_button(view: View, *, note: str = "") -> None:
    """Draw a button that shows a link to the view and its QR code, with `note` below them."""
    with st.popover("Share", key="share", on_change="rerun", help="Link and QR code to this view") as popover:
        if not popover.open:
            return
        shared = link_and_code(view)
        st.markdown("**A link to exactly this view**")
        st.code(shared["link"], language=None, wrap_lines=True)
        if shared["code"]:
            st.html(f'<div class="txcls-qr"><img alt="QR code of the link above" src="{shared["code"]}"></div>')
        if shared["warning"]:
            st.warning(shared["warning"])
        if len(view.text) > MAX_LINKED_CHARACTERS:
            st.caption(f"The text is longer than {MAX_LINKED_CHARACTERS:,} characters, so it is not in the link.")
        if note:
            st.caption(note)


def link_and_code(view: View) -> dict[str, str]:
    """The link to a view, its QR code ("" if it would be too fine), and what keeps a phone from opening it, or ""."""
    link = link_to(view)
    code, host = qr_code(link) or "", urlsplit(link).hostname or ""
    warning = "" if code else TOO_LONG
    return {"link": link, "code": code, "warning": ONLY_HERE if host.startswith(LOCAL_HOSTS) else warning}


def link_to(view: View) -> str:
    """The URL of the view on the server that this browser has open."""
    shown = urlsplit(st.context.url or "")
    params = view_state.link_params(view)
    if view.mode:
        params.pop("mode", None)
    return urlunsplit((shown.scheme, shown.netloc, shown.path or "/", urlencode(params), ""))


def qr_code(text: str) -> str | None:
    """The QR code of a text as a data URL of an SVG, black on white with a margin; None if it would be too fine."""
    if len(text) > MAX_IN_CODE:
        return None
    svg = io.BytesIO()
    segno.make(text, error="l", micro=False).save(svg, kind="svg", scale=4, border=4, dark="#000", light="#fff")
    return "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode("ascii")
