"""Metrics against scikit-learn and against numbers worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.metrics import accuracy_score, f1_score, log_loss

from txcls.config import Calibration
from txcls.metrics import (
    accuracy_by,
    auroc,
    calibrated_probabilities,
    evaluate_probabilities,
    expected_calibration_error,
    fit_calibration,
    reliability_bins,
    scope_scores,
    scope_threshold,
)

CLASSES = ("a", "b", "c")


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_figures_equal_scikit_learns(seed: int, n: int) -> None:
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
    assert sum(map(sum, metrics.confusion)) == sum(one.n for one in metrics.reliability) == metrics.n == n


def test_calibration_error_by_hand() -> None:
    probabilities = np.array([[0.9, 0.1], [0.9, 0.1], [0.55, 0.45], [0.45, 0.55]])
    labels = np.array([0, 1, 0, 1])
    bins = reliability_bins(probabilities, labels, n_bins=10)
    filled = [(round(one.low, 1), one.n, one.confidence, one.accuracy) for one in bins if one.n]
    assert filled == [(0.5, 2, pytest.approx(0.55), 1.0), (0.8, 2, pytest.approx(0.9), 0.5)]
    assert expected_calibration_error(bins) == pytest.approx(0.5 * 0.45 + 0.5 * 0.4)


def test_certainty_lies_in_the_last_bin() -> None:
    bins = reliability_bins(np.array([[1.0, 0.0]]), np.array([0]))
    assert bins[-1].n == 1 and expected_calibration_error(bins) == 0.0


@pytest.mark.parametrize("true_temperature", [0.5, 1.0, 3.0])
def test_temperature_is_found_again(true_temperature: float) -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(20_000, 4)) * 2
    probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    labels = (probabilities.cumsum(1) > random.random((len(logits), 1))).argmax(1)
    fitted = fit_calibration(logits * true_temperature, labels)
    assert fitted.temperature == pytest.approx(true_temperature, rel=0.05)
    assert fitted.power == pytest.approx(1.0, abs=0.05)


def test_temperature_and_power_are_found_again() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(30_000, 4)) * 2
    true = Calibration(temperature=0.8, power=1.6)
    labels = (calibrated_probabilities(logits, true).cumsum(1) > random.random((len(logits), 1))).argmax(1)
    fitted = fit_calibration(logits, labels)
    assert fitted.temperature == pytest.approx(true.temperature, rel=0.05)
    assert fitted.power == pytest.approx(true.power, rel=0.05)


@given(st.integers(0, 1000), st.floats(0.05, 20.0))
def test_power_one_is_temperature_scaling(seed: int, temperature: float) -> None:
    logits = np.random.default_rng(seed).normal(size=(5, 4)).astype(np.float32) * 10
    ours = calibrated_probabilities(logits, Calibration(temperature=temperature))
    np.testing.assert_allclose(ours, softmax(logits.astype(np.float64) / temperature, axis=1), atol=1e-12)


@given(st.integers(0, 1000), st.floats(0.05, 20.0), st.floats(0.2, 5.0))
def test_calibration_keeps_the_order_of_the_classes(seed: int, temperature: float, power: float) -> None:
    logits = np.random.default_rng(seed).normal(size=(5, 4)).astype(np.float32) * 10
    ours = calibrated_probabilities(logits, Calibration(temperature=temperature, power=power))
    np.testing.assert_allclose(ours.sum(axis=1), 1.0)
    ranked = np.take_along_axis(ours, logits.argsort(axis=1), axis=1)
    assert (np.diff(ranked, axis=1) >= -1e-15).all(), "equal at most where both are too small to tell apart"


def test_calibration_by_hand() -> None:
    [ours] = calibrated_probabilities(np.log(np.array([[0.5, 0.25, 0.25]])), Calibration(temperature=2.0, power=2.0))
    weights = np.exp(-((np.log([2.0, 4.0, 4.0]) / 2.0) ** 2))
    np.testing.assert_allclose(ours, weights / weights.sum())


def test_a_few_rows_that_are_all_right_give_a_calibration_all_the_same() -> None:
    fitted = fit_calibration(np.eye(3) * 5, np.arange(3))
    assert 0.05 <= fitted.temperature < 0.5, "nothing speaks against certainty, but for the bound"
    probabilities = calibrated_probabilities(np.eye(3) * 5, fitted)
    assert np.isfinite(probabilities).all() and (probabilities.max(axis=1) > 0.999).all()
    assert fit_calibration(np.eye(3)[:1], np.arange(1)).power == 1.0


def test_accuracy_by_groups_by_hand() -> None:
    right = np.array([True, False, True, True, False])
    groups = accuracy_by(np.array([0.0, 0.1, 0.05, 7.0, 0.01]), right, upper=(0.0, 0.05, 0.2, 1.0))
    assert [(one.over, one.up_to, one.n, one.accuracy) for one in groups] == [
        (None, 0.0, 1, 1.0),
        (0.0, 0.05, 2, 0.5),
        (0.05, 0.2, 1, 0.0),
        (1.0, None, 1, 1.0),
    ]


def test_shapes_that_do_not_fit_are_refused() -> None:
    for probabilities, labels in ((np.ones((2, 2)), [0, 1]), (np.ones((2, 3)), [0]), (np.ones((0, 3)), [])):
        with pytest.raises(ValueError, match="wanted one row per label"):
            evaluate_probabilities(probabilities, np.array(labels, dtype=int), classes=CLASSES)


def test_scope_scores_by_hand() -> None:
    logits = np.array([[0.0, np.log(3.0)], [2.0, 2.0]])
    sharp, flat = Calibration(temperature=0.5), Calibration(temperature=9.0)
    np.testing.assert_allclose(scope_scores(logits, calibration=Calibration(), score="max_probability"), [0.75, 0.5])
    np.testing.assert_allclose(scope_scores(logits, calibration=sharp, score="max_probability"), [0.9, 0.5])
    np.testing.assert_allclose(scope_scores(logits, calibration=flat, score="energy"), [np.log(4.0), 2.0 + np.log(2.0)])


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    random = np.random.default_rng(0)
    inside, outside = random.normal(1, 1, 50).round(1), random.normal(0, 1, 40).round(1)
    pairs = [(a > b) + 0.5 * (a == b) for a in inside for b in outside]
    assert auroc(inside, outside) == pytest.approx(np.mean(pairs))


@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_no_other_threshold_does_better(seed: int, share: float) -> None:
    random = np.random.default_rng(seed)
    inside, outside = random.normal(1, 1, 30), random.normal(-1, 1, 10)
    right = random.random(30) < 0.9

    def expected(threshold: float) -> float:
        kept = (right & (inside >= threshold)).mean()
        return float((1 - share) * kept + share * (outside < threshold).mean())

    best = scope_threshold(inside, right, outside, share=share)
    for threshold in [*inside, *outside, -9.0]:
        assert expected(best) >= expected(threshold) - 1e-12
