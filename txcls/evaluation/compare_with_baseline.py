"""Compare a classifier with the majority-class and the linear baseline on the same rows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison, Contestant
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.rows_in_classes import joined
from txcls.data.splits import training_and_validation
from txcls.errors import CheckpointError
from txcls.evaluation.baseline import ClassIndices, LinearBaseline, fit_linear_baseline
from txcls.evaluation.intervals import macro_f1_intervals, paired_difference, wilson
from txcls.evaluation.predict_logits import in_classes_of, predict_logits
from txcls.model import TextClassifier
from txcls.runtime.device import choose_device


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
    other_rows = training_and_validation(dataset, checkpoint.config.data)
    fitted = joined(in_classes_of(rows, checkpoint) for rows in other_rows)
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
