import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.conftest import TEXTS, make_checkpoint
from txcls.checkpoint.snapshots import SnapshotRow, Snapshots
from txcls.inference.predictor import Predictor
from txcls.inspection import training_film as module
from txcls.inspection.lens import class_lens
from txcls.inspection.tracing import trace_text
from txcls.inspection.training_film import class_changes, snapshots_to_ask_about, training_film

N = 5
MODELS: dict[str, dict[str, object]] = {
    "as shipped": {},
    "class token, learned positions, post-norm": {"pooling": "class_token", "positions": "learned", "norm": "post"},
    "mean, no positions, narrow embeddings": {"pooling": "mean", "positions": "none", "d_embedding": 8},
    "causal, first token": {"causal": True, "pooling": "first", "n_layers": 1},
    "padded to a fixed length": {"fixed_length": True, "mask_padding": False, "pooling": "mean"},
}


def with_snapshots(path: Path, **model: object) -> Predictor:
    """A classifier with snapshots that differ in every weight."""
    checkpoint = make_checkpoint(path, **model)
    torch.manual_seed(1)
    state = checkpoint.model.state_dict()
    weights = {name: torch.randn(N, *tensor.shape).mul(0.3).half() for name, tensor in state.items()}
    rows = tuple(SnapshotRow(10 * n, 1.0, 0.5) for n in range(N))
    return Predictor(replace(checkpoint, snapshots=Snapshots(rows, weights)))


def single_snapshots(classifier: Predictor) -> list[Predictor]:
    """A classifier for each snapshot, with its weights loaded into a separate model."""
    snapshots = classifier.checkpoint.snapshots
    assert snapshots is not None
    singles = []
    for n in range(len(snapshots)):
        single = replace(classifier.checkpoint, model=copy.deepcopy(classifier.checkpoint.model), snapshots=None)
        single.model.load_state_dict({name: tensor[n].float() for name, tensor in snapshots.weights.items()})
        singles.append(Predictor(single))
    return singles


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_all_snapshots_at_once_equal_each_snapshot_loaded_in_turn(tmp_path: Path, model: dict[str, object]) -> None:
    classifier = with_snapshots(tmp_path / "tiny", **model)
    before = {name: tensor.clone() for name, tensor in classifier.checkpoint.model.state_dict().items()}
    film = training_film(classifier, TEXTS[0])
    assert [row.step for row in film.rows] == [0, 10, 20, 30, 40]
    t = len(film.tokens)
    for n, single in enumerate(single_snapshots(classifier)):
        lens, traced = class_lens(single, TEXTS[0]), trace_text(single, TEXTS[0])
        np.testing.assert_allclose(film.logits[n], traced["logits"], atol=1e-5, rtol=1e-4)
        np.testing.assert_allclose(film.probabilities[n], lens.probabilities[-1], atol=1e-5)
        np.testing.assert_allclose(film.attention[n], traced.attention[..., :t, :t], atol=1e-5)
        np.testing.assert_allclose(film.lens[n], lens.probabilities, atol=1e-5)
        assert film.states == lens.states and film.tokens == traced.prediction.tokens
        assert film.predicted[n] == traced["logits"].argmax()
    assert len({tuple(row) for row in film.logits}) == N, "the snapshots differ"
    for name, tensor in classifier.checkpoint.model.state_dict().items():
        assert torch.equal(tensor, before[name]), "the shared model does not change"


def test_the_number_of_snapshots_in_a_pass_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = with_snapshots(tmp_path / "tiny")
    whole = training_film(classifier, TEXTS[1])
    monkeypatch.setattr(module, "MAX_BATCH_WEIGHTS", 2 * classifier.n_parameters)
    passes = []
    monkeypatch.setattr(module, "may_pause", lambda: passes.append(1))
    parts = training_film(classifier, TEXTS[1])
    assert len(passes) == 3
    for field in ("logits", "probabilities", "attention", "lens"):
        np.testing.assert_allclose(getattr(parts, field), getattr(whole, field), atol=1e-6)


@pytest.mark.parametrize(
    "predicted, expected_flips, expected_questions",
    [
        ([2, 2, 2], (), ()),
        ([0, 0, 0, 0, 1, 1], (4,), (2, 4)),
        ([0, 1], (1,), (1,)),
        ([1, 0, 0, 0, 0, 1], (1, 5), (1, 3, 5)),
        ([0, 2, 3, 1, 1], (1, 2, 3), (1, 2, 3)),
    ],
)
def test_questions_are_asked_at_flips_and_halfway_to_them(
    predicted: list[int], expected_flips: tuple[int, ...], expected_questions: tuple[int, ...]
) -> None:
    assert class_changes(predicted) == expected_flips and snapshots_to_ask_about(predicted) == expected_questions
