"""The linear peer and the comparison: against scikit-learn's and SciPy's own figures."""

import json
import re

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import f1_score

from txcls.checkpoint.comparison import Comparison
from txcls.evaluation.baseline import compare, linear_answers, majority_answers, paired_difference, wilson

RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 4, 300)
GOOD = np.where(RNG.random(300) < 0.9, TRUE, RNG.integers(0, 4, 300))
FAIR = np.where(RNG.random(300) < 0.6, TRUE, RNG.integers(0, 4, 300))


def compared(**changes: object) -> Comparison:
    arguments: dict[str, object] = {
        "truth": TRUE,
        "majority": majority_answers(TRUE.tolist(), 300),
        "linear": FAIR,
        "transformer": GOOD,
        "n_training": 1000,
    }
    return compare(**{**arguments, **changes})  # type: ignore[arg-type]


def test_figures_are_those_of_scikit_learn() -> None:
    found = compared()
    for answers, one in ((GOOD, found.transformer), (FAIR, found.linear)):
        assert one.accuracy.value == pytest.approx((answers == TRUE).mean())
        assert one.macro_f1.value == pytest.approx(f1_score(TRUE, answers, average="macro"))
        assert one.macro_f1.low < one.macro_f1.value < one.macro_f1.high
    assert found.majority.accuracy.value == pytest.approx(np.bincount(TRUE).max() / 300)
    assert found.only_transformer == ((GOOD == TRUE) & (FAIR != TRUE)).sum()
    assert found.difference.value == pytest.approx((GOOD == TRUE).mean() - (FAIR == TRUE).mean())


@pytest.mark.parametrize("right, n", [(0, 10), (3, 10), (99, 100), (500, 1000)])
def test_intervals_of_shares_are_wilsons(right: int, n: int) -> None:
    theirs = binomtest(right, n).proportion_ci(method="wilson")
    ours = wilson(right, n)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-6)


def test_the_interval_of_a_difference_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    outcomes = rng.multinomial(200, [0.08, 0.05, 0.87], size=2000)  # one alone right, the other alone, both or neither
    found = [paired_difference(int(a), int(b), 200) for a, b, _ in outcomes]
    covered = np.mean([one.low <= 0.03 <= one.high for one in found])
    assert 0.93 <= covered <= 0.975


def test_a_verdict_is_drawn_only_where_the_interval_allows_it() -> None:
    assert compared().verdict.startswith("The Transformer is better than the linear SVM")
    worse = compared(linear=GOOD, transformer=FAIR)
    assert worse.verdict.startswith("The linear SVM is better than the Transformer by ")
    low, high = (float(one) for one in re.findall(r"[+-]\d+\.\d", worse.verdict))
    assert 0 < low < high, "an interval around what is said, with its sign"
    assert compared(linear=GOOD, transformer=FAIR).verdict.startswith("The linear SVM is better")
    same = compared(linear=GOOD)
    assert "cannot be told apart" in same.verdict and same.difference.low < 0 < same.difference.high


def test_a_comparison_is_read_back_from_json() -> None:
    found = compared(seconds={"linear": 0.26, "transformer": 12.3})
    again = Comparison.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.to_dict() == found.to_dict() and again.verdict == found.verdict and again.linear.seconds == 0.3
    assert [row[0] for row in again.table] == [
        "majority guess",
        "TF-IDF of words and pairs + linear SVM",
        "this Transformer",
        "Transformer − linear SVM",
    ]


def test_the_linear_peer_learns_pairs_of_words_and_answers_any_text() -> None:
    texts = ["not good", "good", "not bad", "bad"] * 20
    answers = linear_answers(texts, [0, 1, 1, 0] * 20, ["bad", "not bad", "", "?!"])
    assert answers.tolist()[:2] == [0, 1] and set(answers.tolist()) <= {0, 1} and answers.dtype == np.int64


def test_texts_of_single_signs_are_learned() -> None:
    assert linear_answers(["好", "坏"] * 10, [1, 0] * 10, ["好", "坏"]).tolist() == [1, 0]


def test_nothing_to_compare_is_refused() -> None:
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="got 0 rows"):
        compare(truth=none, majority=none, linear=none, transformer=none, n_training=1)
    with pytest.raises(ValueError, match="got 300 rows"):
        compared(linear=FAIR[:-1])
