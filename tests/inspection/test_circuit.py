"""The rows that determine the prediction: found in a model whose circuit is known, and verified on `who_won`."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.inspection.stories.planted import CLASSES, planted, random_texts
from txcls.checkpoint.schema import read_metrics
from txcls.data.generated.who_won import TEAMS, first_reports
from txcls.data.types import LabelledTexts
from txcls.errors import TraceError
from txcls.inspection import circuit as measuring
from txcls.inspection.circuit import (
    Circuit,
    RoleBatch,
    Row,
    accuracy_of_guess,
    accuracy_of_rows,
    all_rows,
    find_circuit,
    measure_circuit,
    measure_pointing,
    point,
    role_batches,
)
from txcls.predictor import Predictor


def planted_batches(classifier: Predictor) -> list[RoleBatch]:
    texts = [" ".join(words) for words in random_texts(60, seed=1)]
    answers = [CLASSES.index(str(prediction.label)) for prediction in classifier.predict(texts)]
    return role_batches(classifier.encoder, LabelledTexts(texts, answers, CLASSES), [{"start": [(0, 5)]}] * len(texts))


@cache
def who_won() -> tuple[Predictor, list[RoleBatch]]:
    classifier = Predictor.load("who_won")
    reports = first_reports("test", 300)
    rows = LabelledTexts([one.text for one in reports], [TEAMS.index(one.winner) for one in reports], TEAMS)
    return classifier, role_batches(classifier.encoder, rows, [report.roles for report in reports])


def test_the_search_finds_the_row_that_decides() -> None:
    classifier = planted(reads={3: 1.0}, idle={5: 1.0})
    batches = planted_batches(classifier)
    assert accuracy_of_rows(classifier, batches, []) < 0.9
    assert find_circuit(classifier, batches) == [Row(0, 0, "start")]
    assert accuracy_of_rows(classifier, batches, [Row(0, 0, "start")]) == 1.0
    others = [one for one in all_rows(classifier, batches) if one != Row(0, 0, "start")]
    assert accuracy_of_rows(classifier, batches, others) == accuracy_of_rows(classifier, batches, [])


def test_two_rows_of_who_won_keep_most_answers_and_others_do_not() -> None:
    classifier, batches = who_won()
    kept = accuracy_of_rows(classifier, batches, [Row(0, 1, "second team"), Row(1, 1, "class token")])
    control = accuracy_of_rows(classifier, batches, [Row(0, 1, "first team"), Row(1, 1, "class token")])
    assert kept > 0.8 and control < 0.5 and accuracy_of_rows(classifier, batches, []) < 0.4


def test_the_answer_follows_the_class_row_of_both_heads_onto_any_team() -> None:
    classifier, batches = who_won()
    pointed = measure_pointing(classifier, batches, (0, 1))
    assert pointed.share == 1.0 and pointed.n >= 600
    text = "Rovers lost to Wanderers, who beat United last week."
    for place, token in enumerate(classifier.encoder.encode(text).tokens):
        if token.text.title() in TEAMS:
            assert classifier.classes[int(point(classifier, text, place, heads=(0, 1)).argmax())] == token.text.title()


@pytest.mark.slow
def test_a_circuit_is_measured_on_splits_it_was_not_chosen_on_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    classifier, batches = who_won()
    monkeypatch.setattr(measuring, "role_batches", lambda *_: batches[:1])
    monkeypatch.setattr(measuring, "N_CONTROLS", 2)
    monkeypatch.setattr(measuring, "MAX_ROWS", 2)
    found = measure_circuit(classifier)
    assert set(found.n) == {"test", "new"} and found.n_rows > len(found.kept) >= 1
    assert all(one.control["test"] <= one.control_most["test"] <= 1 for one in found.kept)
    kept = classifier.checkpoint.with_metrics(circuit=found.to_dict())
    (tmp_path / "metrics.json").write_text(json.dumps(kept.metrics))
    assert "circuit" in read_metrics(tmp_path / "metrics.json")
    assert Circuit.of(Predictor(kept)) == found
    smaller = replace(found, kept=(replace(found.kept[0], row=Row(5, 0, "class token")),))
    assert Circuit.of(Predictor(classifier.checkpoint.with_metrics(circuit=smaller.to_dict()))) is None


def test_keeping_all_rows_changes_nothing() -> None:
    classifier, batches = who_won()
    rows = all_rows(classifier, batches)
    assert len(rows) == 2 * 2 * 8 and not {"winner", "loser"} & {row.role for row in rows}
    right = sum(int((classifier.logits(one.ids).argmax(-1) == one.labels).sum()) for one in batches)
    assert accuracy_of_rows(classifier, batches, rows) == right / 300


def test_a_model_that_only_guesses_among_the_teams_has_no_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    _, batches = who_won()
    classifier = Predictor.load("who_won_none")
    named = [len(set(re.findall(r"\w+", one.text)) & set(TEAMS)) for one in first_reports("test", 300)]
    assert accuracy_of_guess(classifier, batches) == pytest.approx(sum(1 / n for n in named) / 300)
    monkeypatch.setattr(measuring, "role_batches", lambda *_: batches)
    with pytest.raises(TraceError, match=r"no circuit to find: who_won_none is right on 3.* set of words"):
        measure_circuit(classifier)
