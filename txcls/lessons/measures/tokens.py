"""Measurements of how a text is read: its tokens and unknown words."""

from typing import Literal

from txcls.lessons.measures.base import At, Measured, Result, within
from txcls.predictor import Predictor


class NumberOfTokens(Measured):
    """How many tokens the model reads, without those that it adds itself."""

    measure: Literal["tokens"]

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A count."""
        return float(sum(not one.is_special for one in classifier.encoder.encode(text).tokens))


class TokenText(Measured):
    """One of the tokens as the model reads it."""

    measure: Literal["token"]
    number: At

    def measured(self, classifier: Predictor, text: str) -> Result:
        """Its text after cleaning."""
        words = [one.text for one in classifier.encoder.encode(text).tokens if not one.is_special]
        return words[within(self.number, len(words)) - 1]


class UnknownWords(Measured):
    """How many tokens are outside of the vocabulary."""

    measure: Literal["unknown"]

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A count."""
        return float(sum(one.is_unknown for one in classifier.encoder.encode(text).tokens))
