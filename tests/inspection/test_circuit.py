import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.app.reports import first_reports
from tests.inspection.planted import CLASSES, planted, random_texts
from txcls.checkpoint.schema import read_metrics
from txcls.data.generated.who_won import TEAMS
from txcls.data.types import LabelledTexts
from txcls.inference.predictor import Predictor
from txcls.inspection import circuit as measuring
from txcls.inspection.circuit import (
    AttentionRow,
    Circuit,
    RoleBatch,
    accuracy_of_rows,
    acting_rows,
    all_rows,
    expected_guess_accuracy,
    find_circuit,
    measure_circuit,
    role_batches,
)


def planted_batches(classifier: Predictor) -> list[RoleBatch]:
    texts = [" ".join(words) for words in random_texts(60, seed=1)]
    predicted = [CLASSES.index(str(prediction.label)) for prediction in classifier.predict(texts)]
    rows = LabelledTexts(texts, predicted, CLASSES)
    return role_batches(classifier.tokenizer, rows, [{"start": [(0, 5)]}] * len(texts))


@cache
def who_won() -> tuple[Predictor, list[RoleBatch]]:
    classifier = Predictor.load("who_won")
    reports = first_reports("test", 300)
    rows = LabelledTexts([report.text for report in reports], [TEAMS.index(report.winner) for report in reports], TEAMS)
    return classifier, role_batches(classifier.tokenizer, rows, [report.roles for report in reports])


def test_the_search_finds_the_only_row_that_matters() -> None:
    classifier = planted(reads={3: 1.0}, idle={5: 1.0})
    batches = planted_batches(classifier)
    assert accuracy_of_rows(classifier, batches, []) < 0.9
    assert find_circuit(classifier, batches) == [AttentionRow(0, 0, "start")]
    assert accuracy_of_rows(classifier, batches, [AttentionRow(0, 0, "start")]) == 1.0
    others = [row for row in all_rows(classifier, batches) if row != AttentionRow(0, 0, "start")]
    assert accuracy_of_rows(classifier, batches, others) == accuracy_of_rows(classifier, batches, [])


def test_two_rows_of_who_won_have_most_of_the_accuracy_and_two_others_do_not() -> None:
    classifier, batches = who_won()
    kept = accuracy_of_rows(classifier, batches, [AttentionRow(0, 1, "team"), AttentionRow(1, 1, "class token")])
    control = accuracy_of_rows(classifier, batches, [AttentionRow(0, 1, "verb"), AttentionRow(1, 1, "class token")])
    assert kept > 0.8 and control < 0.6 and accuracy_of_rows(classifier, batches, []) < 0.4


@pytest.mark.slow
def test_a_circuit_is_measured_on_other_splits_and_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    classifier, batches = who_won()
    monkeypatch.setattr(measuring, "role_batches", lambda *_: batches[:1])
    monkeypatch.setattr(measuring, "N_CONTROLS", 2)
    monkeypatch.setattr(measuring, "MAX_KEPT_ROWS", 2)
    circuit = measure_circuit(classifier)
    assert set(circuit.n) == {"test", "new"} and circuit.n_rows > len(circuit.kept) >= 1
    assert all(step.control["test"] <= step.control_most["test"] <= 1 for step in circuit.kept)
    assert circuit.guess.keys() == circuit.without.keys() == set(circuit.n)
    assert circuit.kept[0].without is not None and circuit.kept[-1].without == circuit.without
    others = [row for row in all_rows(classifier, batches) if row != circuit.kept[0].row]
    assert circuit.kept[0].without["test"] == accuracy_of_rows(classifier, batches[:1], others)
    assert not circuit.all_controls  # there are more than two choices
    checkpoint = classifier.checkpoint.with_metrics(circuit=circuit.to_dict())
    (tmp_path / "metrics.json").write_text(json.dumps(checkpoint.metrics))
    assert "circuit" in read_metrics(tmp_path / "metrics.json")
    assert Circuit.of(Predictor(checkpoint)) == circuit
    in_no_layer = replace(circuit, kept=(replace(circuit.kept[0], row=AttentionRow(5, 0, "class token")),))
    assert Circuit.of(Predictor(classifier.checkpoint.with_metrics(circuit=in_no_layer.to_dict()))) is None


def test_keeping_all_rows_changes_nothing() -> None:
    classifier, batches = who_won()
    rows = all_rows(classifier, batches)
    assert len(rows) == 2 * 2 * 5 and {row.role for row in rows} == {
        "class token",
        "marker",
        "other token",
        "team",
        "verb",
    }
    idle = [row for row in rows if row not in acting_rows(classifier, rows)]
    assert len(idle) == 2 * 4
    assert accuracy_of_rows(classifier, batches, [row for row in rows if row not in idle]) == accuracy_of_rows(
        classifier, batches, rows
    )
    n_correct = sum(int((classifier.logits(batch.ids).argmax(-1) == batch.labels).sum()) for batch in batches)
    assert accuracy_of_rows(classifier, batches, rows) == n_correct / 300


def test_a_guess_is_one_of_the_teams_that_a_report_names() -> None:
    classifier, batches = who_won()
    n_named = [len(set(re.findall(r"\w+", report.text)) & set(TEAMS)) for report in first_reports("test", 300)]
    assert expected_guess_accuracy(classifier, batches) == pytest.approx(sum(1 / n for n in n_named) / 300)
