"""Changes to parts of the model, made as edits at its taps: zeros, a mean, even or shuffled weights instead.

The model itself stays as it is, and other threads are not affected (txcls/tap.py).
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
from txcls.predictor import Predictor
from txcls.tap import Edit, trace
from txcls.text.given import given_texts

Part = Literal["head", "feed_forward", "positions", "token"]
How = Literal["zero", "mean", "uniform", "shuffled"]
Off = Literal["zero", "mean"]


@dataclass(frozen=True, slots=True)
class Change:
    """One part of the model, and what replaces it.

    `part` is a head of a layer (`layer`, `index`), the feed-forward block of a layer (`layer`), the position vectors,
    or the input of the first layer for one token (`index`). `how` replaces its output by zeros ("zero") or by its mean
    ("mean", which needs `Means`); a head may also attend to all unmasked keys evenly ("uniform"), or have the weights
    of each query shuffled among its unmasked keys ("shuffled").

    Raises:
        ValueError: "uniform" or "shuffled" for a part that is not a head.
    """

    part: Part
    how: How = "zero"
    layer: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        if self.how in ("uniform", "shuffled") and self.part != "head":
            raise ValueError(f"got {self.how} for {self.part}; only a head has an attention pattern to replace")

    @property
    def tap(self) -> str:
        """The name of the tap at which the change is made."""
        if self.part == "head":
            # Scores rather than the pattern: masked ones are minus infinity there, and stay so.
            return f"layers.{self.layer}.attn.{'scores' if self.how in ('uniform', 'shuffled') else 'z'}"
        if self.part == "feed_forward":
            return f"layers.{self.layer}.ff_out"
        return "embeddings.positions" if self.part == "positions" else "embeddings.out"


@dataclass(frozen=True)
class Means:
    """The mean output of each part over the tokens of `n_texts` texts: tap name to (H, E) or (D,)."""

    taps: Mapping[str, NDArray[np.float32]]
    n_texts: int
    split: str

    @classmethod
    def of(cls, classifier: Predictor) -> "Means | None":
        """Those that `measure_means` found and the checkpoint keeps; None if it keeps none, or none that fit."""
        try:
            kept = classifier.checkpoint.metrics["means"]
            taps = {name: np.asarray(values, dtype=np.float32) for name, values in kept["taps"].items()}
            found = cls(taps, int(kept["n"]), str(kept["split"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return found if {name: mean.shape for name, mean in taps.items()} == _mean_shapes(classifier) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, rounded to four places."""
        taps = {name: np.round(mean.astype(np.float64), 4).tolist() for name, mean in self.taps.items()}
        return {"split": self.split, "n": self.n_texts, "taps": taps}


def _mean_shapes(classifier: Predictor) -> dict[str, tuple[int, ...]]:
    """The taps whose mean may replace a part, with the shape of one token's values there."""
    config = classifier.checkpoint.config.model
    shapes: dict[str, tuple[int, ...]] = {"embeddings.out": (config.d_model,)}
    if config.positions != "none":
        shapes["embeddings.positions"] = (config.d_model,)
    for layer in range(config.n_layers):
        shapes[f"layers.{layer}.attn.z"] = (config.n_heads, config.d_head)
        shapes[f"layers.{layer}.ff_out"] = (config.d_model,)
    return shapes


def measure_means(classifier: Predictor, texts: Sequence[str], *, split: str) -> Means:
    """The mean output of each part over all tokens of these texts.

    Args:
        classifier: nothing in it is changed.
        texts: of the kind it was trained on; those without a token are left out.
        split: which rows they are, as a name.

    Raises:
        ValueError: no text holds a token.
    """
    names = list(_mean_shapes(classifier))
    sums: dict[str, Tensor] = {}
    n_texts = n_tokens = 0
    for text in given_texts(texts):
        encoding = classifier.encoder.encode(text)
        if not encoding.has_words:
            continue
        with trace(record=names) as opened:
            classifier.logits(torch.tensor([encoding.ids]))
        for name in names:
            value = opened[name][0].detach().double()  # H T E or T D
            sums[name] = sums.get(name, 0.0) + value.sum(dim=-2)
        n_texts, n_tokens = n_texts + 1, n_tokens + value.shape[-2]
    if not n_texts:
        raise ValueError("got no text that holds a token; the mean needs at least one")
    return Means({name: (total / n_tokens).float().numpy() for name, total in sums.items()}, n_texts, split)


