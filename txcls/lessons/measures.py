"""The quantities that a lesson can measure, computed by the package's inspection functions.

A measurement uses the step's checkpoint and text unless it specifies others. Layers, heads and words count from 1, as
on screen. Probabilities are in per cent, effects in percentage points.
"""

import math
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from txcls.checkpoint.snapshots import SnapshotRow
from txcls.errors import TxclsError
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, AblationMethod, AblationResult, Means, ablate, ablate_each
from txcls.inspection.attribution import explain
from txcls.inspection.heads import HeadMeasurements
from txcls.inspection.heads.records import Replacement
from txcls.inspection.patching import patch_route
from txcls.inspection.positions import predict_shuffled
from txcls.inspection.tracing import trace_text
from txcls.inspection.training_film import class_changes, training_film
from txcls.lessons.page_address import SWITCH
from txcls.text.tokens import Token

Load = Callable[[str], "Predictor"]
"""Loads the classifier with a given name."""
Result = str | float | list[str] | list[list[str]]
"""A class or word, a number, an ordered list of words or heads, or groups of words."""
Measured = TypeVar("Measured")
FromOne = Annotated[int, Field(ge=1, le=10_000)]
"""A layer, head or token, counted from 1."""


class Measurement(BaseModel):
    """A quantity to measure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    MIN_MARGIN: ClassVar[float] = 0.0
    """The default of `margin`, in the unit of the measure."""

    checkpoint: str | None = None
    """A checkpoint to use in place of the step's."""
    text: str | None = None
    """A text to use in place of the step's."""
    margin: float | None = Field(None, ge=0)
    """The minimum difference between a question's right answer and the runner-up, for `lesson check`."""

    @property
    def min_margin(self) -> float:
        """`margin`, or the default of this kind of measure."""
        return self.MIN_MARGIN if self.margin is None else self.margin

    def result(self, load: Load, checkpoint: str, text: str) -> Result:
        """Measure the quantity.

        Raises:
            TxclsError: the checkpoint cannot be loaded, or this cannot be measured on it.
        """
        return self._measured(self._value, load, checkpoint, text)

    def margin_of_result(self, load: Load, checkpoint: str, text: str) -> float:
        """The margin between the result and the runner-up, in the measure's unit; infinite if there is no runner-up.

        Raises:
            TxclsError: the checkpoint cannot be loaded, or this cannot be measured on it.
        """
        return self._measured(self._margin, load, checkpoint, text)

    def _measured(
        self, measure: Callable[[Predictor, str], Measured], load: Load, checkpoint: str, text: str
    ) -> Measured:
        classifier = load(self.checkpoint or checkpoint)
        try:
            return measure(classifier, self.text or text)
        except (ValueError, IndexError) as error:  # from the inspection functions
            raise MeasureError(str(error)) from None

    def _value(self, classifier: Predictor, text: str) -> Result:
        raise NotImplementedError

    def _margin(self, classifier: Predictor, text: str) -> float:
        return math.inf


class MeasureError(TxclsError):
    """A measurement cannot be made on this model or text."""


class _HeadMeasurement(Measurement):
    """A quantity measured for one head."""

    layer: FromOne
    head: FromOne

    def _index(self, classifier: Predictor) -> tuple[int, int]:
        """Layer and head, from 0; MeasureError if the model has no such head."""
        config = classifier.checkpoint.config.model
        if self.layer > config.n_layers or self.head > config.n_heads:
            raise MeasureError(
                f"{classifier.name} has no head {self.layer}.{self.head}; it has {config.n_layers} layers of "
                f"{config.n_heads} heads"
            )
        return self.layer - 1, self.head - 1


def _margin_of(values: Iterable[float]) -> float:
    """The difference between the largest value and the next; infinite for a single value."""
    first, *others = sorted(values, reverse=True)
    return float(first - others[0]) if others else math.inf


def _token_index(number: int, n_tokens: int) -> int:
    """The index of a token that is counted from 1; MeasureError if the text has fewer tokens."""
    if number > n_tokens:
        raise MeasureError(f"there is no token {number}; the text has {n_tokens}")
    return number - 1


def _measured_heads(classifier: Predictor) -> HeadMeasurements:
    """What is stored about the heads; MeasureError if nothing is."""
    if (measured := HeadMeasurements.of(classifier)) is None:
        raise MeasureError(f"{classifier.name} has no record of its heads; `txcls measure NAME heads --write` adds it")
    return measured


