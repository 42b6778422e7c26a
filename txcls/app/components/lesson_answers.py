"""A lesson's answers, stored in the visitor's browser."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from txcls.app.components.register import register

_answers = register("lesson_answers")
LONGEST = 100_000
"""Maximum length of the stored answers, in characters."""


def store_answers(name: str, answers: Mapping[str, Any] | None, *, on_restore: Callable[[str], None]) -> None:
    """Store the answers in a lesson; without any, call `on_restore` with the answers of an earlier visit, if any.

    Empty answers delete the stored ones.
    """
    key = f"lesson_answers_{name}"

    def restore() -> None:
        stored = st.session_state[key]["stored"]
        if isinstance(stored, str) and len(stored) <= LONGEST:
            on_restore(stored)

    _answers(data={"name": name, "answers": answers}, key=key, on_stored_change=restore)
