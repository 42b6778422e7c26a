"""Build beginnings of sentences for the `agreement` models from select boxes: the subject, its number, and nouns after
it."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app.shell import view_state
from txcls.data.generated.agreement import CLASSES, minimal_pairs

PHRASES = ("in the old house", "near the windows", "beside the road", "of my two brothers", "from the other towns")
"""Optional further phrases, each with another noun."""


def draw(row: DeltaGenerator, text_box: str) -> None:
    """Draw a button that opens select boxes, which write the text."""
    texts = [pair.text for pair in minimal_pairs()[::4]]  # of each item, the one with both nouns in the singular
    with row.popover("Build a sentence", width="content"):
        write: dict[str, Any] = {"on_change": _write, "args": (text_box,)}
        st.selectbox("Sentence", range(len(texts)), format_func=texts.__getitem__, key="subject_item", **write)
        for name, key in (("Subject", "subject_number"), ("Noun before the verb", "subject_attractor")):
            st.segmented_control(name, CLASSES, default=CLASSES[0], required=True, key=key, **write)
        st.selectbox(
            "Another phrase", ("", *PHRASES), format_func=lambda words: words or "none", key="subject_phrase", **write
        )


def _write(text_box: str) -> None:
    """Write the sentence of the select boxes into the text box."""
    values = st.session_state
    plural, attractor = (values[key] == CLASSES[1] for key in ("subject_number", "subject_attractor"))
    text = minimal_pairs()[4 * values["subject_item"] + 2 * plural + attractor].text
    view_state.put_text(f"{text} {values['subject_phrase']}".strip(), text_box)
