"""A Transformer that trains in the visitor's browser: the page of txcls/web/playground.py in a frame."""

import streamlit as st

from txcls.app import menu
from txcls.app.shell import layout, lecture
from txcls.app.shell.encoder_file import encoder_address
from txcls.web.playground import playground

HEIGHT = 1700
"""Height of the frame in pixels until its page has set its own."""


def main() -> None:
    """Draw the page."""
    layout.open_plain_page(menu.PLAYGROUND)
    page, framed = playground(), playground(encoder_address())
    st.html(
        "<style>.st-key-playground :has(> iframe) {height: auto !important; flex: none !important}</style>"
    )  # the page sets its own height
    with st.container(key="playground"):
        st.iframe(framed.decode(), height=HEIGHT)
    st.download_button(
        "Download this page", page, file_name="playground.html", mime="text/html", help="One file that needs no server"
    )
    lecture.end()


if __name__ == "__main__":
    main()
