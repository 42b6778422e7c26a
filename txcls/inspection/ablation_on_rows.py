"""Ablate parts on the rows of a data set: how much accuracy is lost without each part?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts
from txcls.evaluation.intervals import paired_difference
from txcls.evaluation.predict_logits import in_classes_of, predict_logits
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Bools, Change, Floats, Means, OutputAblation, each_part, edits_of, measure_means
from txcls.model import TextClassifier
from txcls.tap import trace

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


def random_texts(texts: Sequence[str], *, n: int, seed: int = 0) -> list[str]:
    """`n` texts in random order, drawn without replacement, or all texts if there are fewer."""
    return [texts[int(index)] for index in np.random.default_rng(seed).permutation(len(texts))[:n]]
