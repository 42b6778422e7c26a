"""Confidence thresholds: what share of the rows is answered above each, and how many of these correctly."""

from dataclasses import dataclass

from txcls.evaluation.report import RowPredictions
from txcls.wording import percentage

CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Confidence thresholds, below which rows are left to a human."""
MIN_ROWS = 20
"""The accuracy on fewer rows is not stated."""
COVERAGE_HEAD = ("answer only above", "rows answered", "of these, correct")
"""The head of the table whose rows are `Coverage.cells`."""


def accuracy_cell(accuracy: float, n: int) -> str:
    """The accuracy on n rows as a cell of a table or the number of a bar, unless there are too few rows."""
    return "–" if not n else "too few" if n < MIN_ROWS else percentage(accuracy)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The n rows predicted with at least this confidence, their share of all rows, and how many are correct."""

    confidence: float
    n: int
    share: float
    right: int

    @property
    def accuracy(self) -> float:
        """The share of correct predictions among these rows; NaN if there are no rows."""
        return self.right / self.n if self.n else float("nan")

    @property
    def cells(self) -> tuple[str, str, str]:
        """The cells of a table: confidence, share and accuracy, unless there are too few rows."""
        return percentage(self.confidence, 0), percentage(self.share), accuracy_cell(self.accuracy, self.n)


def coverage_above(predictions: RowPredictions, confidence: float) -> Coverage:
    """The coverage if predictions below this confidence are left to a human."""
    is_used = predictions.probabilities.max(axis=1) >= confidence  # N
    n = int(is_used.sum())
    return Coverage(confidence, n, n / len(predictions), int((is_used & predictions.right).sum()))


def coverage_by_confidence(predictions: RowPredictions) -> list[Coverage]:
    """The coverage for each of CONFIDENCES."""
    return [coverage_above(predictions, confidence) for confidence in CONFIDENCES]
