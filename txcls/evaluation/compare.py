"""Compare a classifier with a linear model and the majority class, or with another classifier, on the same rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import ClassifierScores, Comparison, Measured, points, with_interval
from txcls.data.datasets import open_dataset
from txcls.data.hashes import MIN_KNOWN
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts, join_rows
from txcls.errors import CheckpointError, DataError, list_names
from txcls.evaluation.evaluate_file import missing_file_error, rows_of_file
from txcls.evaluation.linear import LinearModel, fit_linear
from txcls.evaluation.metrics import accuracy_difference, bootstrap_interval, paired_difference, wilson
from txcls.evaluation.predict_logits import classifier_of, in_classes_of, predict_logits, tokenised_for
from txcls.evaluation.report import sample_indices
from txcls.inference.device import choose_device
from txcls.text.formatting import percentage

ClassIndices = NDArray[np.int64]
Floats = NDArray[np.float64]

LEARNED = 0.95
"""The validation accuracy at which a model counts as having learned its task."""


def compare(
    *,
    truth: Sequence[int] | ClassIndices,
    training_labels: Sequence[int] | ClassIndices,
    linear: ClassIndices,
    transformer: ClassIndices,
    model: LinearModel,
    seconds: Mapping[str, float] | None = None,
    is_repeated: NDArray[np.bool_] | None = None,
    n_unseen: int = 0,
    steps: tuple[int, int] | None = None,
) -> Comparison:
    """Compare the predictions of three classifiers on N test rows, at least one.

    Args:
        truth, linear, transformer: the labels and the two models' predictions, (N,) each.
        training_labels: the labels of the training rows; the baseline always guesses the most frequent one.
        model: the fitted linear model.
        seconds: the training and prediction time of some of the three classifiers, keyed by name.
        is_repeated: whether each row's text was trained on, (N,).
        n_unseen: number of further rows, left out because their classes have no training row.
        steps: the numbers of the Transformer's optimiser steps made and planned.
    """
    true = np.asarray(truth, dtype=np.int64)  # N
    majority = np.full(len(true), np.bincount(training_labels).argmax())
    predictions = {"majority": majority, "linear": linear, "transformer": transformer}
    macro_f1, difference_f1 = macro_f1_intervals(true, predictions, difference=("transformer", "linear"))
    right = {name: classes == true for name, classes in predictions.items()}  # N
    contestants = {
        name: ClassifierScores(
            accuracy=wilson(int(right[name].sum()), len(true)),
            macro_f1=macro_f1[name],
            seconds=None if seconds is None or name not in seconds else round(seconds[name], 1),
        )
        for name in predictions
    }
    only_transformer = int((right["transformer"] & ~right["linear"]).sum())
    only_linear = int((right["linear"] & ~right["transformer"]).sum())
    others = right["transformer"] if is_repeated is None else right["transformer"][~is_repeated]
    n_repeated = len(true) - len(others)
    return Comparison(
        n=len(true),
        n_training=model.n_training,
        baseline=model.settings,
        **contestants,
        difference=paired_difference(only_transformer, only_linear, len(true)),
        difference_f1=difference_f1,
        only_transformer=only_transformer,
        only_linear=only_linear,
        n_unseen=n_unseen,
        n_repeated=n_repeated,
        unrepeated=wilson(int(others.sum()), len(others)) if n_repeated and len(others) else None,
        steps=steps,
    )


def macro_f1_intervals(
    true: ClassIndices, predictions: Mapping[str, ClassIndices], *, difference: tuple[str, str]
) -> tuple[dict[str, Measured], Measured]:
    """Macro-F1 of each classifier on N rows, and the difference between the two classifiers named in `difference`.

    Where all resamples have the same value, such as 1, the interval is that of an accuracy on fewer rows: as many
    as make it as uncertain as the mean recall of the classes.
    """
    from scipy.sparse import csr_array

    kinds, counts = np.unique(np.stack([true, *predictions.values()]), axis=1, return_counts=True)  # K each
    labels, predicted = kinds[0], dict(zip(predictions, kinds[1:], strict=True))
    support = np.bincount(true)
    n = float(np.count_nonzero(support) ** 2 / (1 / support[support > 0]).sum())

    def sum_by_class(weights: Floats, classes: ClassIndices) -> Floats:
        """The weights (R, K) of the kinds of rows, summed by class, (R, C)."""
        ones, kind = np.ones(len(classes)), np.arange(len(classes))
        sums: Floats = weights @ csr_array((ones, (kind, classes)), shape=(len(classes), 1 + kinds.max()))
        return sums

    def macro_f1(name: str, weights: Floats) -> Floats:
        """Macro-F1 of rows whose kinds have weights (R, K), over the classes that occur among them, (R,)."""
        in_class = sum_by_class(weights, labels)  # R C
        right = sum_by_class(weights * (predicted[name] == labels), labels)
        f1 = 2 * right / np.maximum(in_class + sum_by_class(weights, predicted[name]), 1)
        mean: Floats = f1.mean(axis=1, where=in_class > 0)
        return mean

    intervals = {name: bootstrap_interval(partial(macro_f1, name), counts) for name in predictions}
    intervals = {
        name: wilson(measured.value * n, n) if measured.low == measured.high else measured
        for name, measured in intervals.items()
    }
    first, second = difference
    gain = bootstrap_interval(lambda weights: macro_f1(first, weights) - macro_f1(second, weights), counts)
    if gain.low == gain.high:
        gain = paired_difference(max(gain.value, 0.0) * n, max(-gain.value, 0.0) * n, n)
    return intervals, gain


def compare_on_test_rows(
    checkpoint: Checkpoint,
    *,
    data_path: Path | None = None,
    device: str | None = None,
    on_stage: Callable[[str], object] = lambda _: None,
) -> Comparison:
    """Compare a checkpoint on its data set's test rows with the linear model, which is fitted to all other rows.

    `on_stage` is called with a message. For the other arguments and errors see `evaluate`.
    """
    classifier = classifier_of(checkpoint)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    test = in_classes_of(dataset.load("test"), checkpoint)
    other_rows = training_and_validation(dataset, checkpoint.config.data)
    fitted = join_rows(in_classes_of(rows, checkpoint) for rows in other_rows)
    on_stage(f"fitting the linear model to {len(fitted):,} rows")
    model = fit_linear(fitted)
    linear = model.predict(test.texts, test.classes)
    on_stage(f"classifying {len(test):,} test rows")
    torch_device = choose_device(device)
    logits = predict_logits(classifier.to(torch_device), tokenised_for(test, checkpoint), device=torch_device)
    classifier.cpu()
    return compare(
        truth=test.labels,
        training_labels=fitted.labels,
        linear=linear,
        transformer=logits.numpy().argmax(axis=1),
        model=model,
    )


@dataclass(frozen=True, slots=True)
class CheckpointComparison:
    """The comparison of two classifiers on the same `n` test rows; `example` is the text of the first row.

    `difference` is the second one's accuracy minus the first one's, with a paired interval; `steps` are the training
    steps until the first validation with an accuracy of at least `LEARNED`, None if there was none.
    """

    n: int
    example: str
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
) -> CheckpointComparison:
    """Compare two classifiers on the test rows of their data set, or on a random sample of `limit` of them.

    If both were trained on tables, these are the rows of `data_path` that neither was trained on.

    Raises:
        CheckpointError: they were trained on different data sets, or one is a language model.
        DataError: the data are missing, or have classes unknown to one of them.
    """
    both = (first, second)
    one, other = (f"{checkpoint.name} on {_source_of(checkpoint)}" for checkpoint in both)
    if first.config.data.dataset != second.config.data.dataset:
        raise CheckpointError(f"{one} and {other} were trained on different data; expected the same data set")
    if set(first.classes).isdisjoint(second.classes):
        named = (list_names(checkpoint.classes, limit=3) for checkpoint in both)
        raise CheckpointError(
            f"{one} and {other} have no class in common ({' against '.join(named)}); expected two models of the same "
            "labels: train both with the same --label-column"
        )
    if first.config.data.dataset == "table":
        parts = _rows_of_neither(both, data_path)
    else:
        parts = [open_dataset(first.config.data, path=data_path).load("test")] * 2
    n = min(len(parts[0]), limit)
    right = []
    for checkpoint, part in zip(both, parts, strict=True):
        rows = part.subset(sample_indices(len(part), limit=limit))
        texts = tokenised_for(rows, checkpoint)
        right.append(predict_logits(classifier_of(checkpoint), texts).numpy().argmax(axis=1) == texts.labels)  # N
    accuracies = wilson(int(right[0].sum()), n), wilson(int(right[1].sum()), n)
    difference = accuracy_difference(right[1], right[0])
    steps = _steps_to_learn(first), _steps_to_learn(second)
    return CheckpointComparison(n, parts[0].texts[0], accuracies, difference, steps)


def _source_of(checkpoint: Checkpoint) -> str:
    """The name of the data set that a checkpoint was trained on, or of the user's own file."""
    name = checkpoint.config.data.dataset
    return str(checkpoint.metrics.get("data", {}).get("title", "your own file")) if name == "table" else name


def _rows_of_neither(both: Sequence[Checkpoint], path: Path | None) -> list[LabelledTexts]:
    """The rows of a file that neither of two checkpoints was trained on, as each of them reads them.

    Raises:
        DataError: no file was given, or there are no such rows.
    """
    if path is None:
        raise missing_file_error(both[0])
    files = [rows_of_file(checkpoint, path) for checkpoint in both]
    rows = [{number: row for row, number in enumerate(file.numbers)} for file in files]
    common = sorted(rows[0].keys() & rows[1].keys())
    if not common or any(file.share_trained_on >= MIN_KNOWN for file in files):
        raise DataError(f"{path.name}: one of the two was trained on these rows; give a file that neither has seen")
    return [file.labelled.subset(row[n] for n in common) for file, row in zip(files, rows, strict=True)]


def _steps_to_learn(checkpoint: Checkpoint) -> int | None:
    return next((row["step"] for row in checkpoint.history if row.get("validation_accuracy", 0.0) >= LEARNED), None)
