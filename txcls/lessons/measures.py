"""What a lesson can measure: each kind names a quantity, and is computed by the package's own inspection functions.

A measurement is of the step's checkpoint and text unless it names others. Layers, heads and words count from 1, as on
screen. Probabilities and effects are in per cent and percentage points.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from txcls.errors import TxclsError

if TYPE_CHECKING:
    from txcls.inspection.ablation import Change, How
    from txcls.predictor import Predictor
    from txcls.snapshots import SnapshotRow

Load = Callable[[str], "Predictor"]
"""Gives the classifier of a name."""
Result = str | float | list[str] | list[list[str]]
"""A class or word, a number, words or heads in an order, words in groups."""
HowOff = Literal["zero", "mean", "uniform", "shuffled"]
Method = Literal["attention", "rollout", "pooling", "gradient", "integrated", "leave_one_out"]
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

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """The value for a classifier and a text."""
        raise NotImplementedError


class _OfHead(Measured):
    layer: At
    head: At

    def place(self, classifier: "Predictor") -> tuple[int, int]:
        """Layer and head, from 0; MeasureError if the model has no such head."""
        config = classifier.checkpoint.config.model
        if self.layer > config.n_layers or self.head > config.n_heads:
            raise MeasureError(
                f"{classifier.name} has no head {self.layer}.{self.head}; it has {config.n_layers} layers of "
                f"{config.n_heads} heads"
            )
        return self.layer - 1, self.head - 1


class MeasureError(TxclsError):
    """A measurement cannot be made on this model or text."""


class PredictedClass(Measured):
    """The class that wins, with parts switched off if any are named: "2.1", "1.ff", "t3", "positions"."""

    measure: Literal["predicted_class"]
    switched: list[str] = Field(default_factory=list)
    how: HowOff = "zero"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """The class."""
        probabilities = _probabilities(classifier, text, self.switched, self.how)
        return max(probabilities, key=probabilities.__getitem__)


class Probability(Measured):
    """The probability of a class in per cent (of the winner if none is named), with parts switched off if any are."""

    measure: Literal["probability"]
    of: str | None = None
    switched: list[str] = Field(default_factory=list)
    how: HowOff = "zero"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Per cent."""
        probabilities = _probabilities(classifier, text, self.switched, self.how)
        if self.of is not None and self.of not in probabilities:
            raise MeasureError(f"{classifier.name} has no class {self.of!r}; it has {', '.join(probabilities)[:200]}")
        return 100 * (max(probabilities.values()) if self.of is None else probabilities[self.of])


class NumberOfTokens(Measured):
    """How many tokens the model reads, without those that it adds itself."""

    measure: Literal["tokens"]

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A count."""
        return float(sum(not one.is_special for one in classifier.encoder.encode(text).tokens))


class TokenText(Measured):
    """One of the tokens as the model reads it."""

    measure: Literal["token"]
    number: At

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Its text after cleaning."""
        return _words(classifier, text)[_within(self.number, len(_words(classifier, text))) - 1]


class UnknownWords(Measured):
    """How many tokens are outside of the vocabulary."""

    measure: Literal["unknown"]

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A count."""
        return float(sum(one.is_unknown for one in classifier.encoder.encode(text).tokens))


class MostAttended(_OfHead):
    """The token that a head reads most from one token, or on average over all tokens.

    With `words_only` a token that the model adds itself does not count.
    """

    measure: Literal["most_attended"]
    query: At | None = None
    words_only: bool = False

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A token."""
        import numpy as np

        from txcls.inspection.tracing import trace_text

        traced, (layer, head) = trace_text(classifier, text), self.place(classifier)
        pattern = traced.attention[layer, head].astype(np.float64)  # T T
        row = pattern.mean(axis=0) if self.query is None else pattern[_within(self.query, len(pattern)) - 1]
        if self.words_only:
            row = np.where([one.is_special for one in traced.tokens], -1.0, row)
        return traced.tokens[int(row.argmax())].text


class AttentionWeight(_OfHead):
    """The weight in per cent that a head gives one token (the key) for another (the query)."""

    measure: Literal["attention_weight"]
    query: At
    key: At

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Per cent."""
        from txcls.inspection.tracing import trace_text

        traced, (layer, head) = trace_text(classifier, text), self.place(classifier)
        n = len(traced.tokens)
        return 100 * float(traced.attention[layer, head, _within(self.query, n) - 1, _within(self.key, n) - 1])


class HeadEffect(_OfHead):
    """By how many percentage points the winner's probability changes without a head."""

    measure: Literal["head_effect"]
    how: HowOff = "zero"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Percentage points; negative if the probability falls."""
        layer, head = self.place(classifier)
        return 100 * float(_effects(classifier, text, self.how)[layer][head])


class StrongestHead(Measured):
    """The head without which the winner's probability falls most."""

    measure: Literal["strongest_head"]
    how: HowOff = "zero"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """One head as "layer.head"."""
        import numpy as np

        effects = np.array(_effects(classifier, text, self.how))
        layer, head = np.unravel_index(int(effects.argmin()), effects.shape)
        return [f"{layer + 1}.{head + 1}"]


