"""Words in a row that can be dragged into another order."""

from collections.abc import Callable, Sequence

import streamlit as st

from txcls.app.components.register import register

_order = register("word_order", html="word_order.html", js="word_order.js", css="strip.css word_order.css")


def draggable_words(
    words: Sequence[str], order: Sequence[int], *, label: str, key: str, on_order: Callable[[tuple[int, ...]], None]
) -> None:
    """Draw the words in an order; `on_order` gets the order after a drag before the next run of the page.

    Args:
        words: must be printable (`txcls.figures.visible`).
        order: indices into `words`, as are those that `on_order` gets.
        label: for screen readers.
        key: of the component.
        on_order: called with the new order, a permutation of all indices.
    """

    def moved() -> None:
        new_order = st.session_state[key]["order"] or ()
        if sorted(new_order) == list(range(len(words))):
            on_order(tuple(int(number) for number in new_order))

    shown = [{"number": number, "text": words[number]} for number in order]
    _order(data={"label": label, "words": shown}, key=key, on_order_change=moved)
