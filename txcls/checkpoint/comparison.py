"""A classifier compared with the majority class and the linear model on test rows, as stored in checkpoints."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from txcls.checkpoint.json_files import PLAIN, Count, Positive, Text, round_numbers, validate
from txcls.text.formatting import percentage, range_with_signs, with_sign

FEW_TEST_ROWS = 30
"""With fewer test rows, no metric is reliable."""
ENOUGH_STEPS = 0.5
"""A classifier that made a smaller share of its planned steps is hardly trained."""
_OPTIONAL = ("n_unseen", "n_repeated", "unrepeated", "steps")
Difference = Annotated[float, Field(strict=True, ge=-1.0, le=1.0)]


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric on test rows, from 0 to 1 (a difference: from -1 to 1), and its 95 % interval."""

    __pydantic_config__ = PLAIN
    value: Difference
    low: Difference
    high: Difference

    @property
    def sign(self) -> int:
        """1 if the interval is above zero, -1 if it is below, otherwise 0."""
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True, slots=True)
class ClassifierScores:
    """The metrics of one of the three classifiers; `seconds` is its training and prediction time."""

    __pydantic_config__ = PLAIN
    accuracy: Measured
    macro_f1: Measured
    seconds: Positive | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A majority-class baseline, the linear model and the Transformer on the same n test rows.

    Attributes:
        n_training: number of rows that the linear model was fitted to.
        difference, difference_f1: accuracy and macro-F1 of the Transformer minus those of the linear model, with
            paired intervals.
        only_transformer, only_linear: number of test rows that only this classifier gets right.
        baseline: features and C of the linear model; None if an earlier version fitted it without tuning.
        n_unseen: number of further test rows that were left out because their classes have no training row.
        n_repeated, unrepeated: number of test rows with texts that were trained on, and the Transformer's accuracy on
            all other test rows.
        steps: number of optimiser steps made, and planned; 0 made if only the output layer was fitted. None if unknown.
    """

    __pydantic_config__ = PLAIN
    n: Count
    n_training: Count
    majority: ClassifierScores
    linear: ClassifierScores
    transformer: ClassifierScores
    difference: Measured
    difference_f1: Measured
    only_transformer: Count
    only_linear: Count
    baseline: Text | None = None
    n_unseen: Count = 0
    n_repeated: Count = 0
    unrepeated: Measured | None = None
    steps: tuple[Count, Annotated[int, Field(strict=True, ge=1, le=10**15)]] | None = None

    @property
    def is_imbalanced(self) -> bool:
        """Whether the most frequent class is so frequent that macro-F1 is compared instead of accuracy."""
        share, f1 = self.majority.accuracy.value, self.majority.macro_f1.value
        # The F1 of the majority-class baseline is 0 on all classes but the most frequent.
        n_classes = max(2 * share / (1 + share) / f1, 1) if f1 and share > 0 else 1
        return share >= (1 + 1 / n_classes) / 2 and n_classes > 1.5

    @property
    def _differences(self) -> list[tuple[str, Measured]]:
        """The measure that decides which classifier is better, then the other one, each with its difference.

        Accuracy decides, except where most rows are of one class, or where only macro-F1 tells the two apart.
        """
        measures = [("accuracy", self.difference), ("macro-F1", self.difference_f1)]
        only_f1_differs = self.difference_f1.sign and not self.difference.sign
        return measures[::-1] if self.is_imbalanced or only_f1_differs else measures

    @property
    def transformer_is_better(self) -> bool:
        """Whether the Transformer, trained to its end, is better than the linear model, by the measure that decides."""
        return self._differences[0][1].sign > 0 and not self.is_hardly_trained

    @property
    def is_hardly_trained(self) -> bool:
        """Whether less than half of the planned steps were made."""
        return self.steps is not None and 0 < self.steps[0] < ENOUGH_STEPS * self.steps[1]

    @property
    def is_probe(self) -> bool:
        """Whether only the Transformer's output layer was fitted."""
        return self.steps is not None and self.steps[0] == 0

    @property
    def to_use(self) -> Literal["transformer", "linear"]:
        """The linear model, which is cheaper, unless the Transformer was shown to be better."""
        return "transformer" if self._differences[0][1].sign > 0 else "linear"

    @property
    def _measure(self) -> tuple[str, str]:
        """The name of the measure that decides, and its attribute in `ClassifierScores`."""
        name = self._differences[0][0]
        return name, {"accuracy": "accuracy", "macro-F1": "macro_f1"}[name]

    @property
    def scores_in_words(self) -> str:
        """What the linear model and the Transformer reach, by the measure that decides."""
        name, measure = self._measure
        linear, transformer = (percentage(getattr(one, measure).value) for one in (self.linear, self.transformer))
        apart = "" if self._differences[0][1].sign else ", which does not tell them apart"
        return f"{name} {linear} on {self.n:,} test rows, the Transformer {transformer}{apart}"

    @property
    def learned_nothing(self) -> bool:
        """Whether neither model is clearly better than always guessing the most frequent class."""
        _, measure = self._measure
        best = max(getattr(model, measure).low for model in (self.transformer, self.linear))
        return bool(self.n >= FEW_TEST_ROWS and best <= getattr(self.majority, measure).value)

    @property
    def verdict(self) -> str:
        """Which of the two to use, by how much it is better on these rows, and the limits of this comparison."""
        return " ".join([self.advice, *self.remarks()])

    @property
    def advice(self) -> str:
        """Which of the two to use, and by how much it is better on these rows."""
        name, difference = self._differences[0]
        value, low, high = 100 * difference.value, difference.low, difference.high
        use = "the linear model"
        if difference.sign > 0:
            use, reason = "the Transformer", f"it is better than the linear model by {value:.1f} points of {name}"
        elif difference.sign < 0:
            low, high = -high, -low
            reason = f"it is better than the Transformer by {-value:.1f} points of {name}"
        else:
            points = f"{with_sign(value)} points of {name} for the Transformer"
            which = "are too few to tell the two apart" if self.n < FEW_TEST_ROWS else "do not tell the two apart"
            use, reason = f"{use}, which is cheaper", f"{self.n:,} test rows {which}; {points}"
        reason += f" (95 % interval {range_with_signs(low, high)})"
        if self.steps is not None and self.is_hardly_trained:
            made, planned = self.steps
            time = f"the Transformer had time for only {made:,} of {planned:,} planned steps; allow it more minutes"
            return f"Use {use}: {f'{reason}; {time}' if difference.sign > 0 else time}."
        if self.is_imbalanced:
            reason += "; macro-F1 decides, since most rows are of one class"
        return f"Use {use}: {reason}."

    def remarks(self) -> Iterator[str]:
        """Yield sentences on the limits of this comparison."""
        (_, difference), (other_name, other) = self._differences
        if other.sign != difference.sign:
            better = {1: "the Transformer is better", -1: "the linear model is better"}
            outcome = better.get(other.sign, "they cannot be told apart")
            yield f"By {other_name}, {outcome}."
        if self.steps is not None and 0 < self.steps[0] < self.steps[1] and not self.is_hardly_trained:
            made, planned = self.steps
            yield f"The Transformer made {made:,} of {planned:,} steps; more minutes may help."
        accuracy = self.transformer.accuracy
        if self.n < FEW_TEST_ROWS and difference.sign:
            yield f"{self.n} test rows are too few for a dependable figure."
        name, measure = self._measure
        transformer, guessing = (getattr(c, measure) for c in (self.transformer, self.majority))
        is_explained = self.is_hardly_trained and not self.learned_nothing
        if transformer.low <= guessing.value and self.n >= FEW_TEST_ROWS and not is_explained:
            how, helps = "the Transformer is not clearly better", "more rows or time may help"
            if self.learned_nothing:
                how, helps = "neither model is clearly better", f"another label column, clearer labels, {helps}"
            elif transformer.high < guessing.value:
                how = "the Transformer is worse"
            remedy = "" if self.is_hardly_trained else f"; {helps}"
            yield f"By {name}, {how} than guessing the most frequent class ({percentage(guessing.value)}){remedy}."
        if self.n_unseen:
            share = accuracy.value * self.n / (self.n + self.n_unseen)
            yield (
                f"{self.n_unseen:,} further test rows are of classes without training rows; counted as errors, the "
                f"accuracy is {percentage(share)}."
            )
        if self.n_repeated and self.unrepeated is not None:
            yield (
                f"{self.n_repeated:,} test rows repeat texts that were trained on; on the other "
                f"{self.n - self.n_repeated:,} the accuracy is {with_interval(self.unrepeated)}."
            )
        elif self.n_repeated:
            yield "All test rows repeat texts that were trained on, so they say nothing about new texts."

    @property
    def settings(self) -> str:
        """A sentence on how the linear model was fitted, and one on the Transformer if it is a probe."""
        settings = "TF-IDF of words and pairs of words, scikit-learn's default settings, untuned"
        if self.baseline is not None:
            settings = f"{self.baseline}, chosen on a part of these rows"
        probe = " Of the Transformer, only the output layer was trained: training all its layers was no better."
        return (
            f"The linear model is a linear SVM fitted to {self.n_training:,} rows ({settings}).{probe * self.is_probe}"
        )

    @property
    def table(self) -> list[tuple[str, str, str]]:
        """Name, accuracy and macro-F1 of each classifier, then the difference between the last two, with intervals."""
        contestants = {
            "majority-class baseline": self.majority,
            "linear model": self.linear,
            "this Transformer" + " (output layer only)" * self.is_probe: self.transformer,
        }
        rows = [
            (name, with_interval(contestant.accuracy), with_interval(contestant.macro_f1))
            for name, contestant in contestants.items()
        ]
        return [*rows, ("Transformer − linear model", points(self.difference), points(self.difference_f1))]

    def __str__(self) -> str:
        """One line per classifier with accuracy and macro-F1, then the verdict."""
        rows = [("test rows", "accuracy", "macro-F1"), *self.table]
        widths = [2 + max(len(row[column]) for row in rows) for column in range(2)]
        lines = [f"{name:<{widths[0]}}{accuracy:<{widths[1]}}{macro_f1}" for name, accuracy, macro_f1 in rows]
        return "\n".join([*lines, self.verdict])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, with numbers rounded to six decimals."""
        values: dict[str, Any] = round_numbers(asdict(self))
        return {name: value for name, value in values.items() if name not in _OPTIONAL or value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Comparison":
        """The inverse of `to_dict`; reads a checkpoint's metrics["comparison"]."""
        return validate(Comparison, values, where="comparison")


def with_interval(metric: Measured) -> str:
    """A metric and its interval in per cent, `92.6 % (92.0 to 93.2)`; an interval of width zero is omitted.

    It is rounded as in a checkpoint first, so that it looks the same before and after saving.
    """
    low, value, high = (round(share, 6) for share in (metric.low, metric.value, metric.high))
    return percentage(value) if low == high else f"{percentage(value)} ({100 * low:.1f} to {100 * high:.1f})"


def points(difference: Measured) -> str:
    """A difference and its interval in percentage points, `−2.1 points (−3.0 to −1.2)`."""
    interval = "" if difference.low == difference.high else f" ({range_with_signs(difference.low, difference.high)})"
    return f"{with_sign(100 * difference.value)} points{interval}"
