"""A lesson's answers, stored in the visitor's browser."""

from collections.abc import Callable, Mapping
from typing import Any

from txcls.app.components.register import register, reported

_answers = register("lesson_answers")
MAX_LENGTH = 100_000
"""Maximum length of the stored answers, in characters."""


def store_answers(name: str, answers: Mapping[str, Any] | None, *, on_restore: Callable[[str], None]) -> None:
    """Store a lesson's answers; if they are None, call `on_restore` with those of an earlier visit, if there are any.

    Empty answers delete the stored ones.
    """
    key = f"lesson_answers_{name}"

    def restore() -> None:
        stored = reported(key, "stored")
        if isinstance(stored, str) and len(stored) <= MAX_LENGTH:
            on_restore(stored)

    _answers(data={"name": name, "answers": answers}, key=key, on_stored_change=restore)
