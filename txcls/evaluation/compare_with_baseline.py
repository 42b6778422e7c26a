"""Compare a classifier with the majority-class and the linear baseline on the same rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison, Contestant, with_interval
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.rows_in_classes import joined
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.baseline import ClassIndices, LinearBaseline, fit_linear_baseline
from txcls.evaluation.intervals import macro_f1_intervals, paired_difference, wilson
from txcls.evaluation.predict_logits import in_classes_of, predict_logits
from txcls.evaluation.report import RowPrediction, RowPredictions, sample_rows
from txcls.model import TextClassifier
from txcls.runtime.device import choose_device
from txcls.wording import signed, signed_range

REPORT_ROWS = 30_000
"""Default maximum number of rows that `predict_with_baseline` fits to."""


def majority_predictions(labels: Sequence[int], n: int) -> ClassIndices:
    """The most frequent label, repeated n times."""
    return np.full(n, np.bincount(np.asarray(labels)).argmax(), dtype=np.int64)


def compare(
    *,
    truth: Sequence[int] | ClassIndices,
    majority: ClassIndices,
    linear: ClassIndices,
    transformer: ClassIndices,
    baseline: LinearBaseline,
    seconds: Mapping[str, float] | None = None,
    is_repeated: NDArray[np.bool_] | None = None,
    n_unseen: int = 0,
    steps: tuple[int, int] | None = None,
) -> Comparison:
    """Compare three classifiers' predictions, each (N,), for N test rows.

    Intervals of accuracy are Wilson's (1927); intervals of macro-F1 are bias-corrected and accelerated bootstrap
    intervals (Efron 1987), with the same samples of rows for all classifiers; see `macro_f1_intervals`. The interval of
    the difference in accuracy is for paired proportions (Agresti & Min 2005).

    Args:
        truth, majority, linear, transformer: the labels and the predictions.
        baseline: the fitted linear baseline.
        seconds: the training and prediction time of some of the three classifiers, keyed by name.
        is_repeated: whether each row's text was trained on, (N,).
        n_unseen: number of further rows, left out because their classes have no training row.
        steps: number of the Transformer's optimiser steps made, and planned.

    Raises:
        ValueError: there are no rows, or the numbers of rows and predictions differ.
    """
    true = np.asarray(truth, dtype=np.int64)  # N
    predictions = {"majority": majority, "linear": linear, "transformer": transformer}
    counts = [len(classes) for classes in predictions.values()]
    if not len(true) or set(counts) != {len(true)}:
        raise ValueError(f"got {len(true)} rows and {counts} predictions; expected equal numbers of at least one")
    macro_f1, difference_f1 = macro_f1_intervals(true, predictions, difference=("transformer", "linear"))
    contestants = {
        name: Contestant(
            accuracy=wilson(int((classes == true).sum()), len(true)),
            macro_f1=macro_f1[name],
            seconds=None if seconds is None or name not in seconds else round(seconds[name], 1),
        )
        for name, classes in predictions.items()
    }
    transformer_right, linear_right = transformer == true, linear == true  # N
    only_transformer = int((transformer_right & ~linear_right).sum())
    only_linear = int((linear_right & ~transformer_right).sum())
    return Comparison(
        n=len(true),
        n_training=baseline.n_training,
        baseline=baseline.settings,
        majority=contestants["majority"],
        linear=contestants["linear"],
        transformer=contestants["transformer"],
        difference=paired_difference(only_transformer, only_linear, len(true)),
        difference_f1=difference_f1,
        only_transformer=only_transformer,
        only_linear=only_linear,
        n_unseen=n_unseen,
        steps=steps,
        **_without_repeats(transformer_right, is_repeated),
    )


def _without_repeats(right: NDArray[np.bool_], is_repeated: NDArray[np.bool_] | None) -> dict[str, Any]:
    """The number of rows with repeated texts, and the accuracy on all other rows."""
    if is_repeated is None or not is_repeated.any():
        return {}
    right_on_others = right[~is_repeated]
    unrepeated = wilson(int(right_on_others.sum()), len(right_on_others)) if len(right_on_others) else None
    return {"n_repeated": int(is_repeated.sum()), "unrepeated": unrepeated}


def rows_to_fit(checkpoint: Checkpoint, dataset: Dataset) -> LabelledTexts:
    """All rows of a checkpoint's data set except the test rows, to which the linear baseline is fitted.

    Raises:
        DataError: there are no training rows, or they have classes unknown to the checkpoint.
    """
    return joined(in_classes_of(rows, checkpoint) for rows in training_and_validation(dataset, checkpoint.config.data))


def compare_on_test_rows(
    checkpoint: Checkpoint,
    *,
    data_path: Path | None = None,
    device: str | None = None,
    on_stage: Callable[[str], object] = lambda _: None,
) -> Comparison:
    """Compare a checkpoint with the linear and the majority-class baseline on the test rows of its data set.

    The linear baseline is fitted to all other rows, including the validation rows. For the arguments see `evaluate`;
    `on_stage` is called with a message.

    Raises:
        DataError: the data are missing, or have classes unknown to the checkpoint.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    if not isinstance(checkpoint.model, TextClassifier):
        raise CheckpointError(f"{checkpoint.name} is a language model; expected a classifier to compare")
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    test = in_classes_of(dataset.load("test"), checkpoint)
    fitted = rows_to_fit(checkpoint, dataset)
    on_stage(f"fitting the linear baseline to {len(fitted):,} rows")
    baseline = fit_linear_baseline(fitted.texts, fitted.labels)
    linear = baseline.predict(test.texts)
    on_stage(f"classifying {len(test):,} test rows")
    torch_device = choose_device(device)
    tokenised = TokenisedTexts.encode(checkpoint.tokenizer, test)
    logits = predict_logits(checkpoint.model.to(torch_device), tokenised, device=torch_device)
    checkpoint.model.cpu()
    return compare(
        truth=test.labels,
        majority=majority_predictions(fitted.labels, len(test)),
        linear=linear,
        transformer=logits.numpy().argmax(axis=1),
        baseline=baseline,
    )


