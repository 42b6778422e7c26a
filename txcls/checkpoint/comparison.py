"""A classifier beside a majority guess and the linear baseline on the same test rows, as a checkpoint stores it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import Field

from txcls.checkpoint.json_files import PLAIN, Count, Positive, Text, checked
from txcls.wording import percentage

Difference = Annotated[float, Field(strict=True, ge=-1.0, le=1.0)]


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure on test rows and its 95 % interval, as shares from 0 to 1 (differences: from -1 to 1)."""

    __pydantic_config__ = PLAIN
    value: Difference
    low: Difference
    high: Difference


@dataclass(frozen=True, slots=True)
class Contestant:
    """What one classifier reaches on the test rows; `seconds` is how long it took to learn and to answer."""

    __pydantic_config__ = PLAIN
    accuracy: Measured
    macro_f1: Measured
    seconds: Positive | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A majority guess, the linear baseline and the Transformer on the same test rows.

    Attributes:
        n: test rows.
        n_training: rows that the linear baseline was fitted to.
        majority, linear, transformer: what each reaches.
        difference: accuracy of the Transformer minus that of the linear baseline, with its paired interval.
        difference_f1: the same of macro-F1.
        only_transformer, only_linear: test rows that only this one classifies correctly.
        baseline: features and C of the linear baseline; None for those of earlier versions, which were not tuned.
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
        """The result as a sentence: better, worse, or too close to tell on that many rows."""
        points = f"{100 * abs(self.difference.value):.1f} points"
        span = f"95 % interval {100 * self.difference.low:+.1f} to {100 * self.difference.high:+.1f}"
        if self.difference.low > 0:
            return f"The Transformer is better than the linear baseline by {points} of accuracy ({span})."
        if self.difference.high < 0:
            span = f"95 % interval {-100 * self.difference.high:+.1f} to {-100 * self.difference.low:+.1f}"
            return f"The linear baseline is better than the Transformer by {points} of accuracy ({span})."
        return (
            f"On {self.n:,} test rows the Transformer and the linear baseline cannot be told apart: "
            f"{100 * self.difference.value:+.1f} points of accuracy ({span})."
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
        """Name, accuracy and macro-F1 of each, and the difference of the last two, with intervals, for people."""
        return [
            ("majority guess", with_interval(self.majority.accuracy), with_interval(self.majority.macro_f1)),
            ("linear baseline", with_interval(self.linear.accuracy), with_interval(self.linear.macro_f1)),
            ("this Transformer", with_interval(self.transformer.accuracy), with_interval(self.transformer.macro_f1)),
            ("Transformer − linear baseline", _points(self.difference), _points(self.difference_f1)),
        ]

    def __str__(self) -> str:
        """A line for each classifier with accuracy and macro-F1, then the verdict."""
        rows = [("test rows", "accuracy", "macro-F1"), *self.table]
        lines = [f"{name:<30}{accuracy:<28}{macro_f1}" for name, accuracy, macro_f1 in rows]
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, numbers rounded to six places."""
        rounded: dict[str, Any] = _rounded(asdict(self))
        return rounded

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Comparison":
        """The comparison that `to_dict` wrote, as in a checkpoint's metrics["comparison"]."""
        return checked(Comparison, values, where="comparison")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return {key: _rounded(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def with_interval(one: Measured) -> str:
    """A share and its interval in per cent, for people: `92.6 % (92.0 to 93.2)`. Without the interval where it has no
    width: the bootstrap knows no other outcome than the one seen, such as no mistake at all."""
    if one.low == one.high:
        return percentage(one.value)
    return f"{percentage(one.value)} ({100 * one.low:.1f} to {100 * one.high:.1f})"


def _points(one: Measured) -> str:
    if one.low == one.high:
        return f"{100 * one.value:+.1f} points"
    return f"{100 * one.value:+.1f} points ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
