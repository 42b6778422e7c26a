"""The components of this folder: browser code for what Streamlit lacks, and what it reports to the server.

Callbacks run before the next run of the page.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from txcls.app.shell.limits import limits
from txcls.web.assemble import script, style

FOLDER = Path(__file__).parent
LECTURE_STYLE_SHEET = FOLDER / "lecture_page.css"
"""Lecture mode's changes to the page itself."""
IN_SMALL_WINDOW = "_small_window"
"""The session key that records whether the browser's window is small."""
PAUSE_MS = 250
"""Milliseconds without a key press after which a text is submitted."""
MAX_ANSWERS = 100_000
"""Maximum length of a lesson's stored answers, in characters."""


@cache
def register(name: str, *, modules: tuple[str, ...] = (), sheets: tuple[str, ...] = ()) -> Any:
    """The component made of NAME.js, and of NAME.html and NAME.css if they exist.

    `modules` and `sheets` of `txcls.web` are put before them, and the shared button style before all style sheets.
    """
    files = {kind: FOLDER / f"{name}.{kind}" for kind in ("html", "js", "css")}
    sources: dict[str, Any] = {kind: file.read_text("utf-8") for kind, file in files.items() if file.exists()}
    sources["js"] = script(*modules) + sources["js"]
    if "css" in sources:
        sources["css"] = style("picture/buttons", *sheets) + sources["css"]
    return st.components.v2.component(f"txcls_{name}", **sources)


def reported(key: str, name: str) -> Any:
    """What the component with this key has reported under a name; None if nothing.

    A callback may run when its value is already gone, for example after a key press while the next page is loading.
    """
    return st.session_state.get(key, {}).get(name)


def listen_to_cells(chart_key: str, on_click: Callable[[int, int], None]) -> None:
    """Call `on_click` with row and column, from 0, of each clicked cell of the heat map with this key.

    A click on a bar gives the bar's `customdata` (an index) and 0. Streamlit only reports clicks on points.
    """
    key = f"cells_{chart_key}"

    def report_click() -> None:
        if cell := reported(key, "cell"):
            on_click(int(cell[0]), int(cell[1]))

    register("cell_click")(data={"key": chart_key}, key=key, on_cell_change=report_click)


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
        on_mode: called when lecture mode is switched.
        on_turn: called with 1 or -1 when the visitor goes past the last or first slide.
        on_jump: called with the selected target of the menu or the map: the name of a page, a classifier or a part of
            the architecture, or the index of a step of a lesson.
    """
    key = "lecture"

    def turned() -> None:
        offset = reported(key, "turn")
        if offset in (1, -1):
            on_turn(int(offset))

    def resized() -> None:
        if (is_small := reported(key, "small")) is not None:
            st.session_state[IN_SMALL_WINDOW] = bool(is_small)

    def jumped() -> None:
        if target := reported(key, "target"):
            on_jump(str(target))

    register("lecture")(
        data=dict(data),
        key=key,
        on_mode_change=on_mode,
        on_turn_change=turned,
        on_target_change=jumped,
        on_small_change=resized,
    )


def store_answers(name: str, answers: Mapping[str, Any] | None, *, on_restore: Callable[[str], None]) -> None:
    """Store a lesson's answers in the browser; if None, call `on_restore` with those of an earlier visit, if any.

    Empty answers delete the stored ones.
    """
    key = f"lesson_answers_{name}"

    def restore() -> None:
        stored = reported(key, "stored")
        if isinstance(stored, str) and len(stored) <= MAX_ANSWERS:
            on_restore(stored)

    register("lesson_answers")(data={"name": name, "answers": answers}, key=key, on_stored_change=restore)


def live_picture(
    name: str,
    weights: Callable[[], bytes],
    *,
    text: str,
    question: str,
    box: str,
    switched_off_heads: Collection[str],
    how: Literal["zero", "mean", "uniform"],
    key: str,
    on_arrived: Callable[[], None],
    on_switch: Callable[[list[str]], None],
    on_open: Callable[[int, int], None],
    on_part: Callable[[str], None],
) -> None:
    """Draw the whole model on a text (txcls/web/picture/machine.js); it follows the text box while the visitor types.

    The browser receives a classifier once: its weights are a separate component, which is omitted after the picture has
    reported their arrival.

    Args:
        name: identifies the classifier in the browser; other weights need another name.
        weights: returns the result of `txcls.web.export.pack`; called if the browser does not have this classifier.
        question: a question to show before the answer; "" if the page shows it.
        box: the start of the text box's key.
        switched_off_heads: the heads, each as "layer.head" counted from 1.
        on_arrived: called after the arrival of the weights in the browser.
        on_switch: called with the switched-off heads after a click.
        on_open: called with layer and head, from 0, after a double click on a head.
        on_part: called with a part, such as "layers.0.attn", after a click on its name.
    """
    arrived: set[str] = st.session_state.setdefault("_classifiers_in_browser", set())

    def weights_arrived() -> None:
        arrived.update(map(str, reported(key, "has") or ()))
        on_arrived()

    def switched() -> None:
        if (heads := reported(key, "switched")) is not None:
            on_switch(list(map(str, heads)))

    def opened() -> None:
        if head := reported(key, "opened"):
            on_open(*map(int, head))

    def part_clicked() -> None:
        if part := reported(key, "part"):
            on_part(str(part))

    draw = register(
        "live_picture",
        modules=("engine/classifier", "engine/reader", "picture/machine"),
        sheets=("picture/machine", "picture/saving"),
    )
    off = sorted(switched_off_heads)
    draw(
        data={"name": name, "text": text, "question": question, "box": box, "off": off, "how": how},
        key=key,
        on_has_change=weights_arrived,
        on_switched_change=switched,
        on_opened_change=opened,
        on_part_change=part_clicked,
    )
    # After the picture: when an element disappears, Streamlit redraws everything after it.
    if name not in arrived:
        register("classifier_weights")(data=_prefix_with_name(name, weights()), key="classifier_weights")


def _prefix_with_name(name: str, weights: bytes) -> bytes:
    """The name's length in bytes, the name and the weights, the first two padded to a multiple of 8 bytes."""
    encoded = name.encode("utf-8")
    return len(encoded).to_bytes(8, "little") + encoded + b"\0" * (-len(encoded) % 8) + weights


