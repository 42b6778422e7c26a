"""Build the beginning of a sentence for a model of `agreement`."""

import pytest
import streamlit as st

from txcls.address import View
from txcls.app.shell import state, subject_builder


@pytest.mark.parametrize(
    "number, attractor, phrase, text",
    [
        ("plural", "singular", "", "The keys to the cabinet"),
        ("singular", "plural", "near the windows", "The key to the cabinets near the windows"),
    ],
)
def test_the_chosen_numbers_and_phrase_make_the_text(
    monkeypatch: pytest.MonkeyPatch, number: str, attractor: str, phrase: str, text: str
) -> None:
    chosen = {"item": 0, "number": number, "attractor": attractor, "phrase": phrase}
    values = {"_view": View(text="")} | {f"subject_{name}": value for name, value in chosen.items()}
    monkeypatch.setattr(st, "session_state", values)
    subject_builder._write("box")
    assert values["box"] == state.shown_view().text == text