class _WithPartsOff(Measurement):
    """A quantity of the prediction, optionally with parts switched off: "2.1", "1.ff", "t3", "positions"."""

    switched: list[str] = Field(default_factory=list)
    how: AblationMethod = "mean"

    def _probabilities(self, classifier: Predictor, text: str) -> dict[str, float]:
        """The probability of each class."""
        if not self.switched:
            ranked = classifier.predict([text])[0].ranked
            if not ranked:
                raise MeasureError(f"{classifier.name} finds no tokens in this text")
            return {ranked_class.label: ranked_class.probability for ranked_class in ranked}
        changes = [_change(part, _method(classifier, self.how)) for part in self.switched]
        ablation = ablate(classifier, text, [changes], means=Means.of(classifier))
        return dict(zip(classifier.classes, map(float, ablation.changed[0]), strict=True))


class PredictedClass(_WithPartsOff):
    """The predicted class, optionally with parts switched off: "2.1", "1.ff", "t3", "positions"."""

    MIN_MARGIN = 10.0
    measure: Literal["predicted_class"]

    def _value(self, classifier: Predictor, text: str) -> Result:
        probabilities = self._probabilities(classifier, text)
        return max(probabilities, key=probabilities.__getitem__)

    def _margin(self, classifier: Predictor, text: str) -> float:
        return 100 * _margin_of(self._probabilities(classifier, text).values())


class Probability(_WithPartsOff):
    """The probability of a class in per cent (by default the predicted class), optionally with parts switched off."""

    MIN_MARGIN = 5.0
    measure: Literal["probability"]
    of: str | None = None

    def _value(self, classifier: Predictor, text: str) -> Result:
        probabilities = self._probabilities(classifier, text)
        if self.of is not None and self.of not in probabilities:
            raise MeasureError(f"{classifier.name} has no class {self.of!r}; it has {', '.join(probabilities)[:200]}")
        return 100 * (max(probabilities.values()) if self.of is None else probabilities[self.of])


class OrderKept(Measurement):
    """The percentage of 20 random word orders for which the predicted class stays the same."""

    MIN_MARGIN = 2.0
    measure: Literal["order_kept"]

    def _value(self, classifier: Predictor, text: str) -> Result:
        return 100 * predict_shuffled(classifier, text).share_unchanged


class Accuracy(Measurement):
    """Accuracy in per cent on test rows, as recorded with the checkpoint: of the full model, with the outputs of all
    heads replaced by their means, or with the words of every text shuffled (without order)."""

    MIN_MARGIN = 2.0
    measure: Literal["accuracy"]
    without: Literal["nothing", "heads", "order"] = "nothing"

    def _value(self, classifier: Predictor, text: str) -> Result:
        recorded, measured = classifier.checkpoint.metrics.get("test", {}), HeadMeasurements.of(classifier)
        accuracy = {
            "nothing": recorded.get("accuracy"),
            "order": recorded.get("order", {}).get("words_shuffled"),
            "heads": None if measured is None else measured.accuracy - measured.all_heads.mean.lost,
        }[self.without]
        if accuracy is None:
            raise MeasureError(
                f"{classifier.name} has no record of this accuracy; `txcls measure NAME heads --write` adds it"
            )
        return 100 * float(accuracy)


class HeadsWorth(Measurement):
    """The number of heads worth more than some points: the accuracy on test rows that is lost if a head's output is
    replaced by its mean, as recorded with the checkpoint."""

    measure: Literal["heads_worth"]
    points: float = Field(ge=0)

    def _value(self, classifier: Predictor, text: str) -> Result:
        measured = _measured_heads(classifier)
        return float(sum(100 * head.mean.lost > self.points for head in measured.heads))


class Worth(_HeadMeasurement):
    """The points of accuracy on test rows lost if a head's output is replaced by its mean or by that of another text
    (resampled), as recorded with the checkpoint."""

    MIN_MARGIN = 2.0
    measure: Literal["worth"]
    replaced_by: Replacement = "mean"

    def _value(self, classifier: Predictor, text: str) -> Result:
        return 100 * _measured_heads(classifier).head(*self._index(classifier)).of(self.replaced_by).lost


