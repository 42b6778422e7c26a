import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import skops.io
from scipy.stats import bootstrap
from sklearn.metrics import f1_score

from txcls.checkpoint.comparison import Comparison, Measured
from txcls.data.types import LabelledTexts, labelled_texts
from txcls.errors import CheckpointError
from txcls.evaluation import linear
from txcls.evaluation.compare import compare
from txcls.evaluation.linear import fit_linear, load_linear, save_linear
from txcls.evaluation.metrics import paired_difference, wilson
from txcls.text.formatting import largest_margin

Rows = Callable[..., LabelledTexts]
RNG = np.random.default_rng(0)
TRUE = RNG.integers(0, 4, 300)
GOOD = np.where(RNG.random(300) < 0.9, TRUE, RNG.integers(0, 4, 300))
FAIR = np.where(RNG.random(300) < 0.6, TRUE, RNG.integers(0, 4, 300))


FITTED = fit_linear(labelled_texts(["good", "bad"] * 5, ["0", "1"] * 5))


def compared(**changes: object) -> Comparison:
    arguments: dict[str, object] = {
        "truth": TRUE,
        "training_labels": TRUE,
        "linear": FAIR,
        "transformer": GOOD,
        "model": FITTED,
    }
    return compare(**{**arguments, **changes})  # type: ignore[arg-type]


def test_macro_f1_equals_scikit_learn() -> None:
    comparison = compared()
    for predictions, contestant in ((GOOD, comparison.transformer), (FAIR, comparison.linear)):
        assert contestant.accuracy.value == pytest.approx((predictions == TRUE).mean())
        assert contestant.macro_f1.value == pytest.approx(f1_score(TRUE, predictions, average="macro"))
        assert contestant.macro_f1.low < contestant.macro_f1.value < contestant.macro_f1.high
    assert comparison.majority.accuracy.value == pytest.approx(np.bincount(TRUE).max() / 300)
    assert comparison.only_transformer == ((GOOD == TRUE) & (FAIR != TRUE)).sum()
    assert comparison.difference.value == pytest.approx((GOOD == TRUE).mean() - (FAIR == TRUE).mean())


def test_intervals_of_macro_f1_are_those_of_scipy() -> None:
    def macro_f1(rows: np.ndarray) -> float:
        return float(f1_score(TRUE[rows], FAIR[rows], average="macro"))

    theirs = bootstrap(
        (np.arange(300),), macro_f1, n_resamples=1000, method="BCa", vectorized=False, rng=np.random.default_rng(1)
    ).confidence_interval
    ours = compared().linear.macro_f1
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.012)


