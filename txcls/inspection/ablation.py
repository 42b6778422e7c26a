"""Switching parts of a classifier off, or replacing them, and watching its answer move; all heads in one batched pass.

Every row of a batch holds the same text under another setting: the parts that are changed in it. The changes are edits
at taps (txcls/tap.py), so that the model itself stays as it is and other threads never notice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from txcls.classifier import Classifier
from txcls.config import ModelConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.inspection.tracing import readable, texts_together
from txcls.text.vocabulary import UNK

if TYPE_CHECKING:
    from torch import Tensor

    from txcls.tap import Edit

Part = Literal["head", "feed_forward", "positions", "bigrams", "phrases", "token"]
How = Literal["zero", "mean", "uniform", "shuffled"]
Off = Literal["zero", "mean"]
Floats = NDArray[np.float64]

VOTES, PHRASES = "phrases.votes", "phrases.out"


@dataclass(frozen=True, slots=True)
class Change:
    """One part of the model, and what is put in its place.

    `part` is a head of a layer (`layer`, `index`), the feed-forward block of a layer (`layer`), the vectors of
    positions or of bigrams, the votes of phrases, or all that is known of one token (`index`) before the first layer,
    its part in phrases included. `how` puts zeros there
    ("zero"), or what the part writes on average ("mean", which needs `Means`); a head may also spread its attention
    evenly ("uniform"), or deal each token's weights out anew among the same tokens ("shuffled").

    Raises:
        ValueError: only a head has a pattern to make uniform or to shuffle.
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
            # Scores rather than the pattern: what may not be looked at is minus infinity there, and stays so.
            return f"layers.{self.layer}.attn.{'scores' if self.how in ('uniform', 'shuffled') else 'z'}"
        if self.part == "feed_forward":
            return f"layers.{self.layer}.ff_out"
        return {
            "positions": "embeddings.positions",
            "bigrams": "embeddings.ngrams",
            "phrases": PHRASES,
            "token": "embeddings.out",
        }[self.part]


@dataclass(frozen=True)
class Means:
    """What each part writes on average over the tokens of `n_texts` texts, phrases over the texts themselves: tap name
    to (H, E), (D,) or (C,)."""

    taps: Mapping[str, NDArray[np.float32]]
    n_texts: int
    split: str

    @classmethod
    def of(cls, classifier: Classifier) -> "Means | None":
        """Those that `measure_means` found and the checkpoint keeps; None where it has none, or none that fit."""
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


def _mean_shapes(classifier: Classifier) -> dict[str, tuple[int, ...]]:
    """The taps whose mean may be put in a part's place, with the shape of one token's values there."""
    config = classifier.checkpoint.config.model
    shapes: dict[str, tuple[int, ...]] = {"embeddings.out": (config.d_model,)}
    if config.ngram_buckets:
        shapes["embeddings.ngrams"] = (config.d_model,)
    if config.positions != "none":
        shapes["embeddings.positions"] = (config.d_model,)
    if config.phrases:
        shapes[PHRASES] = (len(classifier.classes),)
    for layer in range(config.n_layers):
        shapes[f"layers.{layer}.attn.z"] = (config.n_heads, config.d_head)
        shapes[f"layers.{layer}.ff_out"] = (config.d_model,)
    return shapes


