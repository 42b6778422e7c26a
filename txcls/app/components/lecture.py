"""Lecture mode in the browser: the keys that turn slides, steps and pages, and the bar below the slides."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.app.components.register import register

STYLE_SHEET = Path(__file__).parent / "lecture_page.css"
"""Lecture mode's changes to the page itself."""
_KEY = "lecture"
_bar = register("lecture")


def bar_and_keys(data: Mapping[str, Any], *, on_mode: Callable[[], None], on_turn: Callable[[int], None]) -> None:
    """Handle F9, PageDown and PageUp; in lecture mode show one slide, and a bar with its position.

    Args:
        data: the page's data from `txcls.app.shell.lecture.end`.
        on_mode: called before the next run of the page when lecture mode is switched.
        on_turn: called before the next run with 1 or -1 when the page is turned.
    """

    def turned() -> None:
        by = st.session_state[_KEY]["turn"]
        if by in (1, -1):
            on_turn(int(by))

    _bar(data=dict(data), key=_KEY, on_mode_change=on_mode, on_turn_change=turned)
