"""What does each part of the model contribute? Ablate parts, and compare the predictions.

Ablations are edits at the model's taps: the model itself is not modified, and other threads are not affected
(txcls/tap.py). `ablate` and `ablate_each` work on one text, `ablate_on_rows` and `measure_heads` on labelled rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import ModelConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts
from txcls.evaluation.intervals import paired_difference
from txcls.evaluation.predict_logits import in_classes_of, predict_logits
from txcls.inference.predictor import Predictor
from txcls.inspection.random_texts import random_texts
from txcls.inspection.tracing import max_texts_per_batch, readable
from txcls.model import TextClassifier
from txcls.tap import Edit, trace
from txcls.text.checks import check_texts
from txcls.wording import percentage, shown

Part = Literal["head", "feed_forward", "positions", "token"]
AblationMethod = Literal["zero", "mean", "uniform", "shuffled"]
OutputAblation = Literal["zero", "mean"]


@dataclass(frozen=True, slots=True)
class Change:
    """The ablation of one part of the model.

    `part` is a head (`layer`, `index`), the feed-forward block of a layer (`layer`), the position vectors, or the first
    layer's input at one token (`index`). `how` is "zero" (zero ablation), "mean" (mean ablation, which needs `Means`),
    or, for a head, "uniform" (uniform attention to all unmasked keys) or "shuffled" (each query's weights are shuffled
    among its unmasked keys).

    Raises:
        ValueError: "uniform" or "shuffled" for a part that is not a head.
    """

    part: Part
    how: AblationMethod = "zero"
    layer: int = 0
    index: int = 0

    def __post_init__(self) -> None:
        if self.how in ("uniform", "shuffled") and self.part != "head":
            raise ValueError(f"got {self.how} for {self.part}; only a head has an attention pattern to replace")

    @property
    def tap(self) -> str:
        """The name of the tap that is edited."""
        if self.part == "head":
            # Scores rather than the pattern, since masked scores are recognised by their value, minus infinity.
            return f"layers.{self.layer}.attn.{'scores' if self.how in ('uniform', 'shuffled') else 'z'}"
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
    if config.positions != "none":
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
        encoding = classifier.tokenizer.encode(text)
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


def each_part(config: ModelConfig, *, heads: AblationMethod, feed_forward: OutputAblation) -> list[Change]:
    """An ablation of every head, layer by layer, and then of every feed-forward block."""
    layers = range(config.n_layers)
    every_head = [Change("head", heads, layer, head) for layer in layers for head in range(config.n_heads)]
    return every_head + [Change("feed_forward", feed_forward, layer) for layer in layers]


def edits_of(
    rows: Sequence[tuple[int | slice, Change]],
    config: ModelConfig,
    *,
    length: int | None,
    means: Means | None,
    seed: int = 0,
) -> dict[str, Edit]:
    """The edit for each tap that makes these ablations; each is paired with the rows of the batch that it applies to.

    Raises:
        ValueError: as for `check_change`.
    """
    by_tap: dict[str, list[tuple[int | slice, Change]]] = {}
    for row, change in rows:
        check_change(change, config, length=length, means=means)
        by_tap.setdefault(change.tap, []).append((row, change))
    return {
        tap: partial(_apply, changes, None if means is None else means.taps.get(tap), seed)
        for tap, changes in by_tap.items()
    }


def check_change(change: Change, config: ModelConfig, *, length: int | None, means: Means | None) -> None:
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


def _apply(
    changes: Sequence[tuple[int | slice, Change]], mean: NDArray[np.float32] | None, seed: int, value: Tensor
) -> Tensor:
    """The value at a tap, (B, …), with the ablations applied."""
    changed = value.clone()
    mean_tensor = None if mean is None else torch.from_numpy(mean).to(value)  # H E or D
    for row, change in changes:
        if change.part == "head" and change.how in ("uniform", "shuffled"):
            scores = value[row, change.index]  # T T
            uniform = torch.where(torch.isfinite(scores), 0.0, scores)
            changed[row, change.index] = uniform if change.how == "uniform" else _shuffled(scores, change, seed)
            continue
        index = (row, change.index) if change.part in ("head", "token") else (row,)
        if change.how == "zero" or mean_tensor is None:
            changed[index] = 0.0
        else:
            changed[index] = mean_tensor[change.index] if change.part == "head" else mean_tensor
    return changed


def _shuffled(scores: Tensor, change: Change, seed: int) -> Tensor:
    """Each query's scores, shuffled among its unmasked keys."""
    random = torch.Generator().manual_seed(seed * 1_000_003 + change.layer * 1009 + change.index)
    noise = torch.rand(scores.shape, generator=random).to(scores.device)
    mask = torch.isfinite(scores)  # T T
    shuffled_keys = torch.where(mask, noise, torch.inf).argsort(dim=-1)  # T T: the unmasked keys first, in random order
    keys = torch.where(mask, 0.0, 1.0).argsort(dim=-1, stable=True)  # T T: the same keys, in their original order
    return scores.scatter(-1, keys, scores.gather(-1, shuffled_keys))


Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Ablation:
    """Class probabilities of a text under n settings, `changed` (n, C), and without ablation, `original` (C,)."""

    classes: tuple[str, ...]
    original: Floats
    changed: Floats

    @property
    def predicted(self) -> int:
        """The class predicted by the unchanged model."""
        return int(self.original.argmax())

    @property
    def effect(self) -> Floats:
        """The change in the probability of the originally predicted class under each setting, (n,)."""
        effect: Floats = self.changed[:, self.predicted] - self.original[self.predicted]
        return effect

    def __repr__(self) -> str:
        """The original prediction, then for each setting the probability of that class and any new prediction."""
        names = [shown(name, limit=60) for name in self.classes]
        original = names[self.predicted]
        lines = [f"Ablation: {original} {percentage(self.original[self.predicted])} without ablation"]
        for number, (row, effect) in enumerate(zip(self.changed, self.effect, strict=True)):
            new = int(row.argmax())
            flip = "" if new == self.predicted else f", now predicts {names[new]} {percentage(row[new])}"
            points = f"{100 * effect:+.1f} points"
            lines.append(f"  setting {number}: {original} {percentage(row[self.predicted])} ({points}){flip}")
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
        settings: the ablations made together in each setting; an empty setting changes nothing.
        means: required for mean ablation.
        seed: seed for shuffled patterns; how a head is shuffled does not depend on the other ablations.

    Raises:
        TraceError: the text contains no word, or the model has no position vectors to ablate.
        ValueError: there is no such layer, head or token, or `means` is missing for a mean ablation.
    """
    ids = readable(classifier, text).ids
    config = classifier.checkpoint.config.model
    length = config.max_length if config.fixed_length else len(ids)
    batch_size = max(1, max_texts_per_batch(length) - 1)  # every pass also includes the unchanged model
    passes: list[Floats] = []
    for first in range(0, max(1, len(settings)), batch_size):
        group = settings[first : first + batch_size]
        rows = [(row, change) for row, setting in enumerate(group, start=1) for change in setting]
        with trace(record=(), edit=edits_of(rows, config, length=length, means=means, seed=seed)):
            logits = classifier.logits(torch.tensor([ids]).expand(1 + len(group), -1))  # 1+n C
        passes.append(classifier.calibrated(logits, n_tokens=len(ids)).numpy())
    changed = np.concatenate([probabilities[1:] for probabilities in passes])
    return Ablation(classifier.classes, passes[0][0], changed)


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
    settings = [[change] for change in each_part(config, heads=heads, feed_forward=feed_forward)]
    result = ablate(classifier, text, settings, means=means)
    n_heads = config.n_layers * config.n_heads
    return PartEffects(
        original=result.original,
        heads=result.effect[:n_heads].reshape(config.n_layers, config.n_heads),
        feed_forward=result.effect[n_heads:],
    )


MEAN_TEXTS = 1000
"""Number of texts from which means are computed: validation texts, since the means are applied to test texts."""
MAX_TOKENS = 800_000
"""Maximum number of tokens in each of the roughly thirty passes over the test rows; more rows than that are sampled."""


@dataclass(frozen=True)
class ChangedRows:
    """How many rows become wrong, and how many right, when a part is ablated.

    `low` and `high` are the 95 % interval of the accuracy lost, for paired proportions (Agresti & Min 2005).
    """

    wrong: int
    right: int
    low: float
    high: float

    @classmethod
    def of(cls, before: Bools, after: Bools) -> "ChangedRows":
        """From which of the same rows, (N,), are classified correctly without and with the ablation."""
        wrong, right = int((before & ~after).sum()), int((after & ~before).sum())
        interval = paired_difference(wrong, right, len(before))
        return cls(wrong, right, round(interval.low, 6), round(interval.high, 6))


@dataclass(frozen=True)
class AccuracyEffects:
    """Accuracy on `n` rows of a split with one part ablated by `method`: `heads` (L, H), `feed_forward` (L,).

    `accuracy` is the accuracy of the unchanged model, `all_heads` with all heads of all layers ablated together, and
    `all_uniform` with uniform attention in all of them; these two are None in older records. `changed` is about
    the rows that change with each head, layer by layer; None if read from a checkpoint, where the atlas stores it.
    """

    split: str
    n: int
    method: OutputAblation
    accuracy: float
    heads: Floats
    feed_forward: Floats
    all_heads: float | None = None
    all_uniform: float | None = None
    changed: tuple[ChangedRows, ...] | None = None

    @classmethod
    def of(cls, classifier: Predictor, *, method: OutputAblation = "zero") -> "AccuracyEffects | None":
        """The effects stored in the checkpoint; None if there are none, or if they do not fit the model."""
        config = classifier.checkpoint.config.model
        try:
            stored = classifier.checkpoint.metrics["heads"]
            heads, feed_forward = (np.asarray(stored[method][name], dtype=float) for name in ("heads", "feed_forward"))
            all_heads, all_uniform = stored[method].get("all_heads"), stored.get("all_uniform")
            effects = cls(
                split=str(stored["split"]),
                n=int(stored["n"]),
                method=method,
                accuracy=float(stored["accuracy"]),
                heads=heads,
                feed_forward=feed_forward,
                all_heads=None if all_heads is None else float(all_heads),
                all_uniform=None if all_uniform is None else float(all_uniform),
            )
        except (KeyError, TypeError, ValueError):
            return None
        fits = heads.shape == (config.n_layers, config.n_heads) and feed_forward.shape == (config.n_layers,)
        return effects if fits else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["heads"][method]`."""
        values: dict[str, Any] = {
            "heads": self.heads.astype(float).round(6).tolist(),
            "feed_forward": self.feed_forward.astype(float).round(6).tolist(),
        }
        return values if self.all_heads is None else {**values, "all_heads": round(self.all_heads, 6)}


