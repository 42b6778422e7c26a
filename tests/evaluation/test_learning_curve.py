"""The learning curve, against baselines fitted here and scikit-learn's F1."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

from txcls.checkpoint.comparison import Measured
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import fit_linear_baseline
from txcls.evaluation.learning_curve import CurvePoint, LearningCurve, linear_learning_curve
from txcls.wording import signed


def rows(n: int, *, seed: int) -> LabelledTexts:
    """Texts of five words, half of them from one of two classes of 100 words each."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n).tolist()
    texts = [
        " ".join(f"w{100 * (label if random.random() < 0.7 else 1 - label) + random.integers(100)}" for _ in range(5))
        for label in labels
    ]
    return LabelledTexts(texts, labels, ("x", "y"))


def test_each_point_equals_a_baseline_fitted_to_a_subset_of_the_rows() -> None:
    training, test = rows(320, seed=0), rows(200, seed=1)
    curve = linear_learning_curve(training, test)
    assert [point.n for point in curve.points] == [40, 80, 160, 320]
    order, expected = np.random.default_rng(0).permutation(320), []
    for n in (40, 80, 160, 320):
        part = training.subset(np.sort(order[:n]))
        expected.append(fit_linear_baseline(part.texts, part.labels).predict(test.texts))
    scores = [f1_score(test.labels, predictions, average="macro") for predictions in expected]
    assert [point.macro_f1.value for point in curve.points] == pytest.approx(scores)
    assert curve.gain.value == pytest.approx(scores[3] - scores[2])
    random, gains = np.random.default_rng(5), []
    for _ in range(1000):
        drawn = random.integers(0, 200, 200)
        half, whole = (f1_score(np.array(test.labels)[drawn], expected[k][drawn], average="macro") for k in (2, 3))
        gains.append(whole - half)
    assert (curve.gain.low, curve.gain.high) == pytest.approx(np.quantile(gains, [0.025, 0.975]), abs=0.02)
    assert linear_learning_curve(training, test, predictions=expected[3]) == curve


@pytest.mark.parametrize(
    "gain, answer",
    [
        ((0.031, 0.01, 0.05), "would probably help"),
        ((0.012, 0.002, 0.018), "would probably help"),
        ((0.004, 0.001, 0.01), "would hardly help"),
        ((-0.01, -0.02, 0.001), "would hardly help"),
        ((0.02, -0.01, 0.05), "200 test rows are too few to tell"),
    ],
)
def test_the_answer_follows_from_the_last_doubling(gain: tuple[float, float, float], answer: str) -> None:
    points = tuple(CurvePoint(n, Measured(0.8, 0.7, 0.9)) for n in (500, 1000))
    verdict = LearningCurve(points, Measured(*gain), 200).verdict
    assert verdict.startswith("From 500 to 1,000 training rows, macro-F1 of the linear baseline changed by ")
    assert f"{signed(100 * gain[0])} points (95 % interval {signed(100 * gain[1])}" in verdict and answer in verdict


def test_ten_test_rows_that_are_all_right_do_not_tell_whether_more_rows_help() -> None:
    training, test = (LabelledTexts(["good day", "bad day"] * n, [0, 1] * n, ("good", "bad")) for n in (40, 5))
    curve = linear_learning_curve(training, test)
    assert curve.points[-1].macro_f1.value == 1 and curve.points[-1].macro_f1.low < 0.8
    assert "10 test rows are too few to tell" in curve.verdict


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match="15 training rows are too few"):
        linear_learning_curve(rows(15, seed=0), rows(50, seed=1))
