"""95 % intervals of accuracies, of paired differences and of macro-F1."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.comparison import Measured

Z = 1.959964
"""Half the width of a 95 % interval in standard errors."""
RESAMPLES = 1000
"""Number of bootstrap samples."""


def wilson(right: float, n: float) -> Measured:
    """The share `right` / n with its 95 % interval (Wilson 1927)."""
    share = right / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return Measured(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


def paired_difference(only_first: float, only_second: float, n: float) -> Measured:
    """Accuracy of one classifier minus another's on the same n rows, with its 95 % interval (Agresti & Min 2005).

    `only_first` and `only_second` are the numbers of rows that only the first or only the second one gets right.
    """
    first, second, rows = only_first + 0.5, only_second + 0.5, n + 2
    middle = (first - second) / rows
    half = Z * np.sqrt(max(first + second - (first - second) ** 2 / rows, 0.0)) / rows
    low, high = max(-1.0, float(middle - half)), min(1.0, float(middle + half))
    return Measured((only_first - only_second) / n, low, high)


def macro_f1_intervals(
    truth: Sequence[int] | NDArray[np.int64],
    predictions: Mapping[str, NDArray[np.int64]],
    *,
    difference: tuple[str, str],
) -> tuple[dict[str, Measured], Measured]:
    """Macro-F1 of each classifier on N rows, and the difference between the two classifiers named in `difference`.

    `predictions` are the predictions of each, (N,). For the intervals see `accelerated`. Where all bootstrap samples
    have the same value, such as 1 if every prediction is right, they are those of an accuracy instead, on as many rows
    as would make an accuracy as uncertain as the mean recall of the classes.
    """
    true = np.asarray(truth, dtype=np.int64)
    f1, without_row = macro_f1_samples(true, predictions)
    support = np.bincount(true)
    n = float(np.count_nonzero(support) ** 2 / (1 / support[support > 0]).sum())
    intervals = {}
    for name in predictions:
        measured = accelerated(f1[name], without_row[name])
        intervals[name] = wilson(measured.value * n, n) if measured.low == measured.high else measured
    first, second = difference
    gain = accelerated(f1[first] - f1[second], without_row[first] - without_row[second])
    if gain.low == gain.high:
        gain = paired_difference(max(gain.value, 0.0) * n, max(-gain.value, 0.0) * n, n)
    return intervals, gain


def macro_f1_samples(
    true: NDArray[np.int64], predictions: Mapping[str, NDArray[np.int64]]
) -> tuple[dict[str, NDArray[np.float64]], dict[str, NDArray[np.float64]]]:
    """Macro-F1 of each classifier on the rows and on R bootstrap samples, (1 + R,), and without each row, (N,).

    For each sample, the mean is over the classes that occur in it.
    """
    n = len(true)
    n_classes = 1 + int(max(true.max(), *(int(classes.max()) for classes in predictions.values())))
    random = np.random.default_rng(0)
    patterns, pattern_of_row, counts = np.unique(
        np.stack([true, *predictions.values()]), axis=1, return_inverse=True, return_counts=True
    )  # combinations of a label and predictions: (1 + classifiers) U, N, U
    samples = [
        counts,
        *(np.bincount(pattern_of_row[random.integers(0, n, n)], minlength=len(counts)) for _ in range(RESAMPLES)),
    ]
    leaving_out = [counts - (np.arange(len(counts)) == pattern) for pattern in range(len(counts))]

    def macro_f1(predicted: NDArray[np.int64], weights: NDArray[np.int64]) -> float:
        labels = patterns[0]
        support, assigned = (np.bincount(ids, weights, minlength=n_classes) for ids in (labels, predicted))  # C
        right = np.bincount(labels, weights * (predicted == labels), minlength=n_classes)  # C
        f1 = 2 * right / np.maximum(support + assigned, 1)  # C
        return float(f1[support > 0].mean()) if (support > 0).any() else 0.0

    by_sample, by_row = {}, {}
    for name, predicted in zip(predictions, patterns[1:], strict=True):
        by_sample[name] = np.array([macro_f1(predicted, weights) for weights in samples])
        by_row[name] = np.array([macro_f1(predicted, weights) for weights in leaving_out])[pattern_of_row]
    return by_sample, by_row


def accelerated(values: NDArray[np.float64], without_row: NDArray[np.float64]) -> Measured:
    """A value with its bias-corrected and accelerated bootstrap interval (Efron 1987).

    `values` (1 + R,) are the value of the original rows and of R bootstrap samples, `without_row` (N,) the values
    without each row.
    """
    from scipy.special import ndtr, ndtri

    value, samples = values[0], values[1:]
    below = (samples < value).mean() + (samples == value).mean() / 2
    levels = np.array([0.025, 0.975])
    if 0 < below < 1:
        bias, influence = ndtri(below), without_row.mean() - without_row
        spread = float((influence**2).sum()) ** 1.5
        acceleration = float((influence**3).sum()) / (6 * spread) if spread else 0.0
        shifted = bias + ndtri(levels)
        levels = ndtr(bias + shifted / (1 - acceleration * shifted))
    low, high = np.quantile(samples, levels)
    return Measured(float(value), float(min(low, value)), float(max(high, value)))
