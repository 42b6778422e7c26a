"""Random texts of a data set, and what a classifier makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.predictor import Prediction, Predictor


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """A text with its true class (None for a text out of scope) and the model's best class."""

    text: str
    truth: str | None
    prediction: Prediction

    @property
    def is_right(self) -> bool:
        """Whether the prediction is right: out of scope if the text is, else the true class and not out of scope."""
        if self.truth is None:
            return self.prediction.out_of_scope is True
        return self.prediction.label == self.truth and self.prediction.out_of_scope is not True


def random_texts(texts: Sequence[str], *, n: int, seed: int = 0) -> list[str]:
    """`n` different texts in random order, or all if there are fewer; the same ones for the same seed."""
    places = np.random.default_rng(seed).permutation(len(texts))[:n]
    return [texts[int(place)] for place in places]


def classify_random_texts(
    classifier: Predictor, rows: LabelledTexts, outside: Sequence[str] = (), *, n: int, seed: int
) -> list[ClassifiedText]:
    """Classify `n` different rows, and texts `outside` of all classes, in random order; a larger `n` adds to them.

    Raises:
        DataError: the rows have classes that the classifier does not have.
    """
    if unknown := sorted(set(rows.classes) - set(classifier.classes)):
        raise DataError(
            f"the data set on this machine has classes that {classifier.name} does not know, such as {unknown[0]!r}: "
            "it is not the one that was trained on"
        )
    places = np.random.default_rng(seed).permutation(len(rows) + len(outside))[:n]
    chosen = [
        (rows.texts[place], rows.classes[rows.labels[place]])
        if place < len(rows)
        else (outside[place - len(rows)], None)
        for place in map(int, places)
    ]
    predictions = classifier.predict([text for text, _ in chosen], top_k=1, batch_size=32)
    return [
        ClassifiedText(text, truth, prediction) for (text, truth), prediction in zip(chosen, predictions, strict=True)
    ]
