"""Metrics from probabilities and true labels, and 95 % intervals."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.comparison import Measured
from txcls.checkpoint.schema import ClassMetrics, Metrics, ReliabilityBin, Slice
from txcls.text.formatting import percentage

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]

LENGTH_BOUNDS = (10, 20, 40, 80, 160, 320)
"""Upper bounds of the groups by number of tokens; the last group has none."""
MIN_ROWS = 20
"""The accuracy on fewer rows is not stated."""
Z = 1.959963984540054
"""Half the width of a 95 % interval in standard errors."""
RESAMPLES, MAX_CORRECTED = 1000, 1000
"""Number of bootstrap resamples; with more kinds of rows than the second number, the interval is not corrected."""


def accuracy_cell(accuracy: float, n: int) -> str:
    """The accuracy on n rows, for a table or a bar: "too few" for fewer than MIN_ROWS rows, "–" for none."""
    return "–" if not n else "too few" if n < MIN_ROWS else percentage(accuracy)


def reliability_bins(probabilities: Floats, labels: Integers, *, n_bins: int = 15) -> tuple[ReliabilityBin, ...]:
    """Predictions in equal-width bins of confidence, empty bins included (Guo et al. 2017).

    `probabilities` are (N, C), `labels` (N,) the true classes.
    """
    confidence = probabilities.max(axis=1)  # N
    right = probabilities.argmax(axis=1) == labels  # N
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    bin_index = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)  # N
    counts = np.bincount(bin_index, minlength=n_bins)

    def means(values: NDArray[Any]) -> Floats:
        return np.bincount(bin_index, weights=values, minlength=n_bins) / np.maximum(counts, 1)

    columns = (edges[:-1], edges[1:], counts, means(confidence), means(right))
    return tuple(ReliabilityBin(*row) for row in zip(*(column.tolist() for column in columns), strict=True))


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


def wilson(right: float, n: float) -> Measured:
    """The share `right` / n with its 95 % interval (Wilson 1927), for which both numbers are rounded."""
    from scipy.stats import binomtest

    share, rows = right / n, max(round(n), 1)
    low, high = binomtest(min(round(right), rows), rows).proportion_ci(method="wilson")
    return Measured(share, min(float(low), share), max(float(high), share))


def paired_difference(only_first: float, only_second: float, n: float) -> Measured:
    """Accuracy of one classifier minus another's on the same n rows, with its 95 % interval (Agresti & Min 2005).

    `only_first` and `only_second` are the numbers of rows that only the first or only the second one gets right.
    """
    first, second, rows = only_first + 0.5, only_second + 0.5, n + 2
    middle = (first - second) / rows
    half = Z * np.sqrt(max(first + second - (first - second) ** 2 / rows, 0.0)) / rows
    low, high = max(-1.0, float(middle - half)), min(1.0, float(middle + half))
    return Measured((only_first - only_second) / n, low, high)


def accuracy_difference(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Measured:
    """`paired_difference` of two classifiers, given whether each gets each of the same N rows right, (N,)."""
    return paired_difference(int((first & ~second).sum()), int((second & ~first).sum()), len(first))


def bootstrap_interval(statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]], counts: Integers) -> Measured:
    """A statistic with its bias-corrected and accelerated bootstrap interval over rows (Efron 1987).

    `counts` (K,) are the numbers of rows of each of K kinds; `statistic` takes weights of the kinds, (R, K), and
    returns values (R,). The resamples are the same in every call. With more than MAX_CORRECTED kinds, where the
    correction takes long and matters little, the interval is that of the resamples' percentiles.
    """
    from scipy.special import ndtr, ndtri

    n = int(counts.sum())
    value = float(statistic(counts[None].astype(np.float64))[0])
    if n < 2:
        return Measured(value, value, value)
    resamples = np.random.default_rng(0).multinomial(n, counts / n, RESAMPLES)  # R K
    values = statistic(resamples.astype(np.float64))  # R
    below = (values < value).mean() + (values == value).mean() / 2
    levels = np.array([0.025, 0.975])
    if 0 < below < 1 and len(counts) <= MAX_CORRECTED:
        without_row = statistic(counts - np.eye(len(counts)))  # K
        influence = np.average(without_row, weights=counts) - without_row  # K
        spread = float(counts @ influence**2) ** 1.5
        acceleration = float(counts @ influence**3) / (6 * spread) if spread else 0.0
        bias = ndtri(below)
        shifted = bias + ndtri(levels)
        levels = ndtr(bias + shifted / (1 - acceleration * shifted))
    low, high = np.quantile(values, levels)
    return Measured(value, min(float(low), value), max(float(high), value))
