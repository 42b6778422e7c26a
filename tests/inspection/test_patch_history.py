"""Patching every snapshot of `who_won`, compared with the patch grid."""

from dataclasses import replace

import pytest

from txcls.data.generated.who_won import other_construction, reports_of
from txcls.inference.predictor import Predictor
from txcls.inspection import patch_history as measuring
from txcls.inspection.circuit import Circuit, Row
from txcls.inspection.patch_history import measure_patch_history
from txcls.inspection.patching import patch_grid


@pytest.fixture(scope="module")
def who_won() -> Predictor:
    return Predictor.load("who_won")


def circuit_of(classifier: Predictor) -> Circuit:
    circuit = Circuit.of(classifier)
    assert circuit is not None
    return circuit


def at_snapshot(classifier: Predictor, n: int) -> Predictor:
    snapshots = classifier.checkpoint.snapshots
    assert snapshots is not None
    model = type(classifier.checkpoint.model)(
        classifier.checkpoint.config.model,
        vocab_size=classifier.tokenizer.vocab_size,
        n_classes=len(classifier.classes),
    )
    model.load_state_dict({name: weights[n].float() for name, weights in snapshots.weights.items()})
    return Predictor(replace(classifier.checkpoint, model=model.eval()))


def test_the_last_snapshot_moves_as_many_answers_as_the_grid(
    who_won: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [report for report in reports_of("test") if other_construction(report)]
    last, some_reports = at_snapshot(who_won, -1), pairs[:6]
    monkeypatch.setattr(measuring, "reports_of", lambda split: some_reports)
    history = measure_patch_history(who_won, circuit_of(who_won))
    assert history.row == Row(0, 1, "second team") and history.control_role == "first team" and history.n == 6
    for role, shares in (("second team", history.moved), ("first team", history.control)):
        moved = 0
        for report in some_reports:
            grid = patch_grid(last, str(other_construction(report)), report.text)
            [part] = [n for n, one in enumerate(grid.parts) if one.name == "head 1.2"]
            start = report.roles[role][0][0]
            [token] = [n for n, one in enumerate(grid.corrupted_tokens) if one.start == start and one.end]
            moved += who_won.classes[int(grid.logits[part, token].argmax())] == report.loser
        assert shares[-1] == moved / len(some_reports)


def test_texts_that_have_the_other_answer_without_the_patch_do_not_count(
    who_won: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = at_snapshot(who_won, 0)
    pairs = [made for made in reports_of("test") if other_construction(made)][:200]
    already = [made for made in pairs if first.predict([made.text])[0].label == made.loser][:5]
    assert len(already) == 5
    monkeypatch.setattr(measuring, "reports_of", lambda split: already)
    history = measure_patch_history(who_won, circuit_of(who_won))
    assert history.moved[0] == history.control[0] == 0.0
