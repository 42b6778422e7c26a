"""Metrics from probabilities and true labels: accuracy, macro-F1, calibration error."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.schema import ClassMetrics, Metrics, ReliabilityBin, Slice
from txcls.wording import percentage

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]

LENGTH_BOUNDS = (10, 20, 40, 80, 160, 320)
"""Upper bounds of the groups by number of tokens; the last group has none."""
MIN_ROWS = 20
"""The accuracy on fewer rows is not stated."""


def accuracy_cell(accuracy: float, n: int) -> str:
    """The accuracy on n rows as a cell of a table or the number of a bar, unless there are too few rows."""
    return "–" if not n else "too few" if n < MIN_ROWS else percentage(accuracy)


def reliability_bins(probabilities: Floats, labels: Integers, *, n_bins: int = 15) -> tuple[ReliabilityBin, ...]:
    """Predictions in equal-width bins of confidence, empty bins included (Guo et al. 2017).

    `probabilities` are (N, C), `labels` (N,) the true classes.
    """
    confidence = probabilities.max(axis=1)  # N
    right = probabilities.argmax(axis=1) == labels  # N
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bin_index = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)  # N
    bins = []
    for index in range(n_bins):
        inside = bin_index == index
        n = int(inside.sum())
        bins.append(
            ReliabilityBin(
                low=float(edges[index]),
                high=float(edges[index + 1]),
                n=n,
                confidence=float(confidence[inside].mean()) if n else 0.0,
                accuracy=float(right[inside].mean()) if n else 0.0,
            )
        )
    return tuple(bins)


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Mean gap between confidence and accuracy over the bins, weighted by number of rows (Guo et al. 2017, eq. 3)."""
    return sum(part.n * abs(part.confidence - part.accuracy) for part in bins) / sum(part.n for part in bins)


def accuracy_by_length(lengths: Integers, right: NDArray[np.bool_]) -> tuple[Slice, ...]:
    """Accuracy of N rows grouped by their numbers of tokens (N,); empty groups are left out."""
    group = np.searchsorted(LENGTH_BOUNDS, lengths, side="left")  # N
    slices = []
    for index, (over, up_to) in enumerate(pairwise([None, *LENGTH_BOUNDS, None])):
        inside = group == index
        if inside.any():
            slices.append(Slice(over, up_to, int(inside.sum()), round(float(right[inside].mean()), 6)))
    return tuple(slices)


def evaluate_probabilities(probabilities: Floats, labels: Integers, *, classes: Sequence[str]) -> Metrics:
    """All metrics of (N, C) probabilities against (N,) true labels.

    Raises:
        ValueError: there are no rows, or the shapes do not match.
    """
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    if not len(labels) or probabilities.shape != (len(labels), len(classes)):
        raise ValueError(
            f"got probabilities {probabilities.shape} for {len(labels)} labels and {len(classes)} classes; "
            "expected one row per label, at least one, and one column per class"
        )
    predicted = probabilities.argmax(axis=1)
    class_ids = np.arange(len(classes))
    precision, recall, f1, support = precision_recall_fscore_support(
        labels, predicted, labels=class_ids, zero_division=0.0
    )
    has_rows = support > 0  # without rows, a class has no recall and would only lower the mean
    bins = reliability_bins(probabilities, labels)
    true_probability = np.clip(probabilities[np.arange(len(labels)), labels].astype(np.float64), 1e-12, 1.0)
    return Metrics(
        n=len(labels),
        accuracy=float((predicted == labels).mean()),
        macro_f1=float(f1[has_rows].mean()),
        ece=expected_calibration_error(bins),
        log_loss=float(np.log(1 / true_probability).mean()),
        per_class=tuple(
            ClassMetrics(label, float(p), float(r), float(f), int(s))
            for label, p, r, f, s in zip(classes, precision, recall, f1, support, strict=True)
        ),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion_matrix(labels, predicted, labels=class_ids)),
        reliability=bins,
    )


def auroc(inside: Floats, outside: Floats) -> float:
    """Probability that a random in-scope text scores higher than a random out-of-scope one; 0.5 is chance."""
    from sklearn.metrics import roc_auc_score

    truth = np.concatenate([np.ones(len(inside)), np.zeros(len(outside))])
    return float(roc_auc_score(truth, np.concatenate([inside, outside])))
