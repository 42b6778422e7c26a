"""Measurements of the answer: class, probability, when it is settled, accuracy, and whether a text is out of scope."""

from typing import Any, Literal

from pydantic import Field

from txcls.inspection.ablation import AccuracyEffects, Change, How, Means, ablate
from txcls.inspection.lens import class_lens
from txcls.inspection.positions import shuffle_words
from txcls.lessons.address import SWITCH
from txcls.lessons.measures.base import HowOff, Measured, MeasureError, Result
from txcls.predictor import Predictor


class PredictedClass(Measured):
    """The class that wins, with parts switched off if any are named: "2.1", "1.ff", "t3", "positions"."""

    measure: Literal["predicted_class"]
    switched: list[str] = Field(default_factory=list)
    how: HowOff = "zero"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """The class."""
        probabilities = _probabilities(classifier, text, self.switched, self.how)
        return max(probabilities, key=probabilities.__getitem__)


class Probability(Measured):
    """The probability of a class in per cent (of the winner if none is named), with parts switched off if any are."""

    measure: Literal["probability"]
    of: str | None = None
    switched: list[str] = Field(default_factory=list)
    how: HowOff = "zero"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Per cent."""
        probabilities = _probabilities(classifier, text, self.switched, self.how)
        if self.of is not None and self.of not in probabilities:
            raise MeasureError(f"{classifier.name} has no class {self.of!r}; it has {', '.join(probabilities)[:200]}")
        return 100 * (max(probabilities.values()) if self.of is None else probabilities[self.of])


class OrderKept(Measured):
    """In how many per cent of 20 random word orders the predicted class stays the same."""

    measure: Literal["order_kept"]

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Per cent."""
        return 100 * shuffle_words(classifier, text).label_kept


class FormedIn(Measured):
    """The state from which on the class lens gives the final answer: 0 the embeddings, then two for each layer."""

    measure: Literal["lens_settled"]

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A state's number."""
        answers = class_lens(classifier, text).probabilities.argmax(axis=1)
        others = [number for number, answer in enumerate(answers) if answer != answers[-1]]
        return float(others[-1] + 1 if others else 0)


class Accuracy(Measured):
    """Accuracy in per cent on test rows as recorded with the checkpoint: of the model, without its heads, or with the
    words of every text shuffled (without order)."""

    measure: Literal["accuracy"]
    without: Literal["nothing", "heads", "order"] = "nothing"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Per cent."""
        recorded = classifier.checkpoint.metrics.get("test", {})
        if self.without == "nothing":
            found = recorded.get("accuracy")
        elif self.without == "order":
            found = recorded.get("order", {}).get("words_shuffled")
        else:
            effects = AccuracyEffects.of(classifier)
            found = None if effects is None else effects.all_heads
        if found is None:
            raise MeasureError(f"{classifier.name} records no such accuracy; `txcls evaluate --heads --write` does")
        return 100 * float(found)


class OutOfScope(Measured):
    """Whether the model says that the text belongs to none of its classes: "yes" or "no"."""

    measure: Literal["out_of_scope"]

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Yes or no."""
        outside = classifier.predict([text])[0].out_of_scope
        if outside is None:
            raise MeasureError(f"{classifier.name} has no rule for texts out of scope")
        return "yes" if outside else "no"


def _probabilities(classifier: Predictor, text: str, switched: list[str], how: How) -> dict[str, float]:
    """Class to probability, with parts switched off."""
    if not switched:
        ranked = classifier.predict([text])[0].ranked
        if not ranked:
            raise MeasureError(f"{classifier.name} reads no word in this text")
        return {one.label: one.probability for one in ranked}
    try:
        changed = ablate(classifier, text, [[_change(one, how) for one in switched]], means=Means.of(classifier))
    except (ValueError, IndexError) as error:
        raise MeasureError(str(error)) from None
    return dict(zip(classifier.classes, (float(one) for one in changed.changed[0]), strict=True))


def _change(part: str, how: How) -> Change:
    """A part as in an address: "2.1", "1.ff", "t3" or "positions"."""
    if not SWITCH.fullmatch(part):
        raise MeasureError(f"{part!r} is no part of a model; wanted such as 2.1, 1.ff, t3 or positions")
    off: Any = how if how in ("zero", "mean") else "zero"
    if part == "positions":
        return Change("positions", off)
    if part.startswith("t"):
        return Change("token", off, index=int(part[1:]) - 1)
    layer, _, index = part.partition(".")
    if index == "ff":
        return Change("feed_forward", off, int(layer) - 1)
    return Change("head", how, int(layer) - 1, int(index) - 1)
