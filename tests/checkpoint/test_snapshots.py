import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.conftest import SNAPSHOT_ROWS, with_snapshots
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.folders import SNAPSHOTS
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.snapshots import Snapshots, snapshot_steps
from txcls.errors import CheckpointError


@pytest.mark.parametrize("n, total", [(2, 1), (2, 1000), (5, 7), (24, 30), (24, 2110), (200, 201), (24, 1_000_000)])
def test_steps_go_from_the_first_to_the_last_with_more_of_the_early_ones(n: int, total: int) -> None:
    steps = snapshot_steps(n, total)
    assert (len(steps), steps[0], steps[-1]) == (n, 0, total)
    gaps = [later - step for step, later in pairwise(steps)]
    assert min(gaps) >= 1
    if total >= 100 * n:
        assert all(later >= gap - 1 for gap, later in pairwise(gaps)), "up to rounding"
        assert sum(step <= total / 10 for step in steps) >= 0.4 * n


@pytest.fixture
def filmed(checkpoint: Checkpoint) -> Checkpoint:
    return with_snapshots(checkpoint)


def test_the_file_gives_rows_and_weights_back_and_survives_another_save(filmed: Checkpoint) -> None:
    snapshots = filmed.snapshots
    assert snapshots is not None and snapshots.rows == SNAPSHOT_ROWS and len(snapshots) == 3
    for name, tensor in filmed.model.state_dict().items():
        assert snapshots.weights[name].shape == (3, *tensor.shape) and snapshots.weights[name].dtype == torch.float16
        assert torch.equal(snapshots.weights[name][2].float(), tensor), "the last state is the model"
    before = (filmed.path / SNAPSHOTS).read_bytes()
    save_checkpoint(replace(filmed, metrics={}))
    assert (filmed.path / SNAPSHOTS).read_bytes() == before


def test_weights_too_large_for_the_file_are_not_saved(checkpoint: Checkpoint) -> None:
    weights = {
        name: tensor.half()[None].repeat(3, *[1] * tensor.ndim)
        for name, tensor in checkpoint.model.state_dict().items()
    }
    weights["head.bias"][1, 0] = torch.inf
    with pytest.raises(CheckpointError, match=r"snapshots in float16: not finite: head\.bias"):
        save_checkpoint(replace(checkpoint, snapshots=Snapshots(SNAPSHOT_ROWS, weights)))
    assert not (checkpoint.path / SNAPSHOTS).exists()


def edit(weights: Callable[[dict[str, Any]], object] = lambda w: None, **header: Any) -> Callable[[Path], None]:
    """Edit the file's weights or its header."""

    def damage(file: Path) -> None:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata()
        tensors = load_file(file)
        weights(tensors)
        texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in header.items()}
        save_file(tensors, file, metadata={name: value for name, value in (metadata | texts).items() if value})

    return damage


def rows(*changes: dict[str, object]) -> Callable[[Path], None]:
    """As many rows as changes, with one change each."""
    plain = {"validation_loss": 1.0, "validation_accuracy": 0.5}
    return edit(snapshots=[{"step": n, **plain, **change} for n, change in enumerate(changes)])


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (lambda file: (file.unlink(), file.mkdir()), "not a plain file"),
    "no rows": (edit(snapshots=""), "snapshots: not readable as JSON"),
    "too many characters": (edit(snapshots="[" + " " * 200_000 + "]"), "more than 100,000 characters"),
    "a number for a row": (edit(snapshots=[1, 2, 3]), "row 1: expected a JSON object, got 1"),
    "a step twice": (rows({}, {}, {"step": 1}), "step: expected ascending steps"),
    "fewer rows than states": (rows({}, {}), ", expected (2, "),
    "one row": (rows({}), "1 rows; expected 2 to 200"),
    "other width": (edit(lambda w: w.update({"head.bias": torch.zeros(3, 5).half()})), "head.bias is (3, 5)"),
}


@pytest.mark.parametrize("damage, message", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_bad_file_is_refused_in_one_sentence(
    filmed: Checkpoint, damage: Callable[[Path], object], message: str
) -> None:
    damage(filmed.path / SNAPSHOTS)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(filmed.path)
    message_text = str(caught.value)
    assert message in message_text and str(filmed.path / SNAPSHOTS) in message_text and "\n" not in message_text
