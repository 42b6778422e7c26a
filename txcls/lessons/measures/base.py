"""What every measurement has in common: another checkpoint or text, a place in the model, errors."""

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from txcls.errors import TxclsError
from txcls.predictor import Predictor

Load = Callable[[str], "Predictor"]
"""Gives the classifier of a name."""
Result = str | float | list[str] | list[list[str]]
"""A class or word, a number, words or heads in an order, words in groups."""
HowOff = Literal["zero", "mean", "uniform", "shuffled"]
At = Annotated[int, Field(ge=1, le=10_000)]


class Measured(BaseModel):
    """A quantity that is measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    checkpoint: str | None = None
    """Another checkpoint than the step's."""
    text: str | None = None
    """Another text than the step's."""

    def result(self, load: Load, checkpoint: str, text: str) -> Result:
        """Measure it.

        Raises:
            TxclsError: the checkpoint cannot be loaded, or does not have what is measured.
        """
        return self.measured(load(self.checkpoint or checkpoint), self.text or text)

    def measured(self, classifier: Predictor, text: str) -> Result:
        """The value for a classifier and a text."""
        raise NotImplementedError


class MeasureError(TxclsError):
    """A measurement cannot be made on this model or text."""


class OfHead(Measured):
    """A quantity of one head."""

    layer: At
    head: At

    def place(self, classifier: Predictor) -> tuple[int, int]:
        """Layer and head, from 0; MeasureError if the model has no such head."""
        config = classifier.checkpoint.config.model
        if self.layer > config.n_layers or self.head > config.n_heads:
            raise MeasureError(
                f"{classifier.name} has no head {self.layer}.{self.head}; it has {config.n_layers} layers of "
                f"{config.n_heads} heads"
            )
        return self.layer - 1, self.head - 1


def within(number: int, most: int) -> int:
    """The number, if the text has so many tokens; MeasureError if not."""
    if number > most:
        raise MeasureError(f"there is no token {number}; the text has {most}")
    return number
