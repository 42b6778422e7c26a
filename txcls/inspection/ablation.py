"""What changes without a part of the model?

Ablations are edits at the model's taps: the model itself is not modified, and other threads are not affected
(txcls/tap.py). `ablate` and `ablate_each` work on one text; for labelled rows see `heads/`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.config import ModelConfig
from txcls.errors import sanitize
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import encode_for_trace, max_texts_per_batch
from txcls.tap import Edit, trace
from txcls.text.checks import check_texts
from txcls.text.formatting import percentage

PartKind = Literal["head", "feed_forward", "positions", "token"]
AblationMethod = Literal["zero", "mean", "uniform"]
OutputAblation = Literal["zero", "mean"]


@dataclass(frozen=True, slots=True)
class Ablation:
    """The ablation of one part of the model.

    `part` is a head (`layer`, `index`), the feed-forward block of a layer (`layer`), the position vectors, or the first
    layer's input at one token (`index`). `how` is "zero" (zero ablation), "mean" (mean ablation, which needs `Means`),
    or, for a head, "uniform" (uniform attention to all unmasked keys).

    Raises:
        ValueError: "uniform" for a part that is not a head.
    """

    part: PartKind
    how: AblationMethod = "zero"
    layer: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        if self.how == "uniform" and self.part != "head":
            raise ValueError(f"got uniform for {self.part}; only a head has an attention pattern to replace")

    @property
    def tap(self) -> str:
        """The name of the tap that is edited."""
        if self.part == "head":
            # Scores rather than the pattern, since masked scores are recognised by their value, minus infinity.
            return f"layers.{self.layer}.attn.{'scores' if self.how == 'uniform' else 'z'}"
        if self.part == "feed_forward":
            return f"layers.{self.layer}.ff_out"
        return "embeddings.positions" if self.part == "positions" else "embeddings.out"


@dataclass(frozen=True)
class Means:
    """The mean output of each part over all tokens of `n_texts` texts: (H, E) or (D,), keyed by tap name."""

    taps: Mapping[str, NDArray[np.float32]]
    n_texts: int
    split: str

    @classmethod
    def of(cls, classifier: Predictor) -> "Means | None":
        """The means stored in the checkpoint; None if there are none, or if they do not fit the model."""
        try:
            stored = classifier.checkpoint.metrics["means"]
            taps = {name: np.asarray(values, dtype=np.float32) for name, values in stored["taps"].items()}
            means = cls(taps, int(stored["n"]), str(stored["split"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return means if {name: mean.shape for name, mean in taps.items()} == _mean_shapes(classifier) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, rounded to four decimals."""
        taps = {name: np.round(mean.astype(np.float64), 4).tolist() for name, mean in self.taps.items()}
        return {"split": self.split, "n": self.n_texts, "taps": taps}


def _mean_shapes(classifier: Predictor) -> dict[str, tuple[int, ...]]:
    """The taps that mean ablation can replace, with the shape of their values at one token."""
    config = classifier.checkpoint.config.model
    shapes: dict[str, tuple[int, ...]] = {"embeddings.out": (config.d_model,)}
    if config.adds_positions:
        shapes["embeddings.positions"] = (config.d_model,)
    for layer in range(config.n_layers):
        shapes[f"layers.{layer}.attn.z"] = (config.n_heads, config.d_head)
        shapes[f"layers.{layer}.ff_out"] = (config.d_model,)
    return shapes


def measure_means(classifier: Predictor, texts: Sequence[str], *, split: str) -> Means:
    """The mean output of each part over all tokens of these texts; texts without a word are skipped.

    Raises:
        ValueError: no text contains a word.
    """
    names = list(_mean_shapes(classifier))
    sums: dict[str, Tensor] = {}
    n_texts = n_tokens = 0
    for text in check_texts(texts):
        encoding = classifier.encode(text)
        if not encoding.has_words:
            continue
        with trace(record=names) as activations:
            classifier.logits(torch.tensor([encoding.ids]))
        for name in names:
            value = activations[name][0].detach().double()  # H T E or T D
            sums[name] = sums.get(name, 0.0) + value.sum(dim=-2)
        n_texts, n_tokens = n_texts + 1, n_tokens + value.shape[-2]
    if not n_texts:
        raise ValueError("got no text with a word; expected at least one")
    return Means({name: (total / n_tokens).float().numpy() for name, total in sums.items()}, n_texts, split)


def edits_of(
    rows: Sequence[tuple[int | slice, Ablation]],
    config: ModelConfig,
    *,
    length: int | None,
    means: Means | None,
) -> dict[str, Edit]:
    """The edits that make these ablations, keyed by tap; each ablation comes with the batch rows that it changes.

    Raises:
        ValueError: as for `check_change`.
    """
    by_tap: dict[str, list[tuple[int | slice, Ablation]]] = {}
    for row, change in rows:
        check_change(change, config, length=length, means=means)
        by_tap.setdefault(change.tap, []).append((row, change))
    return {
        tap: partial(_apply, changes, None if means is None else means.taps.get(tap)) for tap, changes in by_tap.items()
    }


def check_change(change: Ablation, config: ModelConfig, *, length: int | None, means: Means | None) -> None:
    """Check an ablation for a model and a text of `length` tokens (None if the length is not known).

    Raises:
        ValueError: there is no such layer, head or token, or `means` is missing for a mean ablation.
    """
    n_parts = {"head": config.n_heads, "token": length}.get(change.part, 1)
    if not 0 <= change.layer < config.n_layers:
        raise ValueError(f"got layer {change.layer}; this model has layers 0 to {config.n_layers - 1}")
    if n_parts is not None and not 0 <= change.index < n_parts:
        raise ValueError(f"got {change.part} {change.index}; expected 0 to {n_parts - 1}")
    if change.how == "mean" and means is None:
        raise ValueError("got no means; a mean ablation needs the result of measure_means")


