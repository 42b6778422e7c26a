"""The accuracy on many labelled rows with each part of the model switched off alone, measured once and kept with the
checkpoint."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts
from txcls.evaluation.evaluate import in_classes_of, predict_logits
from txcls.inspection.ablation.changes import Change, Means, Off, each_part, edits_of, measure_means
from txcls.inspection.random_texts import random_texts
from txcls.model import TextClassifier
from txcls.predictor import Predictor
from txcls.tap import trace

Floats = NDArray[np.float64]

MEAN_TEXTS = 1000
"""Validation texts over which the means are taken, so that they do not come from the test texts they are used on."""
MOST_TOKENS = 800_000
"""The most tokens of test rows that `measure_heads` reads in one pass; it makes about thirty. A random sample replaces
more."""


@dataclass(frozen=True)
class AccuracyEffects:
    """Accuracy on `n` rows of a split with a single part switched off: `heads` (L, H), `feed_forward` (L,).

    `accuracy` is that of the model as it is, `off` what replaces the part; `all_heads` is the accuracy with every head
    of every layer off together, None in records made before it was measured.
    """

    split: str
    n: int
    off: Off
    accuracy: float
    heads: Floats
    feed_forward: Floats
    all_heads: float | None = None

    @classmethod
    def of(cls, classifier: Predictor, *, off: Off = "zero") -> "AccuracyEffects | None":
        """Those that the checkpoint keeps; None if it keeps none, or none that fit."""
        config = classifier.checkpoint.config.model
        try:
            kept = classifier.checkpoint.metrics["heads"]
            heads, feed_forward = (np.asarray(kept[off][name], dtype=float) for name in ("heads", "feed_forward"))
            together = kept[off].get("all_heads")
            found = cls(
                split=str(kept["split"]),
                n=int(kept["n"]),
                off=off,
                accuracy=float(kept["accuracy"]),
                heads=heads,
                feed_forward=feed_forward,
                all_heads=None if together is None else float(together),
            )
        except (KeyError, TypeError, ValueError):
            return None
        fits = heads.shape == (config.n_layers, config.n_heads) and feed_forward.shape == (config.n_layers,)
        return found if fits else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for `metrics["heads"][off]`."""
        found: dict[str, Any] = {
            "heads": [[round(float(one), 6) for one in row] for row in self.heads],
            "feed_forward": [round(float(one), 6) for one in self.feed_forward],
        }
        return found if self.all_heads is None else {**found, "all_heads": round(self.all_heads, 6)}


def ablate_on_rows(
    classifier: Predictor, rows: LabelledTexts, *, off: Off = "zero", means: Means | None = None, split: str = "test"
) -> AccuracyEffects:
    """The accuracy on labelled rows with each head and each feed-forward block off, one at a time, and with no head.

    Args:
        classifier: its classes are those of the rows, in the same order.
        rows: at least one.
        off: what replaces the part.
        means: for "mean".
        split: which rows they are, as a name.

    Raises:
        ValueError: there are no rows, or "mean" came without `means`.
    """
    config = classifier.checkpoint.config.model
    if not len(rows):
        raise ValueError("got no rows; wanted at least one")
    texts = TokenisedTexts.encode(classifier.encoder, rows)
    changes = each_part(config, heads=off, off=off)
    parts = np.array([accuracy_with(classifier, texts, [change], means=means) for change in changes])
    split_at = config.n_layers * config.n_heads
    return AccuracyEffects(
        split=split,
        n=len(rows),
        off=off,
        accuracy=accuracy_with(classifier, texts, []),
        heads=parts[:split_at].reshape(config.n_layers, config.n_heads),
        feed_forward=parts[split_at:],
        all_heads=accuracy_with(classifier, texts, changes[:split_at], means=means),
    )


def accuracy_with(
    classifier: Predictor, texts: TokenisedTexts, changes: Sequence[Change], *, means: Means | None = None
) -> float:
    """The accuracy on labelled texts with these changes made together.

    Raises:
        ValueError: as `ablate`.
    """
    model = classifier.checkpoint.model
    assert isinstance(model, TextClassifier)
    everywhere = [(slice(None), change) for change in changes]
    edits = edits_of(everywhere, classifier.checkpoint.config.model, length=None, means=means)
    with trace(record=(), edit=edits), torch.inference_mode():
        logits = predict_logits(model, texts).numpy()  # N C
    return float((logits.argmax(axis=1) == texts.labels).mean())


def measure_heads(
    classifier: Predictor, *, data_path: Path | None = None, on_stage: Callable[[str], None] | None = None
) -> tuple[Means, dict[Off, AccuracyEffects]]:
    """The accuracy on test rows with each head and each feed-forward block set to zero, and to its mean.

    Where all test rows together have more than `MOST_TOKENS`, a sample of them is read, the same one every time.

    Args:
        classifier: nothing in it is changed.
        data_path: folder or file in the data set's published format; None for where `open_dataset` looks.
        on_stage: called with what is being done.

    Raises:
        DataError: the data are missing, have no test split, or have classes that the checkpoint has not.
    """
    tell = on_stage or (lambda message: None)
    checkpoint = classifier.checkpoint
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    tell("averaging the output of each part over validation texts")
    validation = training_and_validation(dataset, checkpoint.config.data)[1].texts
    means = measure_means(classifier, random_texts(validation, n=MEAN_TEXTS), split="validation")
    rows = sampled(classifier, in_classes_of(dataset.load("test"), checkpoint))
    effects: dict[Off, AccuracyEffects] = {}
    for off in ("zero", "mean"):
        tell(f"classifying {len(rows):,} test rows without each part ({off})")
        effects[off] = ablate_on_rows(classifier, rows, off=off, means=means, split="test")
    return means, effects


def sampled(classifier: Predictor, rows: LabelledTexts, *, most_tokens: int = MOST_TOKENS) -> LabelledTexts:
    """All rows, or a fixed random sample of about `most_tokens` tokens where they have more."""
    n_tokens = int(TokenisedTexts.encode(classifier.encoder, rows).lengths.sum())
    if n_tokens <= most_tokens:
        return rows
    n = max(1, len(rows) * most_tokens // n_tokens)
    return rows.subset(np.sort(np.random.default_rng(0).choice(len(rows), n, replace=False)).tolist())


def with_heads(checkpoint: Checkpoint, means: Means, effects: Mapping[Off, AccuracyEffects]) -> Checkpoint:
    """A copy of the checkpoint with the results of `measure_heads` in its record (and model card, once saved)."""
    heads: dict[str, Any] = {
        "split": effects["zero"].split,
        "n": effects["zero"].n,
        "accuracy": round(effects["zero"].accuracy, 6),
        **{off: found.to_dict() for off, found in effects.items()},
    }
    return replace(checkpoint, metrics={**checkpoint.metrics, "heads": heads, "means": means.to_dict()})
