"""Words that can be dragged into an order or into groups."""

from collections.abc import Callable, Sequence

import streamlit as st

from txcls.app.components.register import read
from txcls.web.sources import script, style

_bins = st.components.v2.component(
    "txcls_lesson_drag",
    html='<div class="bins"></div>',
    js=f"{script('page/bins')}\n{read('lesson_drag.js')}",
    css=":host, .bins {font-family: var(--st-font); color: var(--st-text-color);}\n"
    + style("picture/buttons", "page/bins"),
)


def word_bins(
    words: Sequence[str], groups: Sequence[str], *, label: str, key: str, on_move: Callable[[list[list[str]]], None]
) -> None:
    """Draw the words in a row, and below it an empty row for each group.

    Args:
        words: what can be moved.
        groups: names of the groups; none for an order.
        label: for screen readers.
        key: of the component.
        on_move: called before the next run with the words of all rows, if they are the given words.
    """

    def moved() -> None:
        moved_rows = st.session_state[key]["moved"] or []
        if sorted(str(word) for row in moved_rows for word in row) == sorted(words):
            on_move([[str(word) for word in row] for row in moved_rows])

    rows = [{"name": "", "words": list(words)}, *({"name": name, "words": []} for name in groups)]
    _bins(data={"label": label, "rows": rows}, key=key, on_moved_change=moved)
