"""The patch in every snapshot of `who_won`, compared with the grid of activation patching."""

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


def test_the_last_snapshot_moves_as_many_answers_as_the_grid(
    who_won: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [made for made in reports_of("test") if other_construction(made)][:6]
    monkeypatch.setattr(measuring, "reports_of", lambda split: few)
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
        for made in few:
            grid = patch_grid(last, str(other_construction(made)), made.text)
            [part] = [n for n, one in enumerate(grid.parts) if one.name == "head 1.2"]
            start = made.roles[role][0][0]
            [token] = [n for n, one in enumerate(grid.corrupted_tokens) if one.start == start and one.end]
            moved += who_won.classes[int(grid.logits[part, token].argmax())] == made.loser
        assert shares[-1] == moved / len(few)
