import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from txcls.checkpoint.probabilities import calibrated_probabilities, scope_scores
from txcls.config import Calibration
from txcls.evaluation.evaluate import scope_threshold
from txcls.evaluation.fit_calibration import fit_calibration, fit_truncated_temperature


@pytest.mark.parametrize("temperature, power", [(0.5, 1.0), (3.0, 1.0), (0.8, 1.6)])
def test_temperature_and_power_are_recovered(temperature: float, power: float) -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(30_000, 4)) * 2
    true = Calibration(temperature=temperature, power=power)
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
    assert (np.diff(ranked, axis=1) >= -1e-15).all(), "ties only where both are too small to distinguish"


def test_short_texts_have_their_own_temperatures() -> None:
    calibration = Calibration(temperature=1.5, power=1.25, short=((2, 9.0), (4, 3.0)))
    logits = np.tile([[2.0, 0.0]], (5, 1))
    ours = calibrated_probabilities(logits, calibration, np.array([1, 2, 3, 4, 5]))
    for row, temperature in zip(ours, (9.0, 9.0, 3.0, 3.0, 1.5), strict=True):
        expected = calibrated_probabilities(logits[:1], Calibration(temperature=temperature, power=1.25))
        np.testing.assert_array_equal(row, expected[0])
    np.testing.assert_array_equal(calibrated_probabilities(logits, calibration)[0], ours[4])
    np.testing.assert_array_equal(calibrated_probabilities(logits[:1], calibration, 3)[0], ours[2])


def test_the_temperature_of_beginnings_is_recovered_and_never_below_that_of_whole_texts() -> None:
    random = np.random.default_rng(0)
    logits, whole_texts = random.normal(size=(30_000, 4)) * 2, Calibration(temperature=1.5, power=1.25)
    beginnings = Calibration(temperature=4.0, power=1.25)
    labels = (calibrated_probabilities(logits, beginnings).cumsum(1) > random.random((len(logits), 1))).argmax(1)
    assert fit_truncated_temperature(logits, labels, whole_texts) == pytest.approx(4.0, rel=0.05)
    assert fit_truncated_temperature(logits, logits.argmax(axis=1), whole_texts) == pytest.approx(1.5, rel=0.01), (
        "without an error"
    )


def test_scope_scores_by_hand() -> None:
    logits = np.array([[0.0, np.log(3.0)], [2.0, 2.0]])
    sharp, flat = Calibration(temperature=0.5), Calibration(temperature=9.0)
    np.testing.assert_allclose(scope_scores(logits, calibration=Calibration(), score="max_probability"), [0.75, 0.5])
    np.testing.assert_allclose(scope_scores(logits, calibration=sharp, score="max_probability"), [0.9, 0.5])
    np.testing.assert_allclose(scope_scores(logits, calibration=flat, score="energy"), [np.log(4.0), 2.0 + np.log(2.0)])
    three = np.array([[1.0, 2.0, 6.0], [-7.0, -5.0, 3.0], [4.0, 4.0, 4.0]])
    by_hand = [3 / np.sqrt(14 / 3), 6 / np.sqrt(56 / 3), 0.0]  # the second row is the first times 2, plus 9
    np.testing.assert_allclose(scope_scores(three, calibration=flat, score="standard_score"), by_hand)


@given(st.integers(0, 1000), st.floats(0.05, 0.95))
def test_no_other_threshold_does_better(seed: int, share: float) -> None:
    random = np.random.default_rng(seed)
    inside, outside = random.normal(1, 1, 30), random.normal(-1, 1, 10)
    right = random.random(30) < 0.9

    def expected(threshold: float) -> float:
        kept_share = (right & (inside >= threshold)).mean()
        return float((1 - share) * kept_share + share * (outside < threshold).mean())

    best = scope_threshold(inside, right, outside, share=share)
    for threshold in [*inside, *outside, -9.0]:
        assert expected(best) >= expected(threshold) - 1e-12
