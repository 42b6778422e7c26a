"""A Transformer that trains in the visitor's browser: the page of txcls/web/playground.py in a frame."""

import streamlit as st

from txcls.app import menu
from txcls.app.shell import layout, lecture
from txcls.app.shell.server import encoder_address
from txcls.web.playground import playground

HEIGHT = 1700
"""Height of the frame in pixels until its page has set its own."""
FRAME = ".st-key-playground :has(> iframe) {height: auto !important; flex: none !important}"
"""The page sets the frame's height."""
SLIDE = """
.st-key-playground {position: fixed; inset: 0 0 var(--lecture-bar); z-index: 1; visibility: visible}
.st-key-playground iframe {height: calc(100vh - var(--lecture-bar)) !important; visibility: visible}
"""
"""In lecture mode, the frame fills the window, and its page is a slide of its own (playground.css)."""


def main() -> None:
    """Draw the page."""
    layout.open_plain_page(menu.PLAYGROUND)
    if not lecture.is_on():
        st.container()  # lecture mode has one for notes; so the frame keeps its place, and its page is not loaded again
    page, framed = playground(), playground(encoder_address())
    st.html(f"<style>{SLIDE if lecture.is_on() else FRAME}</style>")
    with st.container(key="playground"):
        st.iframe(framed.decode(), height=HEIGHT)
    st.download_button(
        "Download an empty playground", page, file_name="playground.html", mime="text/html", help="One file, no server"
    )
    lecture.end()


if __name__ == "__main__":
    main()
