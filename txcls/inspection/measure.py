"""Measured once over many texts and kept with the checkpoint: what each head is worth, how well scores explain."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from txcls.checkpoint import Checkpoint
from txcls.classifier import Classifier
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.inspection.ablation import AccuracyEffects, Means, Off, ablate_on_rows, measure_means
from txcls.inspection.attribution import (
    ExplanationAverages,
    average_explanations,
    draw_rows,
    explanation_figures,
)

MEAN_TEXTS = 1000
"""Validation texts over which the means for ablation are taken: not test texts, on which the effect is measured."""


def measure_heads(
    classifier: Classifier, *, data_path: Path | None = None, on_stage: Callable[[str], None] | None = None
) -> tuple[Means, dict[Off, AccuracyEffects]]:
    """The accuracy on all test rows with each head, and each feed-forward block, switched off; to zero and to the mean.

    Args:
        classifier: nothing in it is changed.
        data_path: folder or file in the data set's published format; None looks where `open_dataset` says.
        on_stage: told what is going on.

    Raises:
        DataError: the data are not there, have no such split, or their classes are not the checkpoint's.
    """
    from txcls.evaluation import in_classes_of

    tell = on_stage or (lambda message: None)
    checkpoint = classifier.checkpoint
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    tell("averaging what each part writes over validation texts")
    validation = training_and_validation(dataset, checkpoint.config.data)[1].texts
    means = measure_means(classifier, draw_rows(validation, n=MEAN_TEXTS), split="validation")
    rows = in_classes_of(dataset.load("test"), checkpoint)
    effects: dict[Off, AccuracyEffects] = {}
    for off in ("zero", "mean"):
        tell(f"classifying {len(rows):,} test rows without each part ({off})")
        effects[off] = ablate_on_rows(classifier, rows, off=off, means=means, split="test")
    return means, effects


def with_heads(checkpoint: Checkpoint, means: Means, effects: Mapping[Off, AccuracyEffects]) -> Checkpoint:
    """A copy of the checkpoint whose record (and model card, once saved) says what `measure_heads` found."""
    heads: dict[str, Any] = {
        "split": effects["zero"].split,
        "n": effects["zero"].n,
        "accuracy": round(effects["zero"].accuracy, 6),
        **{off: found.to_dict() for off, found in effects.items()},
    }
    return replace(checkpoint, metrics={**checkpoint.metrics, "heads": heads, "means": means.to_dict()})


def measure_explanations(
    classifier: Classifier,
    *,
    n: int = 200,
    data_path: Path | None = None,
    on_text: Callable[[int, int], None] | None = None,
) -> ExplanationAverages:
    """The five ways to score words, judged on `n` test texts drawn at random (always the same ones).

    Args:
        classifier: nothing in it is changed.
        n: how many texts; those without a token are left out.
        data_path: as for `measure_heads`.
        on_text: told after each text how many are done, and of how many.

    Raises:
        DataError: the data are not there, or have no test split.
        ValueError: no text holds a token, or `n` is below 1.
    """
    texts = draw_rows(open_dataset(classifier.checkpoint.config.data, path=data_path).load("test").texts, n=n)
    figures = []
    for place, text in enumerate(texts, start=1):
        if classifier.encoder.encode(text).has_words:
            figures.append(explanation_figures(classifier, text))
        if on_text is not None:
            on_text(place, len(texts))
    return average_explanations(figures, split="test")


def with_explanations(checkpoint: Checkpoint, averages: ExplanationAverages) -> Checkpoint:
    """A copy of the checkpoint whose record says what `measure_explanations` found."""
    return replace(checkpoint, metrics={**checkpoint.metrics, "explanations": averages.to_dict()})
