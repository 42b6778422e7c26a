"""Snapshots of a classifier's weights: at which steps training takes them (`Trainer` in training/loop.py), and their
file.

`snapshots.safetensors` contains the N snapshots of each weight, stacked along a new first axis, as float16. Its
metadata has each snapshot's optimiser step, and its loss and accuracy on training and validation rows.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from txcls.checkpoint.json_files import PLAIN, Count, Number, Share, parse, validate
from txcls.checkpoint.weights import as_stored, check_finite, load_weights, read_header
from txcls.config import MAX_SNAPSHOTS
from txcls.errors import CheckpointError

MAX_METADATA_CHARACTERS = 100_000
LOG_SPACING = 100
"""In the first 1 / LOG_SPACING of training, snapshots are about evenly spaced; then the gaps grow exponentially."""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot's optimiser step and metrics.

    Training metrics are means over the steps since the previous snapshot; None for the first snapshot.
    """

    __pydantic_config__ = PLAIN
    step: Count
    validation_loss: Number
    validation_accuracy: Share
    train_loss: Number | None = None
    train_accuracy: Share | None = None


@dataclass(frozen=True, eq=False)
class Snapshots:
    """N snapshots of a model, ordered by step; `weights` are float16 and have a first axis of length N."""

    rows: tuple[SnapshotRow, ...]
    weights: Mapping[str, Tensor]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, states: "Sequence[tuple[SnapshotRow, Mapping[str, Tensor]]]") -> "Snapshots":
        """Combine rows and weights of at least one snapshot."""
        rows = tuple(row for row, _ in states)
        return cls(rows, {name: torch.stack([weights[name] for _, weights in states]) for name in states[0][1]})


def snapshot_steps(n: int, total: int) -> tuple[int, ...]:
    """The n steps from 0 to `total` after which to take snapshots; all steps if there are at most n.

    They are evenly spaced in log(1 + LOG_SPACING * step / total).
    """
    if n > total:
        return tuple(range(total + 1)) if n else ()
    spaced = (math.expm1(math.log1p(LOG_SPACING) * k / (n - 1)) * total / LOG_SPACING for k in range(n)) if n else ()
    steps: list[int] = []
    for k, position in enumerate(spaced):
        earliest = steps[-1] + 1 if steps else 0
        steps.append(min(max(round(position), earliest), total - (n - 1 - k)))
    return tuple(steps)


def save_snapshots(snapshots: Snapshots, path: Path) -> None:
    """Write the snapshots to a file.

    Raises:
        CheckpointError: a weight is not finite in float16.
        OSError, SafetensorError: the file cannot be written.
    """
    weights = check_finite(as_stored(snapshots.weights), where="snapshots in float16")
    rows = json.dumps([asdict(row) for row in snapshots.rows])
    save_file(weights, path, metadata={"snapshots": rows})  # a single entry: safetensors orders entries randomly


def load_snapshots(path: Path, model: Mapping[str, Tensor]) -> Snapshots | None:
    """Read the snapshots of a model with this `state_dict`, if the file exists.

    Raises:
        CheckpointError: the file is damaged or does not match the model; the message names the field.
    """
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise CheckpointError(f"{path}: not a plain file")
    text = read_header(path)[1].get("snapshots", "")
    where = f"{path}: snapshots"
    if len(text) > MAX_METADATA_CHARACTERS:
        raise CheckpointError(f"{where}: more than {MAX_METADATA_CHARACTERS:,} characters in the metadata")
    rows = tuple(
        validate(SnapshotRow, row, where=f"{where}: row {number}")
        for number, row in enumerate(parse(text, list, where=where), start=1)
    )
    if not 2 <= len(rows) <= MAX_SNAPSHOTS:
        raise CheckpointError(f"{where}: {len(rows)} rows; expected 2 to {MAX_SNAPSHOTS}")
    if any(later.step <= row.step for row, later in pairwise(rows)):
        raise CheckpointError(f"{where}: step: expected ascending steps")
    return Snapshots(rows, load_weights(path, {name: (len(rows), *tensor.shape) for name, tensor in model.items()}))
