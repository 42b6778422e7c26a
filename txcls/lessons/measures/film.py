"""Measurements of the training film: the states of the model that were kept during its training."""

from typing import Literal

from pydantic import Field

from txcls.checkpoint.snapshots import SnapshotRow
from txcls.inspection.training_film import flips, training_film
from txcls.lessons.measures.base import Measured, MeasureError, Result
from txcls.predictor import Predictor


class FilmStep(Measured):
    """The first kept training step at which validation accuracy reaches a number of per cent."""

    measure: Literal["film_step"]
    accuracy: float = Field(ge=0, le=100)

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Optimiser steps."""
        rows = _snapshots(classifier)
        reached = [row.step for row in rows if 100 * row.validation_accuracy >= self.accuracy]
        if not reached:
            raise MeasureError(f"{classifier.name} never reaches {self.accuracy} % in the states that were kept")
        return float(reached[0])


class FilmAccuracy(Measured):
    """Validation accuracy in per cent of a kept training step."""

    measure: Literal["film_accuracy"]
    step: int = Field(ge=0)

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Per cent."""
        rows = {row.step: row for row in _snapshots(classifier)}
        if self.step not in rows:
            raise MeasureError(f"no state of step {self.step} was kept; there are {', '.join(map(str, rows))}")
        return 100 * float(rows[self.step].validation_accuracy)


class FilmClass(Measured):
    """The class that a kept training step predicts for the text."""

    measure: Literal["film_class"]
    step: int = Field(ge=0)

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A class."""
        film = training_film(classifier, text, shown=slice(0, 1))
        steps = [row.step for row in film.rows]
        if self.step not in steps:
            raise MeasureError(f"no state of step {self.step} was kept; there are {', '.join(map(str, steps))}")
        return classifier.classes[int(film.answers[steps.index(self.step)])]


class Settled(Measured):
    """The kept training step from which on the answer to the text is that of the trained model."""

    measure: Literal["film_settled"]

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Optimiser steps."""
        film = training_film(classifier, text, shown=slice(0, 1))
        turned = flips(film.answers)
        return float(film.rows[turned[-1] if turned else 0].step)


def _snapshots(classifier: Predictor) -> tuple[SnapshotRow, ...]:
    if classifier.checkpoint.snapshots is None:
        raise MeasureError(f"{classifier.name} was trained without keeping states, so it has no training film")
    return classifier.checkpoint.snapshots.rows