class Moved(Measurement):
    """The percentage of the difference between the predictions for the text and for `changed` that moves if a part is
    copied from the text: the attention patterns or values of all heads, or the states after a layer (0: before the
    first) of the words that differ (changed), of the other words (others), or of the class token."""

    MIN_MARGIN = 5.0
    measure: Literal["moved"]
    changed: str
    part: Literal["patterns", "values", "changed", "others", "class token"]
    layer: int = Field(0, ge=0)

    def _value(self, classifier: Predictor, text: str) -> Result:
        route = patch_route(classifier, text, self.changed)
        if self.part == "patterns" or self.part == "values":
            return 100 * (route.patterns if self.part == "patterns" else route.values)
        return 100 * route.states[self.part][self.layer]


class OutOfScope(Measurement):
    """Whether the model considers the text to belong to none of its classes: "yes" or "no"."""

    measure: Literal["out_of_scope"]

    def _value(self, classifier: Predictor, text: str) -> Result:
        outside = classifier.predict([text])[0].is_out_of_scope
        if outside is None:
            raise MeasureError(f"{classifier.name} has no rule for texts out of scope")
        return "yes" if outside else "no"


def _method(classifier: Predictor, how: AblationMethod) -> AblationMethod:
    """The method, but zeros instead of a mean that was not measured, as on the pages."""
    return "zero" if how == "mean" and Means.of(classifier) is None else how


def _change(part: str, how: AblationMethod) -> Ablation:
    """The change for a part named as in a URL: "2.1", "1.ff", "t3" or "positions"."""
    if not SWITCH.fullmatch(part):
        raise MeasureError(f"{part!r} is not a part of a model; expected, for example, 2.1, 1.ff, t3 or positions")
    off: Any = how if how in ("zero", "mean") else "zero"
    if part == "positions":
        return Ablation("positions", off)
    if part.startswith("t"):
        return Ablation("token", off, index=int(part[1:]) - 1)
    layer, _, index = part.partition(".")
    if index == "ff":
        return Ablation("feed_forward", off, int(layer) - 1)
    return Ablation("head", how, int(layer) - 1, int(index) - 1)


class NumberOfTokens(Measurement):
    """The number of tokens that the model reads, without the special tokens that it adds."""

    measure: Literal["tokens"]

    def _value(self, classifier: Predictor, text: str) -> Result:
        return float(len(_words(classifier, text)))


class TokenText(Measurement):
    """One token, as the model reads it."""

    measure: Literal["token"]
    number: FromOne

    def _value(self, classifier: Predictor, text: str) -> Result:
        words = _words(classifier, text)
        return words[_token_index(self.number, len(words))].text


class UnknownWords(Measurement):
    """The number of tokens that are not in the vocabulary."""

    measure: Literal["unknown"]

    def _value(self, classifier: Predictor, text: str) -> Result:
        return float(sum(token.is_unknown for token in classifier.encode(text).tokens))


class MostAttended(_HeadMeasurement):
    """The token that a head attends to most, from one token or on average over all tokens.

    With `words_only`, special tokens that the model adds are ignored.
    """

    MIN_MARGIN = 10.0
    measure: Literal["most_attended"]
    query: FromOne | None = None
    words_only: bool = False

    def _value(self, classifier: Predictor, text: str) -> Result:
        labels, row = self._row(classifier, text)
        return labels[int(row.argmax())]

    def _margin(self, classifier: Predictor, text: str) -> float:
        return 100 * _margin_of(self._row(classifier, text)[1])

    def _row(self, classifier: Predictor, text: str) -> tuple[list[str], NDArray[np.float64]]:
        """The tokens and their weights, (T,)."""
        traced, (layer, head) = trace_text(classifier, text), self._index(classifier)
        pattern = traced.attention[layer, head].astype(np.float64)  # T T
        row = pattern.mean(axis=0) if self.query is None else pattern[_token_index(self.query, len(pattern))]
        if self.words_only:
            row = np.where([token.is_special for token in traced.tokens], -1.0, row)
        return [token.label for token in traced.tokens], row


class AttentionWeight(_HeadMeasurement):
    """The attention weight of a head from one token (the query) to another (the key), in per cent."""

    MIN_MARGIN = 2.0
    measure: Literal["attention_weight"]
    query: FromOne
    key: FromOne

    def _value(self, classifier: Predictor, text: str) -> Result:
        traced, (layer, head) = trace_text(classifier, text), self._index(classifier)
        n = len(traced.tokens)
        return 100 * float(traced.attention[layer, head, _token_index(self.query, n), _token_index(self.key, n)])


