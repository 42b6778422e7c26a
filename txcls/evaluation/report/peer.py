"""The linear peer on the same rows: which rows it alone gets right, and which the Transformer alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.comparison import with_interval
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import linear_answers, paired_difference, wilson
from txcls.evaluation.report.rows import Answers, RowAnswer, some_rows

MOST_ROWS = 30_000
"""Training rows that the peer learns from at most, unless asked otherwise."""


@dataclass(frozen=True, eq=False)
class PeerAnswers:
    """TF-IDF with a linear support vector machine beside the Transformer.

    Attributes:
        answers: of the Transformer.
        predicted: the peer's class of each row, (N,).
        n_training: rows it learned from.
        n_available: rows it could have learned from.
    """

    answers: Answers
    predicted: NDArray[np.int64]
    n_training: int
    n_available: int

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the peer is right, (N,)."""
        found: NDArray[np.bool_] = self.predicted == self.answers.labels
        return found

    @property
    def accuracy(self) -> tuple[float, float]:
        """Accuracies of the Transformer and of the peer."""
        return float(self.answers.right.mean()), float(self.right.mean())

    def alone(self, *, peer: bool) -> list[RowAnswer]:
        """The rows that one alone gets right, those first of which the Transformer is surest."""
        own = self.answers.right
        places = np.flatnonzero(self.right & ~own if peer else own & ~self.right)
        confidence = self.answers.probabilities[places].max(axis=1)
        return [self.answers.row(int(n)) for n in places[np.argsort(-confidence, kind="stable")]]

    def peer_class(self, row: int) -> str:
        """The peer's class of a row."""
        return self.answers.rows.classes[int(self.predicted[row])]

    def verdict(self) -> str:
        """Both accuracies and the 95 % interval of their difference, in words."""
        own, other = self.accuracy
        n = len(self.answers)
        apart = paired_difference(
            int((self.answers.right & ~self.right).sum()), int((self.right & ~self.answers.right).sum()), n
        )
        spans = [with_interval(wilson(round(share * n), n)) for share in (own, other)]
        return (
            f"On these {n:,} rows the Transformer reaches {spans[0]}, TF-IDF with a linear SVM {spans[1]}; difference "
            f"{_points(apart.value)} points, 95 % interval {_points(apart.low)} to {_points(apart.high)}"
        )


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def ask_peer(answers: Answers, training: LabelledTexts, *, most: int = MOST_ROWS, seed: int = 0) -> PeerAnswers:
    """Fit the linear peer to training rows and ask it for the rows of `answers`.

    Args:
        answers: the Transformer's.
        training: rows, none of them among those of `answers`.
        most: how many of them are used, a random choice where there are more.
        seed: of that choice.

    Raises:
        DataError: the training rows have fewer than two classes, or other ones.
    """
    place = {name: number for number, name in enumerate(answers.rows.classes)}
    if not set(training.classes) <= set(place):
        raise DataError("the training rows have classes that the classifier does not know; give it its own")
    used = some_rows(training, most=most, seed=seed)
    labels = [place[training.classes[label]] for label in used.labels]
    if len(set(labels)) < 2:
        raise DataError(f"{len(used):,} training rows of one class; wanted at least two classes")
    predicted = linear_answers(used.texts, labels, answers.rows.texts)
    return PeerAnswers(answers, predicted, len(used), len(training))
