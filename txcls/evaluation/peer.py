"""A checkpoint beside the usual baseline on the test rows of its data set."""

from collections.abc import Callable
from pathlib import Path

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.baseline import compare, linear_answers, majority_answers
from txcls.evaluation.evaluate import in_classes_of, predict_logits
from txcls.model import TextClassifier
from txcls.runtime.device import choose_device


def compare_with_linear(
    checkpoint: Checkpoint,
    *,
    data_path: Path | None = None,
    device: str | None = None,
    on_stage: Callable[[str], object] = lambda _: None,
) -> Comparison:
    """The checkpoint, TF-IDF with a linear SVM, and a majority guess on the test rows.

    The linear model learns from all rows that are not test rows, those held out for validation included.

    Args:
        checkpoint: a classifier.
        data_path: folder or file in the data set's published format; None looks where `open_dataset` says.
        device: of the Transformer: "cpu", "cuda", …; None prefers CUDA.
        on_stage: called with what is done next, in words.

    Raises:
        DataError: the data are missing, or have classes unknown to the checkpoint; or it was trained on a table,
            whose rows are not kept.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    if not isinstance(checkpoint.model, TextClassifier):
        raise CheckpointError(f"{checkpoint.name} is a language model; there is no linear model beside it")
    if checkpoint.config.data.dataset == "table":
        raise DataError(
            f"{checkpoint.name} was trained on a table of your own, whose rows are not kept with it; `python -m txcls "
            "train FILE` compares when it trains"
        )
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    test = in_classes_of(dataset.load("test"), checkpoint)
    parts = [in_classes_of(rows, checkpoint) for rows in training_and_validation(dataset, checkpoint.config.data)]
    texts = [text for rows in parts for text in rows.texts]
    labels = [label for rows in parts for label in rows.labels]
    on_stage(f"fitting a linear SVM to {len(texts):,} rows")
    linear = linear_answers(texts, labels, test.texts)
    on_stage(f"answering {len(test):,} test rows")
    chosen = choose_device(device)
    logits = predict_logits(checkpoint.model.to(chosen), TokenisedTexts.encode(checkpoint.encoder, test), device=chosen)
    checkpoint.model.cpu()
    return compare(
        truth=test.labels,
        majority=majority_answers(labels, len(test)),
        linear=linear,
        transformer=logits.numpy().argmax(axis=1),
        n_training=len(texts),
    )
