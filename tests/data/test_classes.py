"""Labelled rows in the class order of a model."""

import pytest

from txcls.data.classes import in_classes_of
from txcls.data.types import LabelledTexts
from txcls.errors import DataError

ROWS = LabelledTexts(["goal", "rain", "goal again"], [0, 1, 0], ("Sport", "Weather"))


def test_labels_become_indices_into_the_models_classes() -> None:
    found = in_classes_of(ROWS, ("Weather", "Politics", "Sport"), name="tiny")
    assert found == LabelledTexts(ROWS.texts, [2, 0, 2], ("Weather", "Politics", "Sport"))
    assert in_classes_of(ROWS, ROWS.classes, name="tiny") is ROWS


def test_a_class_that_the_model_has_not_is_named() -> None:
    with pytest.raises(DataError, match="classes that tiny does not know: Weather; it knows Sport"):
        in_classes_of(ROWS, ("Sport",), name="tiny")
