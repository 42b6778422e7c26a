"""Whether more training rows would help: the linear baseline fitted to subsets of them, measured on the same test rows.

python -m txcls train mine.csv --learning-curve
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.comparison import Measured, with_interval
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import fit_linear_baseline
from txcls.evaluation.intervals import macro_f1_intervals
from txcls.wording import signed, signed_range

DIVISORS = (8, 4, 2, 1)
"""Divisors of the number of training rows; each subset contains the smaller ones."""
MIN_ROWS, MIN_OF_CLASS = 10, 3
"""Minimum number of rows in a subset, in total and per class on average."""
MIN_MACRO_F1_GAIN, MAX_SMALL_GAIN = 0.01, 0.02
"""More rows would probably help if the last doubling raised macro-F1 by at least MIN_MACRO_F1_GAIN and its interval is
above 0. They would hardly help if the interval is below MAX_SMALL_GAIN. Otherwise there are too few test rows to
tell."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Macro-F1 on the test rows after fitting to n rows, with its 95 % interval."""

    n: int
    macro_f1: Measured

    @property
    def cells(self) -> tuple[str, str]:
        """The cells of a table: rows and macro-F1."""
        return f"{self.n:,}", with_interval(self.macro_f1)


CURVE_HEAD = ("training rows", "macro-F1 (95 % CI)")
"""Headings of `CurvePoint.cells`."""


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """At least two points, fewest rows first, and the gain in macro-F1 from the second-last to the last (paired)."""

    points: tuple[CurvePoint, ...]
    gain: Measured
    n_test: int

    @property
    def verdict(self) -> str:
        """Whether more rows would help, as a sentence."""
        gain = self.gain
        if gain.low > 0 and gain.value >= MIN_MACRO_F1_GAIN:
            conclusion = "doubling them again would probably help"
        elif gain.high < MAX_SMALL_GAIN:
            conclusion = "doubling them again would hardly help (by less than two points)"
        else:
            conclusion = f"{self.n_test:,} test rows are too few to tell whether doubling the training rows again helps"
        return (
            f"From {self.points[-2].n:,} to {self.points[-1].n:,} training rows, macro-F1 of the linear baseline "
            f"changed by {signed(100 * gain.value)} points (95 % interval {signed_range(gain.low, gain.high)}): "
            f"{conclusion}."
        )


def linear_learning_curve(
    training: LabelledTexts,
    test: LabelledTexts,
    *,
    predictions: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> LearningCurve:
    """Fit the linear baseline to an eighth, a quarter, half and all of the training rows, drawn at random.

    Args:
        training, test: rows of the same classes.
        predictions: the baseline's predictions for the M test rows after fitting to all rows, (M,), if known.
        seed: for the choice of rows and for the baseline.

    Raises:
        DataError: there are too few rows, or all rows are of one class.
    """
    order = np.random.default_rng(seed).permutation(len(training))
    sizes = [len(training) // divisor for divisor in DIVISORS]
    n_classes = [len({training.labels[row] for row in order[:n]}) for n in sizes]
    sizes = [n for n, c in zip(sizes, n_classes, strict=True) if c > 1 and n >= max(MIN_ROWS, MIN_OF_CLASS * c)]
    if len(sizes) < 2 or not len(test):
        raise DataError(f"{len(training):,} training rows are too few for a learning curve")
    by_size = {}
    for n in sizes:
        if n == len(training) and predictions is not None:
            by_size[str(n)] = predictions
            continue
        rows = training.subset(np.sort(order[:n]))
        by_size[str(n)] = fit_linear_baseline(rows.texts, rows.labels, seed=seed).predict(test.texts)
    intervals, gain = macro_f1_intervals(test.labels, by_size, difference=(str(sizes[-1]), str(sizes[-2])))
    points = tuple(CurvePoint(n, intervals[str(n)]) for n in sizes)
    return LearningCurve(points, gain, len(test))
