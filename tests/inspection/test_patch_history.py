"""Patching every snapshot of `who_won`, compared with the patch grid."""

from dataclasses import replace

import pytest

from txcls.data.generated.who_won import other_construction, reports_of
from txcls.inspection import patch_history as measuring
from txcls.inspection.circuit import Circuit, Row
from txcls.inspection.patch_history import measure_patch_history
from txcls.inspection.patching import patch_grid
from txcls.predictor import Predictor


@pytest.fixture(scope="module")
def who_won() -> Predictor:
    return Predictor.load("who_won")


def circuit_of(classifier: Predictor) -> Circuit:
    circuit = Circuit.of(classifier)
    assert circuit is not None
    return circuit


def test_the_share_in_the_last_snapshot_equals_that_in_the_patch_grid(
    who_won: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = [report for report in reports_of("test") if other_construction(report)][:6]
    monkeypatch.setattr(measuring, "reports_of", lambda split: reports)
    snapshots = who_won.checkpoint.snapshots
    assert snapshots is not None
    weights = {name: tensor[-1].float() for name, tensor in snapshots.weights.items()}
    history = measure_patch_history(who_won, circuit_of(who_won))
    assert history.row == Row(0, 1, "second team") and history.control_role == "first team" and history.n == 6
    model = type(who_won.checkpoint.model)(
        who_won.checkpoint.config.model, vocab_size=who_won.encoder.vocab_size, n_classes=len(who_won.classes)
    )
    model.load_state_dict(weights)
    last = Predictor(replace(who_won.checkpoint, model=model.eval()))
    for role, shares in (("second team", history.moved), ("first team", history.control)):
        moved = 0
        for report in reports:
            grid = patch_grid(last, str(other_construction(report)), report.text)
            [part] = [n for n, part in enumerate(grid.parts) if part.name == "head 1.2"]
            start = report.roles[role][0][0]
            [token] = [n for n, token in enumerate(grid.corrupted_tokens) if token.start == start and token.end]
            moved += who_won.classes[int(grid.logits[part, token].argmax())] == report.loser
        assert shares[-1] == moved / len(reports)
