"""Random texts of a data set beside what a classifier makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from txcls.classifier import Classifier, Prediction
from txcls.data.datasets import LabelledTexts
from txcls.errors import DataError


@dataclass(frozen=True, slots=True)
class DrawnText:
    """A text with its class (None for a text of no class) and the prediction of all classes' best."""

    text: str
    truth: str | None
    prediction: Prediction

    @property
    def is_right(self) -> bool:
        """Whether the class was found, or a text of no class turned away; one turned away wrongly is wrong."""
        if self.truth is None:
            return self.prediction.out_of_scope is True
        return self.prediction.label == self.truth and self.prediction.out_of_scope is not True


def draw_texts(
    classifier: Classifier, rows: LabelledTexts, outside: Sequence[str] = (), *, n: int, seed: int
) -> list[DrawnText]:
    """Classify `n` different rows in random order; a larger `n` adds to the rows of a smaller one.

    Args:
        classifier: one that knows the classes of the rows.
        rows: to draw from.
        outside: texts of no class, to draw from as well.
        n: how many, or all where there are fewer.
        seed: the same one draws the same rows.

    Raises:
        DataError: the rows have classes that the classifier does not know.
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"got n = {n}; wanted at least 1")
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
    return [DrawnText(text, truth, prediction) for (text, truth), prediction in zip(chosen, predictions, strict=True)]
