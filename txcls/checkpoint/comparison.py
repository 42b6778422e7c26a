"""A classifier compared with a majority guess and the linear baseline on test rows, as stored in checkpoints."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from txcls.checkpoint.json_files import PLAIN, Count, Positive, Text, checked, rounded
from txcls.wording import percentage

Difference = Annotated[float, Field(strict=True, ge=-1.0, le=1.0)]


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric on test rows, from 0 to 1 (for the difference of two, from -1 to 1), and its 95 % interval."""

    __pydantic_config__ = PLAIN
    value: Difference
    low: Difference
    high: Difference


@dataclass(frozen=True, slots=True)
class Contestant:
    """The metrics of one of the three classifiers; `seconds` is its training and prediction time."""

    __pydantic_config__ = PLAIN
    accuracy: Measured
    macro_f1: Measured
    seconds: Positive | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A majority guess, the linear baseline and the Transformer on the same n test rows.

    Attributes:
        n_training: number of rows that the linear baseline was fitted to.
        difference, difference_f1: accuracy and macro-F1 of the Transformer minus those of the linear baseline, with
            paired intervals.
        only_transformer, only_linear: number of test rows that only this classifier gets right.
        baseline: features and C of the linear baseline; None if it was fitted, untuned, by an earlier version.
    """

    __pydantic_config__ = PLAIN
    n: Count
    n_training: Count
    majority: Contestant
    linear: Contestant
    transformer: Contestant
    difference: Measured
    difference_f1: Measured
    only_transformer: Count
    only_linear: Count
    baseline: Text | None = None

    @property
    def verdict(self) -> str:
        """Which classifier is better on these rows, as a sentence."""
        low, value, high = (100 * share for share in (self.difference.low, self.difference.value, self.difference.high))
        if low > 0:
            return (
                f"The Transformer is better than the linear baseline by {value:.1f} points of accuracy "
                f"(95 % interval {low:+.1f} to {high:+.1f})."
            )
        if high < 0:
            return (
                f"The linear baseline is better than the Transformer by {-value:.1f} points of accuracy "
                f"(95 % interval {-high:+.1f} to {-low:+.1f})."
            )
        return (
            f"On {self.n:,} test rows the Transformer and the linear baseline cannot be told apart: {value:+.1f} "
            f"points of accuracy (95 % interval {low:+.1f} to {high:+.1f})."
        )

    @property
    def settings(self) -> str:
        """How the linear baseline was fitted, as a sentence."""
        how = "TF-IDF of words and pairs of words, scikit-learn's default settings, untuned"
        if self.baseline is not None:
            how = f"{self.baseline}, chosen on a part of these rows"
        return f"The linear baseline is a linear SVM fitted to {self.n_training:,} rows ({how})."

    @property
    def table(self) -> list[tuple[str, str, str]]:
        """Name, accuracy and macro-F1 of each classifier, then the difference of the last two, with intervals."""
        contestants = {
            "majority guess": self.majority,
            "linear baseline": self.linear,
            "this Transformer": self.transformer,
        }
        rows = [(name, with_interval(one.accuracy), with_interval(one.macro_f1)) for name, one in contestants.items()]
        return [*rows, ("Transformer − linear baseline", _points(self.difference), _points(self.difference_f1))]

    def __str__(self) -> str:
        """One line per classifier with accuracy and macro-F1, then the verdict."""
        rows = [("test rows", "accuracy", "macro-F1"), *self.table]
        lines = [f"{name:<30}{accuracy:<28}{macro_f1}" for name, accuracy, macro_f1 in rows]
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, with numbers rounded to six places."""
        values: dict[str, Any] = rounded(asdict(self))
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Comparison":
        """The comparison that `to_dict` wrote, as in a checkpoint's metrics["comparison"]."""
        return checked(Comparison, values, where="comparison")


def with_interval(metric: Measured) -> str:
    """A metric and its interval in per cent: `92.6 % (92.0 to 93.2)`; without the interval if it has no width."""
    if metric.low == metric.high:
        return percentage(metric.value)
    return f"{percentage(metric.value)} ({100 * metric.low:.1f} to {100 * metric.high:.1f})"


def _points(difference: Measured) -> str:
    if difference.low == difference.high:
        return f"{100 * difference.value:+.1f} points"
    return f"{100 * difference.value:+.1f} points ({100 * difference.low:+.1f} to {100 * difference.high:+.1f})"
