"""States of a classifier along its training: at which steps they are kept, and the file that holds them.

`snapshots.safetensors` holds each weight of the model N times, stacked along a new first axis, as float16. Its header
has the optimiser step of each state, and its loss and accuracy on training and validation rows.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from txcls.checkpoint.json_files import PLAIN, Count, Number, Share, checked, parsed
from txcls.checkpoint.weights import as_stored, read_header, read_shapes
from txcls.config import MAX_SNAPSHOTS
from txcls.errors import CheckpointError

MAX_HEADER_CHARACTERS = 100_000
"""Of the rows in the header."""
EARLY = 100
"""How strongly early steps are preferred: the steps between states are equal up to 1 / EARLY of the training, and grow
by a constant factor later."""


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """What is known of one state.

    Attributes:
        step: how many optimiser steps led to it, 0 for the initial weights.
        validation_loss, validation_accuracy: of this state.
        train_loss, train_accuracy: over the steps since the state before, as seen in training; None for the first.
    """

    __pydantic_config__ = PLAIN
    step: Count
    validation_loss: Number
    validation_accuracy: Share
    train_loss: Number | None = None
    train_accuracy: Share | None = None


@dataclass(frozen=True, eq=False)
class Snapshots:
    """N states of one model, in the order of their steps.

    Attributes:
        rows: what is known of each.
        weights: the model's `state_dict` with a first axis of length N, as float16.
    """

    rows: tuple[SnapshotRow, ...]
    weights: Mapping[str, Tensor]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, states: "Sequence[tuple[SnapshotRow, Mapping[str, Tensor]]]") -> "Snapshots":
        """The states, each with its stored weights, stacked."""
        names = states[0][1]
        rows = tuple(row for row, _ in states)
        return cls(rows, {name: torch.stack([weights[name] for _, weights in states]) for name in names})


def snapshot_steps(n: int, total: int) -> tuple[int, ...]:
    """The steps, from 0 to `total`, after which n states are kept; all of them if there are no more than n.

    They are evenly spaced in log(1 + EARLY * step / total).
    """
    if n > total:
        return tuple(range(total + 1)) if n else ()
    spaced = (math.expm1(math.log1p(EARLY) * k / (n - 1)) * total / EARLY for k in range(n)) if n else ()
    steps: list[int] = []
    for k, wanted in enumerate(spaced):
        earliest = steps[-1] + 1 if steps else 0
        steps.append(min(max(round(wanted), earliest), total - (n - 1 - k)))
    return tuple(steps)


def save_snapshots(snapshots: Snapshots, path: Path) -> None:
    """Write the file.

    Raises:
        CheckpointError: a weight is not finite in float16.
        OSError, SafetensorError: it cannot be written.
    """
    weights = as_stored(snapshots.weights)
    if worst := [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]:
        raise CheckpointError(f"snapshots of {', '.join(worst)} are not finite in float16; nothing was saved")
    rows = json.dumps([asdict(row) for row in snapshots.rows])
    save_file(weights, path, metadata={"snapshots": rows})  # the order of several entries would be random


def load_snapshots(path: Path, model: Mapping[str, Tensor]) -> Snapshots | None:
    """Read the file, if there is one; nothing is allocated before its header fits the model's and the file's size.

    Args:
        path: of the file.
        model: the `state_dict` whose states it must hold; only shapes are used.

    Raises:
        CheckpointError: it is damaged, or does not fit the model; the message names the field.
    """
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise CheckpointError(f"{path}: not a plain file")
    shapes = read_shapes(path)
    rows = _rows(read_header(path).get("snapshots"), where=f"{path}: snapshots")
    n = len(rows)
    if not 2 <= n <= MAX_SNAPSHOTS:
        raise CheckpointError(f"{path}: {n} states; wanted 2 to {MAX_SNAPSHOTS}")
    if any(later.step <= row.step for row, later in pairwise(rows)):
        raise CheckpointError(f"{path}: step: wanted the states in the order of their steps, each step once")
    problems = [f"lacks {name}" for name in model if name not in shapes]
    problems += [f"holds unknown {name:.200}" for name in shapes if name not in model]
    problems += [
        f"{name} is {tuple(shapes[name].shape)} {shapes[name].dtype}, wanted {(n, *tensor.shape)} torch.float16"
        for name, tensor in model.items()
        if name in shapes and (shapes[name].shape, shapes[name].dtype) != ((n, *tensor.shape), torch.float16)
    ]
    if not problems:
        try:
            weights = load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(f"{path}: not a complete safetensors file ({error!s:.200})") from None
        problems = [f"{name} holds values that are not finite" for name, one in weights.items() if not _finite(one)]
        if not problems:
            return Snapshots(rows, weights)
    more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
    raise CheckpointError(f"{path} does not fit the model: {'; '.join(problems[:5])}{more}")


def _rows(text: str | None, *, where: str) -> tuple[SnapshotRow, ...]:
    """The validated rows in the header."""
    if text is None:
        raise CheckpointError(f"{where}: missing in the header")
    if len(text) > MAX_HEADER_CHARACTERS:
        raise CheckpointError(f"{where}: more than {MAX_HEADER_CHARACTERS:,} characters in the header")
    rows = parsed(text, list, where=where)
    return tuple(checked(SnapshotRow, row, where=f"{where}: row {number}") for number, row in enumerate(rows, start=1))


def _finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor).all())
