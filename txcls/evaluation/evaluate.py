"""Evaluate a classifier on labelled rows.

python -m txcls evaluate ag_news            # on the test rows of its data set
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import rounded
from txcls.checkpoint.probabilities import calibrated_probabilities
from txcls.checkpoint.schema import MEASURED_SPLITS, Metrics
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, SplitName
from txcls.errors import DataError
from txcls.evaluation.metrics import LENGTH_BOUNDS, UNKNOWN_SHARES, accuracy_by, evaluate_probabilities
from txcls.evaluation.out_of_scope import predict_out_of_scope, scope_metrics
from txcls.evaluation.predict_logits import (
    Logits,
    OnRows,
    classifier_of,
    counted,
    in_classes_of,
    predict_logits,
    tokenised_for,
)
from txcls.evaluation.word_order import accuracy_without_order, has_permuted
from txcls.runtime.device import choose_device
from txcls.text.subwords import to_bytes
from txcls.text.tokenizer import Tokenizer
from txcls.text.vocabulary import UNK
from txcls.wording import percentage


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Metrics on in-scope rows and, if the data set has out-of-scope rows, metrics of the out-of-scope rule."""

    metrics: Metrics
    scope: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        """One line with the main metrics."""
        return (
            f"Evaluation(accuracy {percentage(self.metrics.accuracy, 2)}, macro-F1 {self.metrics.macro_f1:.4f}, "
            f"calibration error {self.metrics.ece:.4f}, {self.metrics.n:,} rows)"
        )

    def to_dict(self) -> dict[str, Any]:
        """`metrics` as plain JSON values, with numbers rounded to six decimals."""
        values: dict[str, Any] = rounded(asdict(self.metrics))
        return values if self.metrics.order else {name: values[name] for name in values if name != "order"}


