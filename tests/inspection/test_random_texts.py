"""Random texts of a data set beside their predictions."""

import pytest

from tests.conftest import CLASSES, TEXTS
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.inspection.random_texts import ClassifiedText, classify_random_texts, random_texts
from txcls.predictor import ClassProbability, Prediction, Predictor

ROWS = LabelledTexts(TEXTS, [n % 4 for n in range(len(TEXTS))], CLASSES)


def drawn(truth: str | None, label: str, *, outside: bool | None = None) -> ClassifiedText:
    return ClassifiedText(
        "x", truth, Prediction("x", label, (ClassProbability(label, 0.9),), 0.1, (), (), None, outside)
    )


def test_the_same_seed_draws_the_same_and_more_adds_to_fewer(classifier: Predictor) -> None:
    few, more = (classify_random_texts(classifier, ROWS, n=n, seed=3) for n in (3, 6))
    assert [one.text for one in more[:3]] == [one.text for one in few]
    assert len({one.text for one in more}) == 6
    other = classify_random_texts(classifier, ROWS, n=6, seed=4)
    assert [one.text for one in other] != [one.text for one in more]


def test_each_text_keeps_its_class_and_gets_its_own_prediction(classifier: Predictor) -> None:
    for one in classify_random_texts(classifier, ROWS, n=100, seed=0):
        assert one.truth == CLASSES[TEXTS.index(one.text) % 4]
        assert one.prediction.label == classifier.predict([one.text])[0].label


def test_texts_of_no_class_are_drawn_too_where_given(classifier: Predictor) -> None:
    everything = classify_random_texts(classifier, ROWS, ["neither", "nor"], n=100, seed=0)
    assert sorted(one.text for one in everything if one.truth is None) == ["neither", "nor"]
    assert len(everything) == len(TEXTS) + 2


def test_right_is_the_class_found_or_a_text_of_none_turned_away() -> None:
    assert drawn("a", "a").is_right and drawn("a", "a", outside=False).is_right
    assert not drawn("a", "b").is_right and not drawn("a", "a", outside=True).is_right
    assert drawn(None, "a", outside=True).is_right
    assert not drawn(None, "a", outside=False).is_right and not drawn(None, "a").is_right


def test_rows_of_other_classes_are_refused_and_so_is_nothing(classifier: Predictor) -> None:
    with pytest.raises(DataError, match="'Weather'"):
        classify_random_texts(classifier, LabelledTexts(["x"], [0], ("Weather",)), n=1, seed=0)
    with pytest.raises(ValueError, match="n = 0"):
        classify_random_texts(classifier, ROWS, n=0, seed=0)


def test_texts_are_drawn_without_repeats_and_the_same_each_time() -> None:
    texts = [f"text {n}" for n in range(50)]
    drawn = random_texts(texts, n=20)
    assert len(set(drawn)) == 20 and drawn == random_texts(texts, n=30)[:20] != random_texts(texts, n=20, seed=1)
    assert sorted(random_texts(texts, n=99)) == sorted(texts)