@dataclass(frozen=True)
class Ablation:
    """Class probabilities under n settings, (n, C), beside those of the model as it is, `original` (C,).

    Attributes:
        effect: (n,) by how much each setting moves the probability of the class that wins originally.
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


def ablate(
    classifier: Classifier,
    text: str,
    settings: Sequence[Sequence[Change]],
    *,
    means: Means | None = None,
    seed: int = 0,
) -> Ablation:
    """One text under each of n settings, in as few batched passes as its length allows.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        settings: what is changed in each row; an empty one changes nothing.
        means: for changes to the mean.
        seed: of shuffled patterns; a head's shuffle does not depend on what else is changed.

    Raises:
        TraceError: the text holds no token to read, or the model has no such part (positions, bigrams, phrases).
        ValueError: a layer, head or token is not there, or a change to the mean came without `means`.
    """
    ids = readable(classifier, text).ids
    config = classifier.checkpoint.config.model
    length = config.max_length if config.fixed_length else len(ids)
    for setting in settings:  # before anything is computed
        for change in setting:
            _check(change, config, length=length, means=means)
    together = max(1, texts_together(length) - 1)  # the model as it is takes part in every pass
    groups = [settings[first : first + together] for first in range(0, len(settings), together)] or [settings]
    found = [_ablate_together(classifier, ids, group, length=length, means=means, seed=seed) for group in groups]
    return Ablation(classifier.classes, found[0][0], np.concatenate([one[1:] for one in found]))


def _ablate_together(
    classifier: Classifier,
    ids: Sequence[int],
    settings: Sequence[Sequence[Change]],
    *,
    length: int,
    means: Means | None,
    seed: int,
) -> Floats:
    """Class probabilities (1 + n, C) of token ids (T,): of the model as it is, then under each of n settings."""
    import torch

    from txcls.tap import trace

    row_of_ids = torch.tensor([ids])  # 1 T
    rows = [(row, change) for row, setting in enumerate(settings, start=1) for change in setting]
    config = classifier.checkpoint.config.model
    edits = _edits(rows, config, length=length, means=means, seed=seed)
    silent = [(row, change.index) for row, change in rows if change.part == "token"]
    if config.phrases and silent:
        edits[VOTES] = _without_phrases(classifier, row_of_ids, silent)
    with trace(record=(), edit=edits):
        logits = classifier.logits(row_of_ids.expand(1 + len(settings), -1))  # 1+n C
    probabilities: Floats = classifier.calibrated(logits).numpy()
    return probabilities


@dataclass(frozen=True)
class PartEffects:
    """By how much the winner's probability moves when one part alone is changed: `heads` (L, H), `feed_forward` (L,).

    `original` (C,) are the probabilities of the model as it is.
    """

    original: Floats
    heads: Floats
    feed_forward: Floats


def ablate_each(
    classifier: Classifier, text: str, *, heads: How = "zero", off: Off = "zero", means: Means | None = None
) -> PartEffects:
    """Change every head, and switch off every feed-forward block, each alone.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        heads: what is done with a head.
        off: what is put in the place of a feed-forward block.
        means: for "mean".

    Raises:
        TraceError, ValueError: as `ablate`.
    """
    config = classifier.checkpoint.config.model
    settings = [[change] for change in _each(config, heads=heads, off=off)]
    result = ablate(classifier, text, settings, means=means)
    split = config.n_layers * config.n_heads
    return PartEffects(
        original=result.original,
        heads=result.effect[:split].reshape(config.n_layers, config.n_heads),
        feed_forward=result.effect[split:],
    )


def _each(config: ModelConfig, *, heads: How, off: Off) -> list[Change]:
    """Every head, layer by layer, and then every feed-forward block."""
    layers = range(config.n_layers)
    every_head = [Change("head", heads, layer, head) for layer in layers for head in range(config.n_heads)]
    return every_head + [Change("feed_forward", off, layer) for layer in layers]


def _edits(
    rows: Sequence[tuple[int | slice, Change]],
    config: ModelConfig,
    *,
    length: int | None,
    means: Means | None,
    seed: int = 0,
) -> dict[str, "Edit"]:
    """Tap name to the edit that makes these changes, each in its row (or rows) of the batch."""
    by_tap: dict[str, list[tuple[int | slice, Change]]] = {}
    for row, change in rows:
        _check(change, config, length=length, means=means)
        by_tap.setdefault(change.tap, []).append((row, change))
    return {
        tap: partial(_make, todo, None if means is None else means.taps.get(tap), seed) for tap, todo in by_tap.items()
    }


def _without_phrases(classifier: Classifier, ids: "Tensor", silent: Sequence[tuple[int, int]]) -> "Edit":
    """The edit of the votes that takes phrases with a silent token out of them, by (row, place)."""
    import torch

    from txcls.model import TextClassifier

    model = classifier.checkpoint.model
    assert isinstance(model, TextClassifier) and model.phrases is not None
    rows = sorted({row for row, _ in silent})
    changed = ids.repeat(len(rows), 1)  # rows T
    for row, place in silent:
        if place < ids.shape[1]:  # else it is padding, which is in no phrase
            changed[rows.index(row), place] = UNK
    with torch.inference_mode():
        votes = model.phrases.by_token(model.pad(changed))  # rows T C

    def edit(value: "Tensor") -> "Tensor":
        replaced = value.clone()
        replaced[rows] = votes
        return replaced

    return edit


def _check(change: Change, config: ModelConfig, *, length: int | None, means: Means | None) -> None:
    most = {"head": config.n_heads, "token": length}.get(change.part, 1)
    if not 0 <= change.layer < config.n_layers:
        raise ValueError(f"got layer {change.layer}; this model has layers 0 to {config.n_layers - 1}")
    if most is not None and not 0 <= change.index < most:
        raise ValueError(f"got {change.part} {change.index}; wanted 0 to {most - 1}")
    if change.how == "mean" and means is None:
        raise ValueError("a change to the mean needs the means of reference texts; measure_means finds them")


def _make(
    todo: Sequence[tuple[int | slice, Change]], mean: NDArray[np.float32] | None, seed: int, value: "Tensor"
) -> "Tensor":
    """The value at a tap, (B, …), with the changes made."""
    import torch

    changed = value.clone()
    kept = None if mean is None else torch.from_numpy(mean).to(value)  # H E, D or C
    for row, change in todo:
        if change.part == "head" and change.how in ("uniform", "shuffled"):
            scores = value[row, change.index]  # T T
            changed[row, change.index] = _level(scores) if change.how == "uniform" else _deal(scores, change, seed)
            continue
        place = (row, change.index) if change.part in ("head", "token") else (row,)
        if change.how == "zero" or kept is None:
            changed[place] = 0.0
        else:
            changed[place] = kept[change.index] if change.part == "head" else kept
    return changed


def _level(scores: "Tensor") -> "Tensor":
    """Equal scores wherever looking is allowed."""
    import torch

    return torch.where(torch.isfinite(scores), 0.0, scores)


def _deal(scores: "Tensor", change: Change, seed: int) -> "Tensor":
    """Each row's scores in another order, among the places where looking is allowed."""
    import torch

    random = torch.Generator().manual_seed(seed * 1_000_003 + change.layer * 1009 + change.index)
    noise = torch.rand(scores.shape, generator=random).to(scores.device)
    allowed = torch.isfinite(scores)
    drawn = torch.where(allowed, noise, torch.inf).argsort(dim=-1)  # T T: the allowed places first, in random order
    places = torch.where(allowed, 0.0, 1.0).argsort(dim=-1, stable=True)  # T T: the same places, in their own order
    return scores.scatter(-1, places, scores.gather(-1, drawn))


