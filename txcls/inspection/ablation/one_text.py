"""The answer to one text with parts of the model changed.

All settings share batched passes: each row of the batch holds the same text with its own changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.errors import shown
from txcls.inspection.ablation.changes import Change, How, Means, Off, check_change, each_part, edits_of
from txcls.inspection.tracing import readable, texts_together
from txcls.predictor import Predictor
from txcls.tap import trace

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Ablation:
    """Class probabilities of a text under n settings, `changed` (n, C), and of the model as it is, `original` (C,).

    Attributes:
        effect: (n,) by how much each setting changes the probability of the class that wins originally.
    """

    classes: tuple[str, ...]
    original: Floats
    changed: Floats

    @property
    def winner(self) -> int:
        """The class that wins originally."""
        return int(self.original.argmax())

    @property
    def effect(self) -> Floats:
        """See above."""
        moved: Floats = self.changed[:, self.winner] - self.original[self.winner]
        return moved

    def __repr__(self) -> str:
        """The original answer, and a line for each setting: its answer, and the probability of the original one."""
        names = [shown(name, limit=60) for name in self.classes]
        best = names[self.winner]
        lines = [f"Ablation: {best} {self.original[self.winner]:.1%} as the model is"]
        for number, (row, effect) in enumerate(zip(self.changed, self.effect, strict=True)):
            now = f"{best} {row[self.winner]:.1%} ({100 * effect:+.1f} points)"
            other = int(row.argmax())
            flip = "" if other == self.winner else f", answer now {names[other]} {row[other]:.1%}"
            lines.append(f"  setting {number}: {now}{flip}")
        return "\n".join(lines)


def ablate(
    classifier: Predictor,
    text: str,
    settings: Sequence[Sequence[Change]],
    *,
    means: Means | None = None,
    seed: int = 0,
) -> Ablation:
    """Class probabilities of one text under each of n settings, in as few batched passes as its length allows.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        settings: the changes of each setting; an empty one changes nothing.
        means: for changes to the mean.
        seed: of shuffled patterns; how a head is shuffled does not depend on the other changes.

    Raises:
        TraceError: the text holds no token to read, or the model has no position vectors to change.
        ValueError: there is no such layer, head or token, or no `means` for a change to the mean.
    """
    ids = readable(classifier, text).ids
    config = classifier.checkpoint.config.model
    length = config.max_length if config.fixed_length else len(ids)
    for setting in settings:  # before anything is computed
        for change in setting:
            check_change(change, config, length=length, means=means)
    together = max(1, texts_together(length) - 1)  # the model as it is takes part in every pass
    groups = [settings[first : first + together] for first in range(0, len(settings), together)] or [settings]
    found = [_ablate_together(classifier, ids, group, length=length, means=means, seed=seed) for group in groups]
    return Ablation(classifier.classes, found[0][0], np.concatenate([one[1:] for one in found]))


def _ablate_together(
    classifier: Predictor,
    ids: Sequence[int],
    settings: Sequence[Sequence[Change]],
    *,
    length: int,
    means: Means | None,
    seed: int,
) -> Floats:
    """Class probabilities (1 + n, C) of token ids (T,): of the model as it is, then under each of n settings."""
    row_of_ids = torch.tensor([ids])  # 1 T
    rows = [(row, change) for row, setting in enumerate(settings, start=1) for change in setting]
    config = classifier.checkpoint.config.model
    with trace(record=(), edit=edits_of(rows, config, length=length, means=means, seed=seed)):
        logits = classifier.logits(row_of_ids.expand(1 + len(settings), -1))  # 1+n C
    probabilities: Floats = classifier.calibrated(logits).numpy()
    return probabilities


@dataclass(frozen=True, repr=False)
class PartEffects:
    """By how much the winner's probability changes when a single part is changed: `heads` (L, H), `feed_forward` (L,).

    `original` (C,) holds the probabilities of the model as it is.
    """

    original: Floats
    heads: Floats
    feed_forward: Floats

    def __repr__(self) -> str:
        """A line for each layer, in percentage points."""
        lines = ["PartEffects: percentage points by which the winner's probability moves"]
        for layer, (heads, block) in enumerate(zip(self.heads, self.feed_forward, strict=True)):
            cells = "  ".join(f"{100 * one:+6.1f}" for one in heads)
            lines.append(f"  layer {layer}  heads {cells}  feed-forward {100 * block:+6.1f}")
        return "\n".join(lines)


def ablate_each(
    classifier: Predictor, text: str, *, heads: How = "zero", off: Off = "zero", means: Means | None = None
) -> PartEffects:
    """Change every head, and switch off every feed-forward block, one at a time.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        heads: what is done to a head.
        off: what replaces a feed-forward block.
        means: for "mean".

    Raises:
        TraceError, ValueError: as `ablate`.
    """
    config = classifier.checkpoint.config.model
    settings = [[change] for change in each_part(config, heads=heads, off=off)]
    result = ablate(classifier, text, settings, means=means)
    split = config.n_layers * config.n_heads
    return PartEffects(
        original=result.original,
        heads=result.effect[:split].reshape(config.n_layers, config.n_heads),
        feed_forward=result.effect[split:],
    )
