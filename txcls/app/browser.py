"""Small pieces of browser code that Streamlit has no command for: typing that answers, charts that save, tokens to
click, words to drag, scrolling by keyboard."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.app.limits import limits

_FOLDER = Path(__file__).parent / "browser_code"


def _component(name: str, **parts: str) -> Any:
    """A component of these files, by kind (js, html, css); several of a kind stand one after the other."""
    sources: dict[str, Any] = {
        kind: "".join((_FOLDER / file).read_text(encoding="utf-8") for file in files.split())
        for kind, files in parts.items()
    }
    return st.components.v2.component(f"txcls_{name}", **sources)


_live = _component("live_text", js="live_text.js")
_cell = _component("cell_click", js="cell_click.js")
_save = _component("save_chart", html="save_chart.html", js="save_chart.js", css="save_chart.css")
_order = _component("word_order", html="word_order.html", js="word_order.js", css="strip.css word_order.css")
_scrollers = _component("scrollers", js="scrollers.js")
_strip = _component("token_strip", html="token_strip.html", js="token_strip.js", css="strip.css token_strip.css")


@dataclass(frozen=True, slots=True)
class StripToken:
    """A token of a strip.

    Attributes:
        text: what is on it; must be fit to be shown (`txcls.figures.visible`).
        number: what a click on it sends; None for a token that cannot be chosen.
        title: shown while the pointer rests on it.
        kind: how it looks: "", "fixed" (added by the model), "unknown", "added" (to the text), "later" (not read).
        pressed: whether it is the chosen one.
        shade: 0 to 1, how strongly it is coloured.
    """

    text: str
    number: int | None
    title: str = ""
    kind: str = ""
    pressed: bool = False
    shade: float = 0.0


def token_strip(tokens: Sequence[StripToken], *, label: str, key: str, on_choose: Callable[[int], None]) -> None:
    """Tokens in a row, as buttons; `on_choose` is told the number of the one that was clicked, before the next run."""

    def chosen() -> None:
        number = st.session_state[key]["chosen"]
        if isinstance(number, int):
            on_choose(number)

    _strip(data={"label": label, "tokens": [asdict(token) for token in tokens]}, key=key, on_chosen_change=chosen)


def draggable_words(
    words: Sequence[str], order: Sequence[int], *, label: str, key: str, on_order: Callable[[tuple[int, ...]], None]
) -> None:
    """The words, fit to be shown, in an order that visitors change; `on_order` is told theirs before the next run."""

    def moved() -> None:
        told = st.session_state[key]["order"] or ()
        if sorted(told) == list(range(len(words))):
            on_order(tuple(int(number) for number in told))

    shown = [{"number": number, "text": words[number]} for number in order]
    _order(data={"label": label, "words": shown}, key=key, on_order_change=moved)


def answer_while_typing(key_start: str, *, text: str, pause_ms: int = 250) -> None:
    """Have the text area whose key starts so hand its text over after each pause in typing, as Ctrl+Enter would.

    `text` is what has arrived of it: what was typed when the connection broke is handed over after it is back. Of
    longer texts, in any box, one character more than is read is handed over, so that the app can say so.
    """
    data = {"key": key_start, "text": text, "pause": pause_ms, "most": limits().characters}
    _live(data=data, key=f"live_{key_start}", on_back_change=_nothing)


def _nothing() -> None:
    """What a run that the browser asks for after a broken connection does beside drawing the page."""


def scroll_by_keyboard() -> None:
    """Make whatever scrolls on the page (formulas, tables, lists) a tab stop with a name."""
    _scrollers(key="scrollers")


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