def measure_means(classifier: Classifier, texts: Sequence[str], *, split: str) -> Means:
    """What each part writes on average over all tokens of these texts (phrases: over the texts), to put in its place.

    Args:
        classifier: nothing in it is changed.
        texts: some of the kind it was trained on; those without a token are left out.
        split: which rows they are, for people.

    Raises:
        ValueError: no text holds a token.
    """
    import torch

    from txcls.tap import trace

    names = list(_mean_shapes(classifier))
    sums: dict[str, Tensor] = {}
    n_texts = n_tokens = 0
    for text in texts:
        encoding = classifier.encoder.encode(text)
        if not encoding.has_words:
            continue
        with trace(record=names) as opened:
            classifier.logits(torch.tensor([encoding.ids]))
        for name in names:
            value = opened[name][0].detach().double()  # H T E, T D, or C
            sums[name] = sums.get(name, 0.0) + (value if name == PHRASES else value.sum(dim=-2))
        n_texts, n_tokens = n_texts + 1, n_tokens + value.shape[-2]
    if not n_texts:
        raise ValueError("got no text that holds a token; the mean needs at least one")
    means = {name: total / (n_texts if name == PHRASES else n_tokens) for name, total in sums.items()}
    return Means({name: mean.float().numpy() for name, mean in means.items()}, n_texts, split)


@dataclass(frozen=True)
class AccuracyEffects:
    """Accuracy on `n` rows of a split with one part alone switched off: `heads` (L, H), `feed_forward` (L,).

    `accuracy` is that of the model as it is, `off` what stands in the part's place.
    """

    split: str
    n: int
    off: Off
    accuracy: float
    heads: Floats
    feed_forward: Floats

    @classmethod
    def of(cls, classifier: Classifier, *, off: Off = "zero") -> "AccuracyEffects | None":
        """Those that the checkpoint keeps; None where it has none, or none that fit."""
        config = classifier.checkpoint.config.model
        try:
            kept = classifier.checkpoint.metrics["heads"]
            heads, feed_forward = (np.asarray(kept[off][name], dtype=float) for name in ("heads", "feed_forward"))
            found = cls(str(kept["split"]), int(kept["n"]), off, float(kept["accuracy"]), heads, feed_forward)
        except (KeyError, TypeError, ValueError):
            return None
        fits = heads.shape == (config.n_layers, config.n_heads) and feed_forward.shape == (config.n_layers,)
        return found if fits else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: what stands under `metrics["heads"][off]`."""
        return {
            "heads": [[round(float(one), 6) for one in row] for row in self.heads],
            "feed_forward": [round(float(one), 6) for one in self.feed_forward],
        }


def ablate_on_rows(
    classifier: Classifier, rows: LabelledTexts, *, off: Off = "zero", means: Means | None = None, split: str = "test"
) -> AccuracyEffects:
    """The accuracy on labelled rows with each head, and each feed-forward block, switched off alone.

    Args:
        classifier: one that knows the classes of the rows, in their order.
        rows: at least one.
        off: what is put in the part's place.
        means: for "mean".
        split: which rows they are, for people.

    Raises:
        ValueError: there are no rows, or "mean" came without `means`.
    """
    from txcls.evaluation import predict_logits
    from txcls.model import TextClassifier
    from txcls.tap import trace

    model, config = classifier.checkpoint.model, classifier.checkpoint.config.model
    assert isinstance(model, TextClassifier)
    if not len(rows):
        raise ValueError("got no rows; wanted at least one")
    texts = TokenisedTexts.encode(classifier.encoder, rows)

    def accuracy(changes: Sequence[Change]) -> float:
        everywhere = [(slice(None), change) for change in changes]
        with trace(record=(), edit=_edits(everywhere, config, length=None, means=means)):
            logits = predict_logits(model, texts).numpy()  # N C
        return float((logits.argmax(axis=1) == texts.labels).mean())

    parts = np.array([accuracy([change]) for change in _each(config, heads=off, off=off)])
    split_at = config.n_layers * config.n_heads
    return AccuracyEffects(
        split=split,
        n=len(rows),
        off=off,
        accuracy=accuracy([]),
        heads=parts[:split_at].reshape(config.n_layers, config.n_heads),
        feed_forward=parts[split_at:],
    )