def _apply(changes: Sequence[tuple[int | slice, Ablation]], mean: NDArray[np.float32] | None, value: Tensor) -> Tensor:
    """The value at a tap, (B, …), with the ablations applied."""
    changed = value.clone()
    mean_tensor = None if mean is None else torch.from_numpy(mean).to(value)  # H E or D
    for row, change in changes:
        if change.how == "uniform":
            scores = value[row, change.index]  # T T
            changed[row, change.index] = torch.where(torch.isfinite(scores), 0.0, scores)
            continue
        index = (row, change.index) if change.part in ("head", "token") else (row,)
        if change.how == "zero" or mean_tensor is None:
            changed[index] = 0.0
        else:
            changed[index] = mean_tensor[change.index] if change.part == "head" else mean_tensor
    return changed


Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class AblationResult:
    """Class probabilities of a text: `original` (C,) without ablation, `changed` (n, C) with each of n sets of them."""

    classes: tuple[str, ...]
    original: Floats
    changed: Floats

    @property
    def predicted(self) -> int:
        """The class predicted by the unchanged model."""
        return int(self.original.argmax())

    @property
    def effect(self) -> Floats:
        """The change in the probability of the originally predicted class with each set of ablations, (n,)."""
        effect: Floats = self.changed[:, self.predicted] - self.original[self.predicted]
        return effect

    def __repr__(self) -> str:
        """The original prediction, then for each setting the probability of that class and any new prediction."""
        names = [sanitize(name, limit=60) for name in self.classes]
        original = names[self.predicted]
        lines = [f"AblationResult: {original} {percentage(self.original[self.predicted])} without ablation"]
        for number, (row, effect) in enumerate(zip(self.changed, self.effect, strict=True)):
            new = int(row.argmax())
            flip = "" if new == self.predicted else f", now predicts {names[new]} {percentage(row[new])}"
            points = f"{100 * effect:+.1f} points"
            lines.append(f"  setting {number}: {original} {percentage(row[self.predicted])} ({points}){flip}")
        return "\n".join(lines)


def ablate(
    classifier: Predictor,
    text: str,
    settings: Sequence[Sequence[Ablation]],
    *,
    means: Means | None = None,
) -> AblationResult:
    """Class probabilities of one text under each of n settings, in as few batched passes as its length allows.

    Args:
        settings: the ablations made together in each setting; an empty setting changes nothing.
        means: required for mean ablation.

    Raises:
        TraceError: the text contains no word, or the model has no position vectors to ablate.
        ValueError: there is no such layer, head or token, or `means` is missing for a mean ablation.
    """
    ids = encode_for_trace(classifier, text).ids
    config = classifier.checkpoint.config.model
    length = config.max_length if config.fixed_length else len(ids)
    batch_size = max(1, max_texts_per_batch(length) - 1)  # every pass also includes the unchanged model
    passes: list[Floats] = []
    for first in range(0, max(1, len(settings)), batch_size):
        group = settings[first : first + batch_size]
        rows = [(row, change) for row, setting in enumerate(group, start=1) for change in setting]
        with trace(record=(), edit=edits_of(rows, config, length=length, means=means)):
            logits = classifier.logits(torch.tensor([ids]).expand(1 + len(group), -1))  # 1+n C
        passes.append(classifier.calibrate(logits, n_tokens=len(ids)).numpy())
    changed = np.concatenate([probabilities[1:] for probabilities in passes])
    return AblationResult(classifier.classes, passes[0][0], changed)


@dataclass(frozen=True, repr=False)
class PartEffects:
    """The change in the predicted class's probability when one part is ablated: `heads` (L, H), `feed_forward` (L,).

    `original` (C,) holds the probabilities without ablation.
    """

    original: Floats
    heads: Floats
    feed_forward: Floats

    def __repr__(self) -> str:
        """One line per layer, in percentage points."""
        lines = ["PartEffects: change in the predicted class's probability, in percentage points"]
        for layer, (heads, feed_forward_effect) in enumerate(zip(self.heads, self.feed_forward, strict=True)):
            cells = "  ".join(f"{100 * effect:+6.1f}" for effect in heads)
            lines.append(f"  layer {layer}  heads {cells}  feed-forward {100 * feed_forward_effect:+6.1f}")
        return "\n".join(lines)


def ablate_each(
    classifier: Predictor,
    text: str,
    *,
    heads: AblationMethod = "zero",
    feed_forward: OutputAblation = "zero",
    means: Means | None = None,
) -> PartEffects:
    """Ablate every head and every feed-forward block, one at a time.

    Raises:
        TraceError, ValueError: as for `ablate`.
    """
    config = classifier.checkpoint.config.model
    layers = range(config.n_layers)
    changes = [Ablation("head", heads, layer, head) for layer in layers for head in range(config.n_heads)]
    changes += [Ablation("feed_forward", feed_forward, layer) for layer in layers]
    result = ablate(classifier, text, [[change] for change in changes], means=means)
    n_heads = config.n_layers * config.n_heads
    return PartEffects(
        original=result.original,
        heads=result.effect[:n_heads].reshape(config.n_layers, config.n_heads),
        feed_forward=result.effect[n_heads:],
    )