@pytest.mark.parametrize("n", [10, 1000, 5366, 7162])
def test_no_interval_of_a_share_is_wider_than_its_largest_margin(n: int) -> None:
    widest = max(100 * (wilson(right, n).high - wilson(right, n).low) / 2 for right in range(n // 2 - 1, n // 2 + 2))
    margin = float(largest_margin(n).strip("± points"))
    assert widest <= margin < widest + 0.1


def test_the_interval_of_a_difference_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(1)
    outcomes = rng.multinomial(200, [0.08, 0.05, 0.87], size=2000)  # only one right, only the other, both or neither
    intervals = [paired_difference(int(a), int(b), 200) for a, b, _ in outcomes]
    covered = np.mean([interval.low <= 0.03 <= interval.high for interval in intervals])
    assert 0.93 <= covered <= 0.975


def test_a_verdict_is_drawn_only_where_the_interval_allows_it() -> None:
    assert compared().verdict.startswith("Use the Transformer: it is better than the linear model by ")
    worse = compared(linear=GOOD, transformer=FAIR)
    assert worse.verdict.startswith("Use the linear model: it is better than the Transformer by ")
    low, high = (float(number) for number in re.findall(r"[+-]\d+\.\d", worse.verdict))
    assert 0 < low < high, "an interval around the stated difference, with its sign"
    equal = compared(linear=GOOD)
    assert equal.verdict.startswith("Use the linear model, which is cheaper: ")
    assert equal.difference.low < 0 < equal.difference.high
    uneven = replace(equal, difference_f1=Measured(-0.03, -0.05, -0.01))
    assert uneven.verdict.startswith(
        "Use the linear model: it is better than the Transformer by 3.0 points of macro-F1"
    )
    assert uneven.verdict.endswith(" By accuracy, they cannot be told apart.")
    assert replace(uneven, difference_f1=Measured(0.03, 0.01, 0.05)).to_use == "transformer"
    one_sided = replace(compared(), difference_f1=Measured(0.033, -0.024, 0.086))
    assert " By macro-F1, they cannot be told apart." in one_sided.verdict


@pytest.mark.parametrize("n", [1, 10, 30])
def test_few_rows_have_wide_intervals_of_macro_f1_even_if_all_are_right_or_all_predictions_equal(n: int) -> None:
    true = np.arange(n) % 2
    perfect = compared(truth=true, training_labels=[0], linear=true, transformer=true)
    assert perfect.transformer.macro_f1.low == pytest.approx(wilson(n, n).low), "as accuracy, if classes are even"
    assert perfect.difference_f1.low <= -0.06 and perfect.difference_f1.high >= 0.06
    assert "+0.0 to +0.0" not in perfect.verdict and " to 100.0)" in perfect.table[2][2]
    opposite = compared(truth=true, training_labels=[0], linear=1 - true, transformer=true)
    assert opposite.difference_f1.low < opposite.difference_f1.value == opposite.difference_f1.high == 1
    assert opposite.linear.macro_f1.low == 0 < opposite.linear.macro_f1.high


def test_a_rare_class_widens_the_interval_of_macro_f1_if_all_are_right() -> None:
    true = np.array([0] * 50 + [1] * 2)
    low = compared(truth=true, training_labels=[0], linear=true, transformer=true).transformer.macro_f1.low
    assert wilson(2, 2).low < low < wilson(52, 52).low - 0.2


def test_a_comparison_is_read_back_from_json() -> None:
    first = compared(seconds={"linear": 0.26, "transformer": 12.3})
    copy = Comparison.from_dict(json.loads(json.dumps(first.to_dict())))
    assert copy.to_dict() == first.to_dict() and copy.verdict == first.verdict and copy.linear.seconds == 0.3
    assert str(copy).endswith(copy.verdict) and "macro-F1" in str(copy)


def test_pairs_of_words_are_learned_and_any_text_gets_a_class() -> None:
    model = fit_linear(labelled_texts(["not good", "good", "not bad", "bad"] * 20, [*"0110"] * 20))
    predictions = model.predict(["bad", "not bad", "", "?!"])
    assert predictions.tolist()[:2] == [0, 1] and set(predictions.tolist()) <= {0, 1} and predictions.dtype == np.int64


@pytest.mark.parametrize(
    "texts",
    [["好", "坏"], ["这家店的东西很好吃", "这家店的东西很难吃"], ["plan a", "plan b"]],
    ids=["single characters", "Chinese clauses", "one-letter words"],
)
def test_a_word_that_separates_the_classes_is_learned(texts: list[str]) -> None:
    model = fit_linear(labelled_texts(texts * 10, ["0", "1"] * 10))
    assert model.predict([f"{texts[1]} 的", f"{texts[0]} 的"]).tolist() == [1, 0]
    assert model.predict([texts[1]], ("2", "1", "0")).tolist() == [1], "the index among other classes"


def inflected(n: int, seed: int) -> LabelledTexts:
    """Texts of words that never recur; the words' endings determine the class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n).tolist()
    stems = ["".join(random.choice(list("bcdfgklmnprst"), 6)) for _ in range(n)]
    texts = [f"{stem}{('eau', 'ung')[label]}" for stem, label in zip(stems, labels, strict=True)]
    return LabelledTexts(texts, labels, ("bad", "good"))


def two_words(n: int, seed: int) -> LabelledTexts:
    """Texts of a common word, in which the word before it determines the class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, n).tolist()
    texts = [f"{('not', 'so')[label]} good {'abcdefgh'[n % 8] * 3}" for n, label in enumerate(labels)]
    return LabelledTexts(texts, labels, ("bad", "good"))


def test_character_features_are_used_where_they_score_higher() -> None:
    model, new = fit_linear(inflected(400, seed=0)), inflected(100, seed=1)
    assert "2 to 5 characters" in model.settings and (model.predict(new.texts) == new.labels).mean() > 0.9


def test_long_texts_of_a_megabyte_keep_their_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    page = " ".join(f"word{n % 300} text{n % 200}" for n in range(3000))
    texts = [f"{page[n:]} {('eau', 'ung')[n % 2]}" for n in range(40)]
    made: list[str] = []
    monkeypatch.setattr(linear, "_hashing", lambda kind, make=linear._hashing: made.append(kind) or make(kind))
    monkeypatch.setattr(linear, "time", SimpleNamespace(perf_counter=lambda: float(len(made))))
    n_entries, seconds = linear.estimate_features("characters", texts)
    assert sum(map(len, texts)) > 1_000_000 > n_entries > 20_000, "a page repeats itself"
    assert seconds == 0, "the import of scikit-learn is not multiplied by the number of texts"
    rows = inflected(400, seed=0)
    assert "left out" not in fit_linear(rows).settings
    monkeypatch.setattr(linear, "MAX_ENTRIES", 1000)
    assert "(characters would take too much time and memory)" in fit_linear(rows).settings


@pytest.mark.parametrize("rows", [inflected, two_words], ids=["characters", "words"])
def test_a_saved_model_makes_the_same_predictions_without_txcls(rows: Rows, tmp_path: Path) -> None:
    fitted, new = fit_linear(rows(400, seed=0)), rows(100, seed=1)
    save_linear(fitted, tmp_path / "mine.skops")
    assert not skops.io.get_untrusted_types(file=tmp_path / "mine.skops"), "it loads without trust in anything"
    model = load_linear(tmp_path / "mine.skops")
    probabilities = model.predict_proba(new.texts)
    assert model.classes == ("bad", "good") and np.allclose(probabilities.sum(axis=1), 1)
    assert np.allclose(probabilities, fitted.predict_proba(new.texts))
    right = probabilities.argmax(axis=1) == new.labels
    assert abs(probabilities.max(axis=1).mean() - right.mean()) < 0.1, "the probabilities are calibrated"
    predicted = skops.io.load(tmp_path / "mine.skops").predict(new.texts)
    assert predicted.tolist() == [("bad", "good")[label] for label in fitted.predict(new.texts)]


@pytest.mark.parametrize(
    "held", [None, b"no zip file", {"a": 1}, os.system], ids=["missing", "damaged", "dict", "code"]
)
def test_a_file_that_is_no_linear_model_is_refused(held: object, tmp_path: Path) -> None:
    file = tmp_path / "linear.skops"
    if isinstance(held, bytes):
        file.write_bytes(held)
    elif held is not None:
        skops.io.dump(held, file)
    with pytest.raises(CheckpointError, match="linear model"):
        load_linear(file)


def test_c_is_the_best_on_rows_held_out_and_answers_are_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "STRENGTHS", (1e-6, 1.0))  # with the first, every text gets the more frequent class
    texts = [f"{word} {n}" for n in range(20) for word in ("good", "bad", "good")]
    rows = labelled_texts(texts, [*"010"] * 20)
    first, second = (fit_linear(rows, seed=3) for _ in range(2))
    assert first.settings == second.settings and first.settings.endswith("C = 1")
    assert np.array_equal(first.predict_proba(texts), second.predict_proba(texts))