def ablate_on_rows(
    classifier: Predictor, rows: LabelledTexts, *, method: OutputAblation = "zero", means: Means | None = None
) -> AccuracyEffects:
    """The accuracy on test rows with each head and feed-forward block ablated, one at a time, and with all heads.

    The classifier must have the classes of the rows, in the same order.

    Raises:
        ValueError: there are no rows, or `means` is missing for a mean ablation.
    """
    config = classifier.checkpoint.config.model
    if not len(rows):
        raise ValueError("got no rows; expected at least one")
    texts = TokenisedTexts.encode(classifier.tokenizer, rows)
    changes = each_part(config, heads=method, feed_forward=method)
    original = correct_with(classifier, texts, [])
    correct = [correct_with(classifier, texts, [change], means=means) for change in changes]
    accuracies = np.array([rows.mean() for rows in correct])
    n_heads = config.n_layers * config.n_heads
    uniform = each_part(config, heads="uniform", feed_forward=method)[:n_heads]
    return AccuracyEffects(
        split="test",
        n=len(rows),
        method=method,
        accuracy=float(original.mean()),
        heads=accuracies[:n_heads].reshape(config.n_layers, config.n_heads),
        feed_forward=accuracies[n_heads:],
        all_heads=accuracy_with(classifier, texts, changes[:n_heads], means=means),
        all_uniform=accuracy_with(classifier, texts, uniform),
        changed=tuple(ChangedRows.of(original, rows) for rows in correct[:n_heads]),
    )