class HeadEffect(_HeadMeasurement):
    """The change in the predicted class's probability without a head, in percentage points."""

    MIN_MARGIN = 2.0
    measure: Literal["head_effect"]
    how: AblationMethod = "mean"

    def _value(self, classifier: Predictor, text: str) -> Result:
        effects = ablate_each(classifier, text, heads=_method(classifier, self.how), means=Means.of(classifier)).heads
        return 100 * float(effects[self._index(classifier)])


class HeadsThatFlip(Measurement):
    """All heads that change the predicted class when changed one at a time."""

    MIN_MARGIN = 10.0
    measure: Literal["heads_that_flip"]
    how: AblationMethod = "mean"

    def _value(self, classifier: Predictor, text: str) -> Result:
        names, ablation = self._ablate_each_head(classifier, text)
        changed = ablation.changed.argmax(axis=1) != ablation.predicted
        return [name for name, flip in zip(names, changed, strict=True) if flip]

    def _margin(self, classifier: Predictor, text: str) -> float:
        _, ablation = self._ablate_each_head(classifier, text)
        return 100 * min(map(_margin_of, ablation.changed))

    def _ablate_each_head(self, classifier: Predictor, text: str) -> tuple[list[str], AblationResult]:
        """The names of the heads, and the results of ablating each of them alone."""
        config = classifier.checkpoint.config.model
        heads = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
        how = _method(classifier, self.how)
        settings = [[Ablation("head", how, layer, head)] for layer, head in heads]
        names = [f"{layer + 1}.{head + 1}" for layer, head in heads]
        return names, ablate(classifier, text, settings, means=Means.of(classifier))


Method = Literal["rollout", "gradient", "integrated", "leave_one_out"]


class LargestAttribution(Measurement):
    """The word with the largest score of an attribution method."""

    MIN_MARGIN = 1.0
    measure: Literal["largest_attribution"]
    method: Method = "leave_one_out"

    def _value(self, classifier: Predictor, text: str) -> Result:
        words, scores = _scores(classifier, text, self.method)
        return words[max(range(len(words)), key=scores.__getitem__)]

    def _margin(self, classifier: Predictor, text: str) -> float:
        return _margin_of(_scores(classifier, text, self.method)[1])


class Attribution(Measurement):
    """The score of one word; for leave_one_out, the decrease in the predicted class's logit without the word."""

    MIN_MARGIN = 0.5
    measure: Literal["attribution"]
    word: FromOne
    method: Method = "leave_one_out"

    def _value(self, classifier: Predictor, text: str) -> Result:
        _, scores = _scores(classifier, text, self.method)
        return scores[_token_index(self.word, len(scores))]


class Grouping(Measurement):
    """Words in two groups: in the vocabulary or not, for or against the predicted class, one token or several."""

    MIN_MARGIN = 0.1
    measure: Literal["grouping"]
    by: Literal["known", "sign", "pieces"]
    words: list[str] = Field(min_length=2, max_length=12)
    """The words; for `sign`, each as tokenised by the model."""

    def _value(self, classifier: Predictor, text: str) -> Result:
        if self.by == "sign":
            words, scores = _scores(classifier, text, "leave_one_out")
            if missing := [word for word in self.words if word not in words]:
                raise MeasureError(f"the word {missing[0]!r} is not among {', '.join(words)[:200]}")
            first = [word for word in self.words if scores[words.index(word)] > 0]
        elif self.by == "known":
            first = [word for word in self.words if not any(token.is_unknown for token in _words(classifier, word))]
        else:
            first = [word for word in self.words if len(_words(classifier, word)) == 1]
        return [first, [word for word in self.words if word not in first]]

    def _margin(self, classifier: Predictor, text: str) -> float:
        if self.by != "sign":
            return math.inf
        words, scores = _scores(classifier, text, "leave_one_out")
        return min(abs(scores[words.index(word)]) for word in self.words)


def _words(classifier: Predictor, text: str) -> list[Token]:
    """The tokens of a text, without the special tokens that the model adds."""
    return [token for token in classifier.encode(text).tokens if not token.is_special]


def _scores(classifier: Predictor, text: str, method: str) -> tuple[list[str], list[float]]:
    explanation = explain(classifier, text, methods=(method,))
    return [word.text for word in explanation.words], explanation.scores[method].tolist()


