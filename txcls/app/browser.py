"""Small pieces of browser code for what Streamlit has no command for; they work on what is already on the page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

_FOLDER = Path(__file__).parent / "browser_code"


def _component(name: str, **parts: str) -> Any:
    sources: dict[str, Any] = {kind: (_FOLDER / file).read_text(encoding="utf-8") for kind, file in parts.items()}
    return st.components.v2.component(f"txcls_{name}", **sources)


_live = _component("live_text", js="live_text.js")
_cell = _component("cell_click", js="cell_click.js")
_save = _component("save_chart", html="save_chart.html", js="save_chart.js", css="save_chart.css")


def answer_while_typing(key_start: str, *, pause_ms: int = 250) -> None:
    """Have the text area whose key starts so hand its text over after each pause in typing, as Ctrl+Enter would."""
    _live(data={"key": key_start, "pause": pause_ms}, key=f"live_{key_start}")


def save_buttons(chart_key: str, *, file_name: str) -> None:
    """Two buttons that save the plotly chart of that key as it stands on the page, drawn by the browser itself."""
    _save(data={"key": chart_key, "file": file_name}, key=f"save_{chart_key}")


def listen_to_cells(chart_key: str, clicked: Callable[[int, int], None]) -> None:
    """Call `clicked` with row and column (from 0) of each cell that is clicked in the heat map of that key."""
    key = f"cells_{chart_key}"

    def tell() -> None:
        cell = st.session_state[key]["cell"]
        if cell:
            clicked(int(cell[0]), int(cell[1]))

    _cell(data={"key": chart_key}, key=key, on_cell_change=tell)
