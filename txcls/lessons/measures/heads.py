"""Measurements of heads: where they attend, and what changes without them."""

from typing import Literal

import numpy as np

from txcls.inspection.ablation import How, Means, ablate_each
from txcls.inspection.tracing import trace_text
from txcls.lessons.measures.answers import PredictedClass
from txcls.lessons.measures.base import At, HowOff, Measured, MeasureError, OfHead, Result, within
from txcls.predictor import Predictor


class MostAttended(OfHead):
    """The token that a head reads most from one token, or on average over all tokens.

    With `words_only` a token that the model adds itself does not count.
    """

    measure: Literal["most_attended"]
    query: At | None = None
    words_only: bool = False

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A token."""
        traced, (layer, head) = trace_text(classifier, text), self.place(classifier)
        pattern = traced.attention[layer, head].astype(np.float64)  # T T
        row = pattern.mean(axis=0) if self.query is None else pattern[within(self.query, len(pattern)) - 1]
        if self.words_only:
            row = np.where([one.is_special for one in traced.tokens], -1.0, row)
        return traced.tokens[int(row.argmax())].label


class AttentionWeight(OfHead):
    """The weight in per cent that a head gives one token (the key) for another (the query)."""

    measure: Literal["attention_weight"]
    query: At
    key: At

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Per cent."""
        traced, (layer, head) = trace_text(classifier, text), self.place(classifier)
        n = len(traced.tokens)
        return 100 * float(traced.attention[layer, head, within(self.query, n) - 1, within(self.key, n) - 1])


class HeadEffect(OfHead):
    """By how many percentage points the winner's probability changes without a head."""

    measure: Literal["head_effect"]
    how: HowOff = "zero"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Percentage points; negative if the probability falls."""
        layer, head = self.place(classifier)
        return 100 * float(_effects(classifier, text, self.how)[layer][head])


class StrongestHead(Measured):
    """The head without which the winner's probability falls most."""

    measure: Literal["strongest_head"]
    how: HowOff = "zero"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """One head as "layer.head"."""
        effects = np.array(_effects(classifier, text, self.how))
        layer, head = np.unravel_index(int(effects.argmin()), effects.shape)
        return [f"{layer + 1}.{head + 1}"]


class HeadsThatFlip(Measured):
    """All heads that, changed alone, change the predicted class."""

    measure: Literal["heads_that_flip"]
    how: HowOff = "zero"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Heads as "layer.head"."""
        config = classifier.checkpoint.config.model
        names = [f"{layer + 1}.{head + 1}" for layer in range(config.n_layers) for head in range(config.n_heads)]
        before = PredictedClass(measure="predicted_class").measured(classifier, text)
        after = {
            name: PredictedClass(measure="predicted_class", switched=[name], how=self.how).measured(classifier, text)
            for name in names
        }
        return [name for name in names if after[name] != before]


def _effects(classifier: Predictor, text: str, how: How) -> list[list[float]]:
    try:
        found = ablate_each(classifier, text, heads=how, means=Means.of(classifier))
    except ValueError as error:
        raise MeasureError(str(error)) from None
    return [[float(one) for one in row] for row in found.heads]