class FilmStep(Measurement):
    """The first saved training step at which validation accuracy reaches a given percentage."""

    measure: Literal["film_step"]
    accuracy: float = Field(ge=0, le=100)

    def _value(self, classifier: Predictor, text: str) -> Result:
        for row in _snapshots(classifier):
            if 100 * row.validation_accuracy >= self.accuracy:
                return float(row.step)
        raise MeasureError(f"{classifier.name} does not reach {self.accuracy} % in any snapshot")


class FilmAccuracy(Measurement):
    """Validation accuracy at a saved training step, in per cent."""

    MIN_MARGIN = 2.0
    measure: Literal["film_accuracy"]
    step: int = Field(ge=0)

    def _value(self, classifier: Predictor, text: str) -> Result:
        return 100 * float(_snapshots(classifier)[_snapshot_index(classifier, self.step)].validation_accuracy)


class FilmClass(Measurement):
    """The class predicted for the text at a saved training step."""

    MIN_MARGIN = 10.0
    measure: Literal["film_class"]
    step: int = Field(ge=0)

    def _value(self, classifier: Predictor, text: str) -> Result:
        return classifier.classes[int(self._probabilities(classifier, text).argmax())]

    def _margin(self, classifier: Predictor, text: str) -> float:
        return 100 * _margin_of(self._probabilities(classifier, text))

    def _probabilities(self, classifier: Predictor, text: str) -> NDArray[np.float64]:
        film = training_film(classifier, text, shown=slice(0, 1))
        probabilities: NDArray[np.float64] = film.probabilities[_snapshot_index(classifier, self.step)]
        return probabilities


class Settled(Measurement):
    """The saved training step from which the prediction for the text equals the trained model's."""

    measure: Literal["film_settled"]

    def _value(self, classifier: Predictor, text: str) -> Result:
        film = training_film(classifier, text, shown=slice(0, 1))
        last_flip = max(class_changes(film.predicted), default=0)
        return float(film.rows[last_flip].step)


def _snapshots(classifier: Predictor) -> tuple[SnapshotRow, ...]:
    if classifier.checkpoint.snapshots is None:
        raise MeasureError(f"{classifier.name} was trained without snapshots, so it has no training film")
    return classifier.checkpoint.snapshots.rows


def _snapshot_index(classifier: Predictor, step: int) -> int:
    """The index of the snapshot at this step."""
    steps = [row.step for row in _snapshots(classifier)]
    if step not in steps:
        raise MeasureError(f"there is no snapshot of step {step}; there are {', '.join(map(str, steps))}")
    return steps.index(step)


Measure = Annotated[
    PredictedClass | Probability | NumberOfTokens | TokenText | UnknownWords | MostAttended | AttentionWeight
    | HeadEffect | HeadsThatFlip | LargestAttribution | Attribution | Grouping | OrderKept | FilmStep | FilmAccuracy
    | FilmClass | Settled | Accuracy | HeadsWorth | Worth | Moved | OutOfScope,
    Field(discriminator="measure"),
]  # fmt: skip


def measures() -> list[tuple[str, str, str, str]]:
    """Each measurement: its name, its fields with their possible values, its minimum margin, and a description.

    Fields in brackets are optional. All measurements also accept `checkpoint`, `text` and `margin`.
    """
    rows = []
    for kind in get_args(get_args(Measure)[0]):
        fields = []
        for name, field in kind.model_fields.items():
            if name not in Measurement.model_fields and name != "measure":
                values = f"{name}: {_describe_type(field.annotation)}"
                fields.append(values if field.is_required() else f"[{values}]")
        (name,) = get_args(kind.model_fields["measure"].annotation)
        margin = f"{kind.MIN_MARGIN:g}" if kind.MIN_MARGIN else "–"
        rows.append((name, ", ".join(fields), margin, " ".join((kind.__doc__ or "").split())))
    return sorted(rows)


def _describe_type(annotation: Any) -> str:
    """The possible values of a field, in words."""
    if get_origin(annotation) is Literal:
        *others, last = map(str, get_args(annotation))
        return f"{', '.join(others)} or {last}"
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return _describe_type(get_args(annotation)[0])
    if get_origin(annotation) is list:
        return "a list of words"
    return {int: "a number", float: "a number", bool: "true or false"}.get(annotation, "a word")
