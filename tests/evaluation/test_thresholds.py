"""Confidence thresholds: how many rows are answered above each, and how many of these correctly."""

import numpy as np

from txcls.data.types import LabelledTexts
from txcls.evaluation.report import RowPredictions
from txcls.evaluation.thresholds import Coverage, coverage_by_confidence


def test_each_threshold_counts_the_rows_at_least_as_confident() -> None:
    probabilities = np.array([[1 - p, p] for p in (0.55, 0.7, 0.9, 0.9, 0.99)])
    predictions = RowPredictions(LabelledTexts(["text"] * 5, [1, 0, 1, 1, 0], ("a", "b")), probabilities)
    counted = {row.confidence: (row.n, row.right) for row in coverage_by_confidence(predictions)}
    assert counted[0.5] == (5, 3) and counted[0.7] == (4, 2) and counted[0.9] == (3, 2) and counted[0.99] == (1, 0)


def test_the_accuracy_on_fewer_than_twenty_rows_is_not_stated() -> None:
    enough, too_few = Coverage(0.9, n=20, share=0.2, right=19), Coverage(0.9, n=19, share=0.19, right=19)
    assert enough.cells[2] == "95.0\u00a0%" and too_few.cells[2] == "too few"
    assert Coverage(0.9, n=0, share=0.0, right=0).cells[2] == "–"
