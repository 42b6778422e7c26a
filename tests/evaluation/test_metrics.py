import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, log_loss

from txcls.evaluation.metrics import (
    accuracy_by_length,
    auroc,
    evaluate_probabilities,
    expected_calibration_error,
    reliability_bins,
)

CLASSES = ("a", "b", "c")


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_metrics_equal_scikit_learns(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    probabilities = random.dirichlet(np.ones(3), size=n)
    labels = random.integers(0, 3, size=n)
    metrics = evaluate_probabilities(probabilities, labels, classes=CLASSES)
    predicted = probabilities.argmax(1)
    assert metrics.accuracy == pytest.approx(accuracy_score(labels, predicted))
    present = sorted(set(labels))
    expected = f1_score(labels, predicted, labels=present, average="macro", zero_division=0.0)
    assert metrics.macro_f1 == pytest.approx(expected)
    assert metrics.log_loss == pytest.approx(log_loss(labels, probabilities, labels=[0, 1, 2]))
    assert sum(map(sum, metrics.confusion)) == sum(part.n for part in metrics.reliability) == metrics.n == n


def test_calibration_error_by_hand() -> None:
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.55, 0.45], [0.45, 0.55]])
    labels = np.array([0, 1, 0, 1])
    bins = reliability_bins(probabilities, labels, n_bins=10)
    filled = [(round(part.low, 1), part.n, part.confidence, part.accuracy) for part in bins if part.n]
    assert filled == [(0.5, 2, pytest.approx(0.55), 1.0), (0.8, 2, pytest.approx(0.9), 0.5)]
    assert expected_calibration_error(bins) == pytest.approx(0.5 * 0.45 + 0.5 * 0.4)


def test_accuracy_by_length_by_hand() -> None:
    right = np.array([True, False, True, True, False])
    groups = accuracy_by_length(np.array([10, 35, 20, 500, 11]), right)
    assert [(group.over, group.up_to, group.n, group.accuracy) for group in groups] == [
        (None, 10, 1, 1.0),
        (10, 20, 2, 0.5),
        (20, 40, 1, 0.0),
        (320, None, 1, 1.0),
    ]


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    random = np.random.default_rng(0)
    inside, outside = random.normal(1, 1, 50).round(1), random.normal(0, 1, 40).round(1)
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    assert auroc(inside, outside) == pytest.approx(np.mean(pairs))
