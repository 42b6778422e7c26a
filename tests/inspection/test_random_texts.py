"""Random texts of a data set beside their predictions."""

import pytest

from tests.conftest import CLASSES, TEXTS
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.inspection.random_texts import ClassifiedText, classify_random_texts, random_texts
from txcls.predictor import ClassProbability, Prediction, Predictor

ROWS = LabelledTexts(TEXTS, [n % 4 for n in range(len(TEXTS))], CLASSES)


def classified(truth: str | None, label: str, *, outside: bool | None = None) -> ClassifiedText:
    return ClassifiedText(
        "x", truth, Prediction("x", label, (ClassProbability(label, 0.9),), 0.1, (), (), None, outside)
    )


def test_the_same_seed_draws_the_same_and_more_adds_to_fewer(classifier: Predictor) -> None:
    few, more = (classify_random_texts(classifier, ROWS, n=n, seed=3) for n in (3, 6))
    assert [drawn.text for drawn in more[:3]] == [drawn.text for drawn in few]
    assert len({drawn.text for drawn in more}) == 6
    other = classify_random_texts(classifier, ROWS, n=6, seed=4)
    assert [drawn.text for drawn in other] != [drawn.text for drawn in more]


def test_each_text_keeps_its_class_and_gets_its_own_prediction(classifier: Predictor) -> None:
    for drawn in classify_random_texts(classifier, ROWS, n=100, seed=0):
        assert drawn.truth == CLASSES[TEXTS.index(drawn.text) % 4]
        assert drawn.prediction.label == classifier.predict([drawn.text])[0].label


def test_texts_of_no_class_are_drawn_too_where_given(classifier: Predictor) -> None:
    everything = classify_random_texts(classifier, ROWS, ["neither", "nor"], n=100, seed=0)
    assert sorted(drawn.text for drawn in everything if drawn.truth is None) == ["neither", "nor"]
    assert len(everything) == len(TEXTS) + 2


def test_right_is_the_class_found_or_a_text_of_none_turned_away() -> None:
    assert classified("a", "a").is_right and classified("a", "a", outside=False).is_right
    assert not classified("a", "b").is_right and not classified("a", "a", outside=True).is_right
    assert classified(None, "a", outside=True).is_right
    assert not classified(None, "a", outside=False).is_right and not classified(None, "a").is_right


def test_rows_of_other_classes_are_refused(classifier: Predictor) -> None:
    with pytest.raises(DataError, match="'Weather'"):
        classify_random_texts(classifier, LabelledTexts(["x"], [0], ("Weather",)), n=1, seed=0)


def test_texts_are_drawn_without_repeats_and_the_same_each_time() -> None:
    texts = [f"text {n}" for n in range(50)]
    drawn = random_texts(texts, n=20)
    assert len(set(drawn)) == 20 and drawn == random_texts(texts, n=30)[:20] != random_texts(texts, n=20, seed=1)
    assert sorted(random_texts(texts, n=99)) == sorted(texts)
