"""95 % intervals of accuracies, of paired differences and of bootstrap samples."""

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


def accuracy_difference(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Measured:
    """`paired_difference` of two classifiers, of which each gets some of the same N rows right, (N,)."""
    return paired_difference(int((first & ~second).sum()), int((second & ~first).sum()), len(first))


def bootstrap_interval(values: NDArray[np.float64], without_row: NDArray[np.float64]) -> Measured:
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
