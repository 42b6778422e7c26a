"""A link and a QR code to exactly the view that is shown, made on this machine."""

import base64
import io
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from txcls.app.shell import loading, state

MOST_IN_CODE = 1800
"""Longest link in a QR code: longer ones are possible, but phones fail to read their fine squares from a wall."""


def button(view: state.View) -> None:
    """A button that opens a link to the view and its QR code."""
    with st.popover("Share", key="share", on_change="rerun", help="Link and QR code to this view") as opened:
        if not opened.open:
            return
        if loading.is_own_name(view.checkpoint):
            st.markdown(
                "This classifier is seen by you alone: a link to it opens nothing for others. Pass it on as a zip, or "
                "as a page without a server (both on the page Train)."
            )
            return
        link = link_to(view)
        st.markdown("**A link to exactly this view**")
        st.code(link, language=None, wrap_lines=True)
        picture = qr_code(link)
        if picture is None:
            st.caption("With this text the link is too long for a QR code that a phone can read.")
        else:
            st.html(f'<div class="txcls-qr"><img alt="QR code of the link above" src="{picture}"></div>')
        if len(view.text) > state.LONGEST_LINKED_TEXT:
            st.caption(f"The text is longer than {state.LONGEST_LINKED_TEXT:,} characters and is not in the link.")


def link_to(view: state.View) -> str:
    """The address of the view on the server that this browser has open."""
    shown = urlsplit(st.context.url or "")
    params = state.link_params(view)
    if view.mode:
        params.pop("mode", None)
    return urlunsplit((shown.scheme, shown.netloc, shown.path or "/", urlencode(params), ""))


def qr_code(text: str) -> str | None:
    """The QR code of a text as a data URL of an SVG, black on white with its margin; None if it would be too fine."""
    import segno

    if len(text) > MOST_IN_CODE:
        return None
    made = io.BytesIO()
    segno.make(text, error="l", micro=False).save(made, kind="svg", scale=4, border=4, dark="#000", light="#fff")
    return "data:image/svg+xml;base64," + base64.b64encode(made.getvalue()).decode("ascii")
