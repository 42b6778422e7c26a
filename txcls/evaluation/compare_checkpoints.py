"""Compare two classifiers on the same test rows of the data set that both were trained on."""

from dataclasses import dataclass
from pathlib import Path

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Measured, points, with_interval
from txcls.data.datasets import open_dataset
from txcls.errors import CheckpointError
from txcls.evaluation.intervals import accuracy_difference, wilson
from txcls.evaluation.predict_logits import classifier_of, predict_logits, tokenised_for
from txcls.evaluation.report import sample_indices
from txcls.wording import percentage

LEARNED = 0.95
"""The validation accuracy from which a model counts as having learned its task."""


@dataclass(frozen=True, slots=True)
class SameRows:
    """Two classifiers on the same `n` test rows.

    `difference` is the second one's accuracy minus the first one's, with a paired interval; `steps` are the training
    steps until the first validation with an accuracy of at least `LEARNED`, None if there was none.
    """

    n: int
    accuracies: tuple[Measured, Measured]
    difference: Measured
    steps: tuple[int | None, int | None]

    @property
    def table(self) -> list[tuple[str, str, str]]:
        """What was measured, and its value for the first and the second classifier, as text."""
        first, second = ("not reached" if step is None else f"{step:,}" for step in self.steps)
        one, other = map(with_interval, self.accuracies)
        return [
            (f"accuracy on {self.n:,} test rows", one, other),
            ("second − first", "", points(self.difference)),
            (f"steps to {percentage(LEARNED, 0)} on validation rows", first, second),
        ]


def compare_checkpoints(
    first: Checkpoint, second: Checkpoint, *, data_path: Path | None = None, limit: int = 1_000_000
) -> SameRows:
    """Compare two classifiers on the test rows of their data set, or on a random sample of `limit` of them.

    Raises:
        CheckpointError: they were trained on different data sets, or one is a language model.
        DataError: the data are missing, or have classes unknown to one of them.
    """
    one, other = (f"{checkpoint.name} on {checkpoint.config.data.dataset}" for checkpoint in (first, second))
    if first.config.data.dataset != second.config.data.dataset:
        raise CheckpointError(f"{one} and {other} were trained on different data; expected the same data set")
    rows = open_dataset(first.config.data, path=data_path).load("test")
    rows = rows.subset(sample_indices(len(rows), limit=limit))
    n, right = len(rows), []
    for checkpoint in (first, second):
        texts = tokenised_for(rows, checkpoint)
        right.append(predict_logits(classifier_of(checkpoint), texts).numpy().argmax(axis=1) == texts.labels)  # N
    accuracies = wilson(int(right[0].sum()), n), wilson(int(right[1].sum()), n)
    difference = accuracy_difference(right[1], right[0])
    return SameRows(n, accuracies, difference, (_steps_to_learn(first), _steps_to_learn(second)))


def _steps_to_learn(checkpoint: Checkpoint) -> int | None:
    return next((row["step"] for row in checkpoint.history if row.get("validation_accuracy", 0.0) >= LEARNED), None)
