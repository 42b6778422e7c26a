"""The whole model in one picture, computed and drawn in the visitor's browser (txcls/web/picture/machine.js).

The browser receives a classifier once: its weights are a separate component, which is omitted after the picture has
reported their arrival.
"""

from collections.abc import Callable, Collection
from typing import Literal

import streamlit as st

from txcls.app.components.register import register, reported

_live_picture = register(
    "live_picture",
    modules=("engine/classifier", "engine/reader", "picture/machine"),
    sheets=("picture/machine", "picture/saving"),
)
_weights = register("classifier_weights")


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
    """Draw the picture of a text; it follows the text box while the visitor types.

    Args:
        name: identifies the classifier in the browser; other weights need another name.
        weights: returns `txcls.web.export.pack`; called if the browser does not have this classifier.
        question: a question to show before the answer; "" if the page shows it.
        box: the start of the text box's key.
        switched_off_heads: each "layer.head" from 1.
        on_arrived: called before the run that follows the arrival of the weights in the browser.
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

    _live_picture(
        data={
            "name": name,
            "text": text,
            "question": question,
            "box": box,
            "off": sorted(switched_off_heads),
            "how": how,
        },
        key=key,
        on_has_change=weights_arrived,
        on_switched_change=switched,
        on_opened_change=opened,
        on_part_change=part_clicked,
    )
    # After the picture: when an element disappears, Streamlit redraws everything after it.
    if name not in arrived:
        _weights(data=_named(name, weights()), key="classifier_weights")


def _named(name: str, weights: bytes) -> bytes:
    """Prefix the weights with the name's length in bytes and the name, each padded to a multiple of 8 bytes."""
    encoded = name.encode("utf-8")
    return len(encoded).to_bytes(8, "little") + encoded + b"\0" * (-len(encoded) % 8) + weights
