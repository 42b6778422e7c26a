"""Lecture mode in the browser: the keys that move between slides, steps and pages, and the bar below the slides."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.app.components.register import register, reported

STYLE_SHEET = Path(__file__).parent / "lecture_page.css"
"""Lecture mode's changes to the page itself."""
IN_SMALL_WINDOW = "_small_window"
"""The session key that records whether the browser's window is small."""
_KEY = "lecture"
_bar = register("lecture")


def bar_and_keys(
    data: Mapping[str, Any],
    *,
    on_mode: Callable[[], None],
    on_turn: Callable[[int], None],
    on_jump: Callable[[str], None],
) -> None:
    """Handle F9, PageDown and PageUp; in lecture mode show one slide, and a bar with its position.

    Args:
        data: the page's data from `txcls.app.shell.lecture.end`.
        on_mode: called before the next run of the page when lecture mode is switched.
        on_turn: called before the next run with 1 or -1 when the visitor goes past the last or first slide.
        on_jump: called before the next run with the selected target of the menu or the map: the name of a page, a
            classifier or a part of the architecture, or the index of a step of a lesson.
    """

    def turned() -> None:
        offset = reported(_KEY, "turn")
        if offset in (1, -1):
            on_turn(int(offset))

    def resized() -> None:
        if (is_small := reported(_KEY, "small")) is not None:
            st.session_state[IN_SMALL_WINDOW] = bool(is_small)

    def jumped() -> None:
        if target := reported(_KEY, "target"):
            on_jump(str(target))

    _bar(
        data=dict(data),
        key=_KEY,
        on_mode_change=on_mode,
        on_turn_change=turned,
        on_target_change=jumped,
        on_small_change=resized,
    )
