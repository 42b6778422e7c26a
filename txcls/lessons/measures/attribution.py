"""Measurements of words by attribution methods, and words in groups."""

from typing import Literal

from pydantic import Field

from txcls.inspection.attribution import explain
from txcls.lessons.measures.base import At, Measured, MeasureError, Result, within
from txcls.predictor import Predictor

Method = Literal["attention", "rollout", "pooling", "gradient", "integrated", "leave_one_out"]


class LargestAttribution(Measured):
    """The word with the largest score of an attribution method."""

    measure: Literal["largest_attribution"]
    method: Method = "leave_one_out"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A token."""
        words, scores = _scores(classifier, text, self.method)
        return words[max(range(len(words)), key=scores.__getitem__)]


class Attribution(Measured):
    """The score that a method gives one word: by how much the winner's logit falls without it, for leave_one_out."""

    measure: Literal["attribution"]
    word: At
    method: Method = "leave_one_out"

    def measured(self, classifier: Predictor, text: str) -> Result:
        """A logit difference, or a weight."""
        _, scores = _scores(classifier, text, self.method)
        return scores[within(self.word, len(scores)) - 1]


class Ranking(Measured):
    """Words of the text in the order of an attribution method's scores, largest first."""

    measure: Literal["ranking"]
    method: Method = "leave_one_out"
    words: list[str] = Field(min_length=2, max_length=12)
    """Which words, each as the model reads it."""

    def measured(self, classifier: Predictor, text: str) -> Result:
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

    def measured(self, classifier: Predictor, text: str) -> Result:
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


def _scores(classifier: Predictor, text: str, method: str) -> tuple[list[str], list[float]]:
    try:
        found = explain(classifier, text, methods=(method,))
    except ValueError as error:
        raise MeasureError(str(error)) from None
    return [one.text for one in found.words], [float(one) for one in found.scores[method]]
