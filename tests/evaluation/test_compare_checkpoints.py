from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import DataConfig
from txcls.data.generated.repeated_word import CLASSES, open_repeated_word
from txcls.errors import CheckpointError
from txcls.evaluation.compare import compare_checkpoints


def always(path: Path, label: int, **changes: Any) -> Checkpoint:
    """A checkpoint for `repeated_word` that always predicts one class."""
    checkpoint = make_checkpoint(path, classes=CLASSES)
    with torch.no_grad():
        checkpoint.model.head.weight.zero_()
        checkpoint.model.head.bias.copy_(torch.eye(2)[label])
    config = checkpoint.config.model_copy(update={"data": DataConfig(dataset="repeated_word")})
    return replace(checkpoint, config=config, **changes)


def test_the_difference_is_paired_and_belongs_to_the_second(tmp_path: Path) -> None:
    labels = open_repeated_word().load("test").labels
    share = sum(labels) / len(labels)
    never, ever = always(tmp_path / "never", 0), always(tmp_path / "ever", 1)
    rows = compare_checkpoints(never, ever)
    assert rows.n == len(labels)
    assert [accuracy.value for accuracy in rows.accuracies] == pytest.approx([1 - share, share])
    assert rows.difference.value == pytest.approx(2 * share - 1)
    assert rows.difference.low < rows.difference.value < rows.difference.high
    same = compare_checkpoints(ever, ever, limit=100)
    assert same.n == 100 and same.difference.value == 0 and same.difference.sign == 0


def test_steps_are_those_of_the_first_validation_at_95_percent(tmp_path: Path) -> None:
    history = [{"step": 10 * n, "validation_accuracy": accuracy} for n, accuracy in enumerate((0.5, 0.96, 0.9, 0.99))]
    rows = compare_checkpoints(
        always(tmp_path / "one", 1, history=history), always(tmp_path / "two", 1, history=history[:1]), limit=10
    )
    assert rows.steps == (10, None)
    assert rows.table[-1] == ("steps to 95\u00a0% on validation rows", "10", "not reached")


def test_checkpoints_of_other_data_are_refused_by_name(tmp_path: Path) -> None:
    ours, theirs = always(tmp_path / "ours", 0), make_checkpoint(tmp_path / "theirs")
    with pytest.raises(CheckpointError, match="ours on repeated_word and theirs on sample were trained on different"):
        compare_checkpoints(ours, theirs)
    with pytest.raises(CheckpointError, match=r"no class in common \('x', 'y' against .*--label-column"):
        compare_checkpoints(make_checkpoint(tmp_path / "other", classes=("x", "y")), theirs)