@dataclass(frozen=True, eq=False)
class BaselinePredictions:
    """Predictions of the Transformer (`predictions`) and of the linear baseline (`predicted`, (N,)) for N rows.

    The baseline was fitted to `n_training` of `n_available` rows.
    """

    predictions: RowPredictions
    predicted: ClassIndices
    n_training: int
    n_available: int

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether the baseline's prediction is correct, (N,)."""
        right: NDArray[np.bool_] = self.predicted == self.predictions.labels
        return right

    @property
    def accuracy(self) -> float:
        """The baseline's accuracy."""
        return float(self.right.mean())

    def only_baseline_right(self) -> list[RowPrediction]:
        """The rows that only the baseline classifies correctly, most confident first."""
        return self._most_confident_first(self.right & ~self.predictions.right)

    def only_transformer_right(self) -> list[RowPrediction]:
        """The rows that only the Transformer classifies correctly, most confident first."""
        return self._most_confident_first(self.predictions.right & ~self.right)

    def _most_confident_first(self, rows: NDArray[np.bool_]) -> list[RowPrediction]:
        indices = np.flatnonzero(rows)
        confidence = self.predictions.probabilities[indices].max(axis=1)
        return [self.predictions.row(int(n)) for n in indices[np.argsort(-confidence, kind="stable")]]

    def verdict(self) -> str:
        """Both accuracies and the 95 % interval of their difference, in words."""
        n, right = len(self.predictions), self.predictions.right
        transformer, baseline = (with_interval(wilson(int(rows.sum()), n)) for rows in (right, self.right))
        difference = paired_difference(int((right & ~self.right).sum()), int((self.right & ~right).sum()), n)
        fitted = f"{self.n_training:,}" + (f" of {self.n_available:,}" if self.n_training < self.n_available else "")
        return (
            f"On these {n:,} rows the Transformer reaches {transformer}, the linear baseline, fitted to {fitted} rows, "
            f"{baseline}; difference "
            f"{signed(100 * difference.value)} points, 95 % interval {signed_range(difference.low, difference.high)}"
        )


def predict_with_baseline(
    predictions: RowPredictions, training: LabelledTexts, *, seed: int = 0
) -> BaselinePredictions:
    """Fit the linear baseline to at most `REPORT_ROWS` training rows, and classify the rows of `predictions` with it.

    Raises:
        DataError: the training rows have fewer than two classes, or classes unknown to the classifier.
    """
    class_index = {name: number for number, name in enumerate(predictions.rows.classes)}
    if not set(training.classes) <= set(class_index):
        raise DataError(
            "the training rows have classes that the classifier does not know; pass the rows that it was trained on"
        )
    used = sample_rows(training, limit=REPORT_ROWS)
    labels = [class_index[training.classes[label]] for label in used.labels]
    if len(set(labels)) < 2:
        raise DataError(f"{len(used):,} training rows of one class; expected at least two classes")
    baseline = fit_linear_baseline(used.texts, labels, seed=seed)
    return BaselinePredictions(
        predictions, baseline.predict(predictions.rows.texts), baseline.n_training, len(training)
    )
