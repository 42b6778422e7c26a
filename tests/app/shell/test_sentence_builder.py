"""Replace words unknown to a model of match reports by words that it knows."""

from pathlib import Path

import pytest
import streamlit as st

from tests.app.reports import save_reports_model
from txcls.address import View
from txcls.app.shell import sentence_builder, state
from txcls.data.generated.who_won import MAINS, TEAMS
from txcls.predictor import Predictor


def test_known_words_are_words_of_the_vocabulary_without_teams_and_marks(tmp_path: Path) -> None:
    known = sentence_builder.known_words(Predictor(save_reports_model(tmp_path / "who_won")))
    assert {"beat", "lost", "by", "not"} <= set(known) and known == sorted(known)
    assert not {team.lower() for team in TEAMS} & set(known) and all(word.isalpha() for word in known)


def test_a_chosen_word_takes_the_place_of_the_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"known_word_0": "Rovers", "_view": View(text="Chelsea beat City.")}
    monkeypatch.setattr(st, "session_state", values)
    sentence_builder._replace_word(0, 7, "known_word_0", "Chelsea beat City.", "box")
    assert values["box"] == state.shown_view().text == "Rovers beat City."


def test_every_main_clause_has_its_pattern() -> None:
    assert tuple(sentence_builder.FORM_TITLES) == MAINS