def submit_while_typing(key_start: str, *, text: str, follows: bool = False) -> None:
    """Submit the text areas with keys that start with `key_start` after each pause in typing, as Ctrl+Enter would.

    Args:
        key_start: the start of their keys.
        text: the last text that the server received; text typed while disconnected is submitted after reconnecting.
        follows: whether text typed in the browser's other windows for which this is set is entered here too.

    A text longer than `limits().characters` is truncated to one character more, so that the server notices its length.
    """
    data = {"key": key_start, "text": text, "pause": PAUSE_MS, "max": limits().characters, "follows": follows}
    # After a broken connection, the browser only needs the page to rerun.
    register("live_text")(data=data, key=f"live_{key_start}", on_back_change=lambda: None)


def save_menu() -> None:
    """Draw the menu that saves charts as PNG, SVG or CSV; the browser finds them, and hides an empty menu."""
    register("save_charts")(key="save_charts")


@dataclass(frozen=True, slots=True)
class StripToken:
    """A token of a strip.

    Attributes:
        text: its label; must be printable (`txcls.figures.visible`).
        number: the value that a click reports; None for a token that cannot be clicked.
        title: its tooltip.
        kind: its style: "", "fixed" (added by the model), "unknown", "added" (to the text), "later" (not read).
        pressed: whether it is selected.
        shade: strength of its colour, 0 to 1.
    """

    text: str
    number: int | None
    title: str = ""
    kind: str = ""
    pressed: bool = False
    shade: float = 0.0


def token_strip(tokens: Sequence[StripToken], *, label: str, key: str, on_choose: Callable[[int], None]) -> None:
    """Draw a row of tokens, some of them buttons; `on_choose` is called with the number of a clicked token."""

    def chosen() -> None:
        number = reported(key, "chosen")
        if isinstance(number, int):
            on_choose(number)

    data = {"label": label, "tokens": [asdict(token) for token in tokens]}
    register("token_strip")(data=data, key=key, on_chosen_change=chosen)


def word_bins(
    rows: Mapping[str, Sequence[str]],
    *,
    label: str,
    key: str,
    on_move: Callable[[list[list[str]]], None],
    marked: Sequence[str] = (),
) -> None:
    """Draw rows of words to drag, below their names, which may be empty.

    `on_move` is called with the words of all rows; `label` is for screen readers. Words in `marked` are framed.
    """

    def move() -> None:
        moved_rows = reported(key, "moved") or []
        if sorted(word for row in moved_rows for word in row) == sorted(word for row in rows.values() for word in row):
            on_move(moved_rows)

    data = {
        "label": label,
        "marked": list(marked),
        "rows": [{"name": name, "words": list(words)} for name, words in rows.items()],
    }
    register("word_bins", modules=("page/bins",), sheets=("page/bins",))(data=data, key=key, on_moved_change=move)