class HeadsThatFlip(Measured):
    """All heads that, changed alone, change the predicted class."""

    measure: Literal["heads_that_flip"]
    how: HowOff = "zero"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Heads as "layer.head"."""
        config = classifier.checkpoint.config.model
        names = [f"{layer + 1}.{head + 1}" for layer in range(config.n_layers) for head in range(config.n_heads)]
        before = PredictedClass(measure="predicted_class").measured(classifier, text)
        after = {
            name: PredictedClass(measure="predicted_class", switched=[name], how=self.how).measured(classifier, text)
            for name in names
        }
        return [name for name in names if after[name] != before]


class LargestAttribution(Measured):
    """The word with the largest score of an attribution method."""

    measure: Literal["largest_attribution"]
    method: Method = "leave_one_out"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A token."""
        words, scores = _scores(classifier, text, self.method)
        return words[max(range(len(words)), key=scores.__getitem__)]


class Attribution(Measured):
    """The score that a method gives one word: by how much the winner's logit falls without it, for leave_one_out."""

    measure: Literal["attribution"]
    word: At
    method: Method = "leave_one_out"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A logit difference, or a weight."""
        _, scores = _scores(classifier, text, self.method)
        return scores[_within(self.word, len(scores)) - 1]


class Ranking(Measured):
    """Words of the text in the order of an attribution method's scores, largest first."""

    measure: Literal["ranking"]
    method: Method = "leave_one_out"
    words: list[str] = Field(min_length=2, max_length=12)
    """Which words, each as the model reads it."""

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """The words."""
        words, scores = _scores(classifier, text, self.method)
        for word in self.words:
            if words.count(word) != 1:
                raise MeasureError(f"the word {word!r} stands {words.count(word)} times among {', '.join(words)[:200]}")
        return sorted(self.words, key=lambda word: -scores[words.index(word)])


class Grouping(Measured):
    """Words in two groups: in the vocabulary or not, speaking for the answer or against it, one token or several."""

    measure: Literal["grouping"]
    by: Literal["known", "sign", "pieces"]
    words: list[str] = Field(min_length=2, max_length=12)
    """Which words; for `sign` each as the model reads it."""

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Two lists."""
        if self.by == "sign":
            words, scores = _scores(classifier, text, "leave_one_out")
            if missing := [word for word in self.words if word not in words]:
                raise MeasureError(f"the word {missing[0]!r} is not among {', '.join(words)[:200]}")
            holds = [scores[words.index(word)] > 0 for word in self.words]
        else:
            read = [classifier.encoder.encode(word).tokens for word in self.words]
            real = [[one for one in tokens if not one.is_special] for tokens in read]
            known = self.by == "known"
            holds = [not any(one.is_unknown for one in tokens) if known else len(tokens) == 1 for tokens in real]
        return [[word for word, is_so in zip(self.words, holds, strict=True) if is_so is wanted]
                for wanted in (True, False)]  # fmt: skip


class OrderKept(Measured):
    """In how many per cent of 20 random word orders the predicted class stays the same."""

    measure: Literal["order_kept"]

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Per cent."""
        from txcls.inspection.positions import shuffle_words

        return 100 * shuffle_words(classifier, text).label_kept


class FilmStep(Measured):
    """The first kept training step at which validation accuracy reaches a number of per cent."""

    measure: Literal["film_step"]
    accuracy: float = Field(ge=0, le=100)

    def measured(self, classifier: "Predictor", text: str) -> Result:
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

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Per cent."""
        rows = {row.step: row for row in _snapshots(classifier)}
        if self.step not in rows:
            raise MeasureError(f"no state of step {self.step} was kept; there are {', '.join(map(str, rows))}")
        return 100 * float(rows[self.step].validation_accuracy)


class FilmClass(Measured):
    """The class that a kept training step predicts for the text."""

    measure: Literal["film_class"]
    step: int = Field(ge=0)

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A class."""
        from txcls.inspection.training_film import training_film

        film = training_film(classifier, text, shown=slice(0, 1))
        steps = [row.step for row in film.rows]
        if self.step not in steps:
            raise MeasureError(f"no state of step {self.step} was kept; there are {', '.join(map(str, steps))}")
        return classifier.classes[int(film.answers[steps.index(self.step)])]