def evaluate(
    checkpoint: Checkpoint,
    *,
    split: str = "test",
    data_path: Path | None = None,
    device: str | None = None,
    measure_without_order: bool = True,
    on_rows: OnRows | None = None,
) -> Evaluation:
    """Evaluate a checkpoint on the "test", "validation" or "new" rows of its data set.

    Args:
        split: the rows to evaluate on; "new" rows, which few data sets have, are of a kind that training rows lack.
        data_path: folder or file in the data set's published format; None for the places where `open_dataset` looks.
        device: "cpu", "cuda", …; if None, CUDA is preferred.
        measure_without_order: also measure accuracy without word order, which takes up to three more passes.
        on_rows: called after each batch of each pass.

    Raises:
        DataError: the data are missing, have no such split, or have classes unknown to the checkpoint.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    model = classifier_of(checkpoint)
    if split not in MEASURED_SPLITS:
        raise DataError(f"got split {split!r}; expected one of {', '.join(MEASURED_SPLITS)}")
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    if split == "validation":
        rows = validation_rows(checkpoint, dataset)
    else:
        rows = dataset.load("test" if split == "test" else "new")
    texts, torch_device = tokenised_for(rows, checkpoint), choose_device(device)
    evaluation, logits = _evaluate(
        checkpoint, texts, device=torch_device, measure_without_order=measure_without_order, on_rows=on_rows
    )
    oos_split: SplitName = "oos_test" if split == "test" else "oos_validation"
    if checkpoint.scope is not None and split != "new" and oos_split in dataset.splits:
        outside = predict_out_of_scope(checkpoint, dataset, oos_split, device=torch_device)
        scope = scope_metrics(logits, texts.labels, *outside, checkpoint.calibration, checkpoint.scope)
        evaluation = replace(evaluation, scope=scope)
    model.cpu()
    return evaluation


def evaluate_rows(
    checkpoint: Checkpoint,
    rows: LabelledTexts,
    *,
    device: str | None = None,
    measure_without_order: bool = True,
    on_rows: OnRows | None = None,
) -> Evaluation:
    """Evaluate a checkpoint on any labelled rows; for arguments and errors see `evaluate`."""
    model = classifier_of(checkpoint)
    texts = TokenisedTexts.encode(checkpoint.tokenizer, in_classes_of(rows, checkpoint))
    evaluation, _ = _evaluate(
        checkpoint, texts, device=choose_device(device), measure_without_order=measure_without_order, on_rows=on_rows
    )
    model.cpu()
    return evaluation


def _evaluate(
    checkpoint: Checkpoint,
    texts: TokenisedTexts,
    *,
    device: torch.device,
    measure_without_order: bool,
    on_rows: OnRows | None,
) -> tuple[Evaluation, Logits]:
    """The evaluation without `scope`, and the logits (N, C); leaves the model on the device."""
    model = classifier_of(checkpoint).to(device)
    passes = 1 + measure_without_order * (1 + model.config.adds_positions + has_permuted(model, checkpoint.tokenizer))
    count = counted(on_rows, total=passes * len(texts))
    logits = predict_logits(model, texts, device=device, on_batch=count).numpy()  # N C
    metrics = measure(logits, texts, checkpoint)
    if measure_without_order:
        without_order = accuracy_without_order(
            model, texts, tokenizer=checkpoint.tokenizer, device=device, on_batch=count
        )
        metrics = replace(metrics, order=without_order)
    return Evaluation(metrics), logits


def with_evaluation(checkpoint: Checkpoint, *, split: str, evaluation: Evaluation) -> Checkpoint:
    """A copy of the checkpoint with the evaluation in its metrics (and, once saved, in its card)."""
    metrics = {**checkpoint.metrics, split: evaluation.to_dict()}
    metrics["data"] = {**metrics.get("data", {}), f"{split}_rows": evaluation.metrics.n}
    if evaluation.scope is not None:
        metrics["scope"] = {**metrics.get("scope", {}), split: dict(evaluation.scope)}
    return replace(checkpoint, metrics=metrics)


def measure(logits: Logits, texts: TokenisedTexts, checkpoint: Checkpoint) -> Metrics:
    """The metrics computed from logits (N, C) and labels, except `order`."""
    probabilities = calibrated_probabilities(logits, checkpoint.calibration, texts.lengths)  # N C
    right = probabilities.argmax(axis=1) == texts.labels  # N
    return replace(
        evaluate_probabilities(probabilities, texts.labels, classes=checkpoint.classes),
        by_length=accuracy_by(texts.lengths, right, upper=LENGTH_BOUNDS),
        by_unknown=accuracy_by(unknown_shares(texts, checkpoint.tokenizer), right, upper=UNKNOWN_SHARES),
    )


BYTES_WITHOUT_SPACES = range(0xE3, 0xEA)
"""The first UTF-8 byte of Chinese and Japanese characters, U+3000 to U+9FFF: a character is a word or a syllable."""
MIN_MEAN_PIECE_LENGTH = 2.0
"""A word that is split into pieces with a lower mean length, in characters, counts as unknown."""


def unknown_shares(texts: TokenisedTexts, tokenizer: Tokenizer) -> NDArray[np.float64]:
    """Each text's share of unknown tokens or, with subwords, of its words' characters that are in unknown words, (N,).

    A word of subwords is unknown if its pieces have a mean length below MIN_MEAN_PIECE_LENGTH, as in a script that was
    rare in the training texts. A Chinese or Japanese character that begins a token begins a word. Numbers and
    punctuation are not counted.
    """
    shares: NDArray[np.float64]
    if tokenizer.byte_pairs is None:
        shares = np.add.reduceat(texts.ids == UNK, texts.offsets[:-1], dtype=np.int64) / texts.lengths
        return shares
    characters, letters, begins, firsts = _subword_letters(tokenizer)
    n_characters, is_letters, starts_word = characters[texts.ids], letters[texts.ids], begins[texts.ids]
    first = firsts[texts.ids]
    continues = (first >= 0x80) & (first < 0xC0)  # a character that began in an earlier token
    begun = np.maximum.accumulate(np.where(continues, 0, np.arange(len(first))))  # the token in which it began
    is_alone = np.isin(first, BYTES_WITHOUT_SPACES)[begun]
    starts_word[1:] |= ~continues[1:] & (is_alone[1:] | is_alone[:-1])
    starts_word[texts.offsets[:-1]] = True
    starts_word[1:] |= ~is_letters[:-1]
    word = np.cumsum(starts_word) - 1  # the word of each token, numbered over all texts
    n_tokens = np.bincount(word)
    length = np.bincount(word, weights=n_characters)
    is_spelled_out = (n_tokens > 1) & (length / n_tokens < MIN_MEAN_PIECE_LENGTH)
    text = np.repeat(np.arange(len(texts)), texts.lengths)  # the text of each token
    n_letters = np.where(is_letters, n_characters, 0)
    total = np.bincount(text, weights=n_letters, minlength=len(texts))
    unknown = np.bincount(text, weights=n_letters * is_spelled_out[word], minlength=len(texts))
    shares = unknown / np.maximum(total, 1)
    return shares


@lru_cache(maxsize=4)
def _subword_letters(tokenizer: Tokenizer) -> tuple[NDArray[Any], ...]:
    """For each subword, (V,): length without a leading space, whether it starts with a letter or a non-ASCII symbol.

    The third array says whether it has a leading space, and the fourth has the first byte after it (0 if none).
    """
    pieces = [to_bytes(token) or b"<" for token in tokenizer.vocabulary.tokens]  # a special token has no letters
    bare = [piece.removeprefix(b" ") for piece in pieces]
    return (
        np.array([sum(byte & 0xC0 != 0x80 for byte in piece) for piece in bare]),  # other bytes continue a character
        np.array([piece[:1].isalpha() or piece[:1] >= b"\x80" for piece in bare]),
        np.array([piece.startswith(b" ") for piece in pieces]),
        np.array([(piece or b"\0")[0] for piece in bare]),
    )


def validation_rows(checkpoint: Checkpoint, dataset: Dataset) -> LabelledTexts:
    """The validation rows that the checkpoint was trained with; for arguments and errors see `evaluate`."""
    if checkpoint.metrics.get("data", {}).get("validation") == "given beside the training rows":
        raise DataError(
            f"{checkpoint.name}: its validation rows are not recorded, and all other rows may be training rows; "
            "measure it on rows that it was not trained on: `evaluate CHECKPOINT --data FILE`"
        )
    return training_and_validation(dataset, checkpoint.config.data)[1]