def accuracy_with(
    classifier: Predictor, texts: TokenisedTexts, changes: Sequence[Change], *, means: Means | None = None
) -> float:
    """The accuracy on labelled texts with all of these ablations made together.

    Raises:
        ValueError: as for `ablate`.
    """
    return float(correct_with(classifier, texts, changes, means=means).mean())


def correct_with(
    classifier: Predictor, texts: TokenisedTexts, changes: Sequence[Change], *, means: Means | None = None
) -> Bools:
    """Which of the labelled texts are classified correctly, (N,), with all of these ablations made together.

    Raises:
        ValueError: as for `ablate`.
    """
    model = classifier.checkpoint.model
    assert isinstance(model, TextClassifier)
    in_all_rows = [(slice(None), change) for change in changes]
    edits = edits_of(in_all_rows, classifier.checkpoint.config.model, length=None, means=means)
    with trace(record=(), edit=edits), torch.inference_mode():
        logits = predict_logits(model, texts).numpy()  # N C
    correct: Bools = logits.argmax(axis=1) == texts.labels
    return correct


def measure_heads(
    classifier: Predictor, *, data_path: Path | None = None, on_stage: Callable[[str], None] | None = None
) -> tuple[Means, dict[OutputAblation, AccuracyEffects]]:
    """The accuracy on test rows under zero and mean ablation of each head and each feed-forward block.

    If the test rows have more than `MAX_TOKENS` tokens in total, a fixed sample is used.

    Args:
        data_path: folder or file in the data set's published format; None for the default location of `open_dataset`.
        on_stage: called with a description of each stage.

    Raises:
        DataError: the data are missing, have no test split, or have classes that the checkpoint does not have.
    """
    report = on_stage or (lambda message: None)
    checkpoint = classifier.checkpoint
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    report("averaging the output of each part over validation texts")
    validation = training_and_validation(dataset, checkpoint.config.data)[1].texts
    means = measure_means(classifier, random_texts(validation, n=MEAN_TEXTS), split="validation")
    rows = sampled(classifier, in_classes_of(dataset.load("test"), checkpoint))
    effects: dict[OutputAblation, AccuracyEffects] = {}
    for method in ("zero", "mean"):
        report(f"classifying {len(rows):,} test rows with each part ablated ({method})")
        effects[method] = ablate_on_rows(classifier, rows, method=method, means=means)
    return means, effects


def sampled(classifier: Predictor, rows: LabelledTexts) -> LabelledTexts:
    """All rows, or a fixed random sample with about `MAX_TOKENS` tokens if they have more."""
    n_tokens = int(TokenisedTexts.encode(classifier.tokenizer, rows).lengths.sum())
    if n_tokens <= MAX_TOKENS:
        return rows
    n = max(1, len(rows) * MAX_TOKENS // n_tokens)
    return rows.subset(np.sort(np.random.default_rng(0).choice(len(rows), n, replace=False)).tolist())


def with_heads(checkpoint: Checkpoint, means: Means, effects: Mapping[OutputAblation, AccuracyEffects]) -> Checkpoint:
    """A copy of the checkpoint with the results of `measure_heads` in its metrics and, once saved, its model card."""
    heads: dict[str, Any] = {
        "split": effects["zero"].split,
        "n": effects["zero"].n,
        "accuracy": round(effects["zero"].accuracy, 6),
        **({} if effects["zero"].all_uniform is None else {"all_uniform": round(effects["zero"].all_uniform, 6)}),
        **{method: measured.to_dict() for method, measured in effects.items()},
    }
    return checkpoint.with_metrics(heads=heads, means=means.to_dict())