class Settled(Measured):
    """The kept training step from which on the answer to the text is that of the trained model."""

    measure: Literal["film_settled"]

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Optimiser steps."""
        from txcls.inspection.training_film import flips, training_film

        film = training_film(classifier, text, shown=slice(0, 1))
        turned = flips(film.answers)
        return float(film.rows[turned[-1] if turned else 0].step)


class FormedIn(Measured):
    """The state from which on the class lens gives the final answer: 0 the embeddings, then two for each layer."""

    measure: Literal["lens_settled"]

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """A state's number."""
        from txcls.inspection.lens import class_lens

        answers = class_lens(classifier, text).probabilities.argmax(axis=1)
        others = [number for number, answer in enumerate(answers) if answer != answers[-1]]
        return float(others[-1] + 1 if others else 0)


class Accuracy(Measured):
    """Accuracy in per cent on test rows as recorded with the checkpoint: of the model, or without its heads."""

    measure: Literal["accuracy"]
    without: Literal["nothing", "heads"] = "nothing"

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Per cent."""
        if self.without == "nothing":
            found = classifier.checkpoint.metrics.get("test", {}).get("accuracy")
        else:
            from txcls.inspection.ablation import AccuracyEffects

            effects = AccuracyEffects.of(classifier)
            found = None if effects is None else effects.all_heads
        if found is None:
            raise MeasureError(f"{classifier.name} records no such accuracy; `txcls evaluate --heads --write` does")
        return 100 * float(found)


class OutOfScope(Measured):
    """Whether the model says that the text belongs to none of its classes: "yes" or "no"."""

    measure: Literal["out_of_scope"]

    def measured(self, classifier: "Predictor", text: str) -> Result:
        """Yes or no."""
        outside = classifier.predict([text])[0].out_of_scope
        if outside is None:
            raise MeasureError(f"{classifier.name} has no rule for texts out of scope")
        return "yes" if outside else "no"


Measure = Annotated[
    PredictedClass | Probability | NumberOfTokens | TokenText | UnknownWords | MostAttended | AttentionWeight
    | HeadEffect | StrongestHead | HeadsThatFlip | LargestAttribution | Attribution | Ranking | Grouping | OrderKept
    | FilmStep | FilmAccuracy | FilmClass | Settled | FormedIn | Accuracy | OutOfScope,
    Field(discriminator="measure"),
]  # fmt: skip
_ADAPTER: TypeAdapter[Any] = TypeAdapter(Measure)


def measures() -> list[tuple[str, str, str]]:
    """Each kind of measurement: its name, its fields, and what it is."""
    found = []
    for kind in (*Measured.__subclasses__(), *_OfHead.__subclasses__()):
        if field := kind.model_fields.get("measure"):
            fields = [name for name in kind.model_fields if name not in ("measure", "checkpoint", "text")]
            found.append((get_args(field.annotation)[0], ", ".join(fields), " ".join((kind.__doc__ or "").split())))
    return sorted(found)


def _within(number: int, most: int) -> int:
    if number > most:
        raise MeasureError(f"there is no token {number}; the text has {most}")
    return number


def _words(classifier: "Predictor", text: str) -> list[str]:
    return [one.text for one in classifier.encoder.encode(text).tokens if not one.is_special]


def _scores(classifier: "Predictor", text: str, method: str) -> tuple[list[str], list[float]]:
    from txcls.inspection.attribution import explain

    try:
        found = explain(classifier, text, methods=(method,))
    except ValueError as error:
        raise MeasureError(str(error)) from None
    return [one.text for one in found.words], [float(one) for one in found.scores[method]]


def _effects(classifier: "Predictor", text: str, how: "How") -> list[list[float]]:
    from txcls.inspection.ablation import Means, ablate_each

    try:
        found = ablate_each(classifier, text, heads=how, means=Means.of(classifier))
    except ValueError as error:
        raise MeasureError(str(error)) from None
    return [[float(one) for one in row] for row in found.heads]


def _snapshots(classifier: "Predictor") -> "tuple[SnapshotRow, ...]":
    if classifier.checkpoint.snapshots is None:
        raise MeasureError(f"{classifier.name} was trained without keeping states, so it has no training film")
    return classifier.checkpoint.snapshots.rows


def _probabilities(classifier: "Predictor", text: str, switched: list[str], how: "How") -> dict[str, float]:
    """Class to probability, with parts switched off."""
    if not switched:
        ranked = classifier.predict([text])[0].ranked
        if not ranked:
            raise MeasureError(f"{classifier.name} reads no word in this text")
        return {one.label: one.probability for one in ranked}
    from txcls.inspection.ablation import Means, ablate

    try:
        changed = ablate(classifier, text, [[_change(one, how) for one in switched]], means=Means.of(classifier))
    except (ValueError, IndexError) as error:
        raise MeasureError(str(error)) from None
    return dict(zip(classifier.classes, (float(one) for one in changed.changed[0]), strict=True))


def _change(part: str, how: "How") -> "Change":
    """A part as in an address: "2.1", "1.ff", "t3" or "positions"."""
    from txcls.address import SWITCH
    from txcls.inspection.ablation import Change

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