def each_part(config: ModelConfig, *, heads: How, off: Off) -> list[Change]:
    """A change for every head, layer by layer, and then for every feed-forward block."""
    layers = range(config.n_layers)
    every_head = [Change("head", heads, layer, head) for layer in layers for head in range(config.n_heads)]
    return every_head + [Change("feed_forward", off, layer) for layer in layers]


def edits_of(
    rows: Sequence[tuple[int | slice, Change]],
    config: ModelConfig,
    *,
    length: int | None,
    means: Means | None,
    seed: int = 0,
) -> dict[str, Edit]:
    """Tap name to the edit that makes these changes, each in its row (or rows) of the batch.

    Raises:
        ValueError: as `check_change`.
    """
    by_tap: dict[str, list[tuple[int | slice, Change]]] = {}
    for row, change in rows:
        check_change(change, config, length=length, means=means)
        by_tap.setdefault(change.tap, []).append((row, change))
    return {
        tap: partial(_apply, todo, None if means is None else means.taps.get(tap), seed) for tap, todo in by_tap.items()
    }


def check_change(change: Change, config: ModelConfig, *, length: int | None, means: Means | None) -> None:
    """Check a change against a model and a text of `length` tokens (None for any).

    Raises:
        ValueError: there is no such layer, head or token, or no mean to change to.
    """
    most = {"head": config.n_heads, "token": length}.get(change.part, 1)
    if not 0 <= change.layer < config.n_layers:
        raise ValueError(f"got layer {change.layer}; this model has layers 0 to {config.n_layers - 1}")
    if most is not None and not 0 <= change.index < most:
        raise ValueError(f"got {change.part} {change.index}; wanted 0 to {most - 1}")
    if change.how == "mean" and means is None:
        raise ValueError("a change to the mean needs the means of reference texts; measure_means finds them")


def _apply(
    todo: Sequence[tuple[int | slice, Change]], mean: NDArray[np.float32] | None, seed: int, value: Tensor
) -> Tensor:
    """The value at a tap, (B, …), with the changes made."""
    changed = value.clone()
    mean_tensor = None if mean is None else torch.from_numpy(mean).to(value)  # H E or D
    for row, change in todo:
        if change.part == "head" and change.how in ("uniform", "shuffled"):
            scores = value[row, change.index]  # T T
            changed[row, change.index] = _even(scores) if change.how == "uniform" else _shuffled(scores, change, seed)
            continue
        place = (row, change.index) if change.part in ("head", "token") else (row,)
        if change.how == "zero" or mean_tensor is None:
            changed[place] = 0.0
        else:
            changed[place] = mean_tensor[change.index] if change.part == "head" else mean_tensor
    return changed


def _even(scores: Tensor) -> Tensor:
    """Equal scores for all unmasked query–key pairs."""
    return torch.where(torch.isfinite(scores), 0.0, scores)


def _shuffled(scores: Tensor, change: Change, seed: int) -> Tensor:
    """The scores of each query shuffled among its unmasked keys."""
    random = torch.Generator().manual_seed(seed * 1_000_003 + change.layer * 1009 + change.index)
    noise = torch.rand(scores.shape, generator=random).to(scores.device)
    mask = torch.isfinite(scores)  # T T
    drawn = torch.where(mask, noise, torch.inf).argsort(dim=-1)  # T T: the unmasked keys first, in random order
    places = torch.where(mask, 0.0, 1.0).argsort(dim=-1, stable=True)  # T T: the same keys, in their own order
    return scores.scatter(-1, places, scores.gather(-1, drawn))
