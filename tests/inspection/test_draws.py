"""Random texts of a data set beside their predictions."""

import pytest

from tests.conftest import CLASSES, TEXTS
from txcls.classifier import Classifier, Prediction, Score
from txcls.data.datasets import LabelledTexts
from txcls.errors import DataError
from txcls.inspection import DrawnText, draw_texts

ROWS = LabelledTexts(TEXTS, [n % 4 for n in range(len(TEXTS))], CLASSES)


def drawn(truth: str | None, label: str, *, outside: bool | None = None) -> DrawnText:
    return DrawnText("x", truth, Prediction("x", label, (Score(label, 0.9),), 0.1, (), (), None, outside))


def test_the_same_seed_draws_the_same_and_more_adds_to_fewer(classifier: Classifier) -> None:
    few, more = (draw_texts(classifier, ROWS, n=n, seed=3) for n in (3, 6))
    assert [one.text for one in more[:3]] == [one.text for one in few]
    assert len({one.text for one in more}) == 6
    other = draw_texts(classifier, ROWS, n=6, seed=4)
    assert [one.text for one in other] != [one.text for one in more]


def test_each_text_keeps_its_class_and_gets_its_own_prediction(classifier: Classifier) -> None:
    for one in draw_texts(classifier, ROWS, n=100, seed=0):
        assert one.truth == CLASSES[TEXTS.index(one.text) % 4]
        assert one.prediction.label == classifier.predict([one.text])[0].label


def test_texts_of_no_class_are_drawn_too_where_given(classifier: Classifier) -> None:
    everything = draw_texts(classifier, ROWS, ["neither", "nor"], n=100, seed=0)
    assert sorted(one.text for one in everything if one.truth is None) == ["neither", "nor"]
    assert len(everything) == len(TEXTS) + 2


def test_right_is_the_class_found_or_a_text_of_none_turned_away() -> None:
    assert drawn("a", "a").is_right and drawn("a", "a", outside=False).is_right
    assert not drawn("a", "b").is_right and not drawn("a", "a", outside=True).is_right
    assert drawn(None, "a", outside=True).is_right
    assert not drawn(None, "a", outside=False).is_right and not drawn(None, "a").is_right


def test_rows_of_other_classes_are_refused_and_so_is_nothing(classifier: Classifier) -> None:
    with pytest.raises(DataError, match="'Weather'"):
        draw_texts(classifier, LabelledTexts(["x"], [0], ("Weather",)), n=1, seed=0)
    with pytest.raises(ValueError, match="n = 0"):
        draw_texts(classifier, ROWS, n=0, seed=0)
