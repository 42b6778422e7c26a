"""Evaluate a classifier on labelled rows, and fit its calibration.

python -m txcls evaluate ag_news            # on the test rows of its data set
python -m txcls calibrate ag_news           # on its validation rows
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import rounded
from txcls.checkpoint.probabilities import calibrated_probabilities, scope_scores
from txcls.checkpoint.schema import MEASURED_SPLITS, Metrics
from txcls.config import Calibration, ScopeRule, ScopeScore
from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.data.classes import rows_in_classes
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, SplitName
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.calibration import fit_calibration, fit_short, scope_threshold
from txcls.evaluation.metrics import LENGTH_BOUNDS, UNKNOWN_SHARES, accuracy_by, auroc, evaluate_probabilities
from txcls.evaluation.unlike_validation import RARE
from txcls.model import TextClassifier
from txcls.runtime.device import choose_device
from txcls.runtime.pause import may_pause
from txcls.text.subwords import to_bytes
from txcls.text.tokenizer import Tokenizer
from txcls.text.tokens import MIN_MEAN_PIECE_LENGTH
from txcls.text.vocabulary import UNK
from txcls.wording import percentage

CONFIDENT = 0.9
"""Accepted out-of-scope texts with a higher probability than this are counted separately."""

Logits = NDArray[np.float32]
OnRows = Callable[[int, int], object]
"""Called with the number of rows done and the total number of rows."""


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
    model = _classifier_of(checkpoint)
    if split not in MEASURED_SPLITS:
        raise DataError(f"got split {split!r}; expected one of {', '.join(MEASURED_SPLITS)}")
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    if split == "validation":
        rows = _validation_rows(checkpoint, dataset)
    else:
        rows = dataset.load("test" if split == "test" else "new")
    texts, torch_device = _tokenised(rows, checkpoint), choose_device(device)
    evaluation, logits = _evaluate(
        checkpoint, texts, device=torch_device, measure_without_order=measure_without_order, on_rows=on_rows
    )
    oos_split: SplitName = "oos_test" if split == "test" else "oos_validation"
    if checkpoint.scope is not None and split != "new" and oos_split in dataset.splits:
        outside = _out_of_scope(checkpoint, dataset, oos_split, device=torch_device)
        scope = _scope_metrics(logits, texts.labels, *outside, checkpoint.calibration, checkpoint.scope)
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
    model = _classifier_of(checkpoint)
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
    model = _classifier_of(checkpoint).to(device)
    passes = 1 + measure_without_order * (
        1 + (model.config.positions != "none") + _has_permuted(model, checkpoint.tokenizer)
    )
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


def calibrate(checkpoint: Checkpoint, *, data_path: Path | None = None, device: str | None = None) -> Checkpoint:
    """A copy with calibration (and out-of-scope rule) refitted on the validation rows; the weights are unchanged.

    Its validation metrics are measured again; metrics on other rows, measured with the old calibration, are dropped.

    Raises:
        DataError, CheckpointError, TrainingError: as for `evaluate`.
    """
    model, torch_device = _classifier_of(checkpoint), choose_device(device)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    texts = _tokenised(_validation_rows(checkpoint, dataset), checkpoint)
    metrics = {name: value for name, value in checkpoint.metrics.items() if name not in ("test", "new", "scope")}
    model.to(torch_device)
    calibrated = with_calibration(replace(checkpoint, metrics=metrics), dataset, texts, device=torch_device)
    model.cpu()
    return calibrated


def with_calibration(
    checkpoint: Checkpoint, dataset: Dataset, held_out: TokenisedTexts, *, device: torch.device | str
) -> Checkpoint:
    """A copy with calibration and out-of-scope rule fitted on held-out texts, and with metrics on these texts."""
    model = _classifier_of(checkpoint)
    logits = predict_logits(model, held_out, device=device).numpy()  # N C
    calibration = fit_calibration(logits, held_out.labels)
    short = _fit_short(checkpoint, held_out, calibration, device=device)
    checkpoint = replace(checkpoint, calibration=calibration.model_copy(update={"short": short}))
    metrics = {**checkpoint.metrics, "validation": Evaluation(measure(logits, held_out, checkpoint)).to_dict()}
    scope = None
    if "oos_validation" in dataset.splits:
        outside, lengths = _out_of_scope(checkpoint, dataset, "oos_validation", device=device)
        scope = _fit_scope(logits, held_out.labels, outside, checkpoint.calibration)
        scope_metrics = _scope_metrics(logits, held_out.labels, outside, lengths, checkpoint.calibration, scope)
        metrics["scope"] = {"validation": scope_metrics}
    return replace(checkpoint, metrics=metrics, scope=scope)


def _fit_short(
    checkpoint: Checkpoint, texts: TokenisedTexts, calibration: Calibration, *, device: torch.device | str
) -> tuple[tuple[int, float], ...]:
    """`Calibration.short`: a temperature for each range of lengths that is rare among these texts.

    It is fitted on the texts, each truncated to a random length in that range.
    """
    random = np.random.default_rng(0)
    min_length = 1 + checkpoint.tokenizer.class_token
    fitted: list[tuple[int, float]] = []
    for over, up_to in pairwise((0, *LENGTH_BOUNDS)):
        if up_to > checkpoint.tokenizer.max_length or (texts.lengths <= up_to).mean() >= RARE:
            break
        beginnings = texts.truncated(random.integers(max(over + 1, min_length), up_to + 1, size=len(texts)))
        logits = predict_logits(_classifier_of(checkpoint), beginnings, device=device).numpy()  # N C
        fitted.append((up_to, round(fit_short(logits, texts.labels, calibration), 4)))
    return tuple(fitted)


def counted(on_rows: OnRows | None, *, total: int) -> Callable[[int], None]:
    """A function that takes the number of rows of a batch, and calls `on_rows` with the number of rows so far."""
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        if on_rows is not None:
            on_rows(done, total)

    return count


@torch.inference_mode()
def predict_logits(
    model: TextClassifier,
    texts: TokenisedTexts,
    *,
    device: torch.device | str = "cpu",
    batch_size: int = 256,
    on_batch: Callable[[int], None] | None = None,
) -> Tensor:
    """Logits (N, C) of all texts, in their original order, as float32 on the CPU.

    Each batch holds texts of similar length; `on_batch` is called after each batch with its number of rows.
    """
    model.eval()
    logits = torch.zeros(len(texts), model.head.out_features)  # N C
    for indices in batches_by_length(texts.lengths, batch_size=batch_size):
        ids, _ = pad_batch(texts, indices)
        logits[torch.from_numpy(indices)] = model(torch.from_numpy(ids).to(device)).float().cpu()
        may_pause()
        if on_batch is not None:
            on_batch(len(indices))
    return logits


def measure(logits: Logits, texts: TokenisedTexts, checkpoint: Checkpoint) -> Metrics:
    """The metrics computed from logits (N, C) and labels, except `order`."""
    probabilities = calibrated_probabilities(logits, checkpoint.calibration, texts.lengths)  # N C
    right = probabilities.argmax(axis=1) == texts.labels  # N
    return replace(
        evaluate_probabilities(probabilities, texts.labels, classes=checkpoint.classes),
        by_length=accuracy_by(texts.lengths, right, upper=LENGTH_BOUNDS),
        by_unknown=accuracy_by(unknown_shares(texts, checkpoint.tokenizer), right, upper=UNKNOWN_SHARES),
    )


def unknown_shares(texts: TokenisedTexts, tokenizer: Tokenizer) -> NDArray[np.float64]:
    """Each text's share of unknown tokens or, with subwords, of word characters that are unknown, (N,).

    The characters are counted as in `txcls.text.tokens.unknown_share`.
    """
    shares: NDArray[np.float64]
    if tokenizer.byte_pairs is None:
        shares = np.add.reduceat(texts.ids == UNK, texts.offsets[:-1], dtype=np.int64) / texts.lengths
        return shares
    characters, letters, begins = _subword_letters(tokenizer)
    n_characters, is_letters, starts_word = characters[texts.ids], letters[texts.ids], begins[texts.ids]
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


def _subword_letters(tokenizer: Tokenizer) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """For each subword, (V,): length without a leading space, whether it starts with a letter or a non-ASCII symbol.

    The third array says whether it has a leading space.
    """
    pieces = [to_bytes(token) or b"<" for token in tokenizer.vocabulary.tokens]  # a special token has no letters
    bare = [piece.removeprefix(b" ") for piece in pieces]
    return (
        np.array([sum(byte & 0xC0 != 0x80 for byte in piece) for piece in bare]),  # other bytes continue a character
        np.array([piece[:1].isalpha() or piece[:1] >= b"\x80" for piece in bare]),
        np.array([piece.startswith(b" ") for piece in pieces]),
    )


def accuracy_without_order(
    model: TextClassifier,
    texts: TokenisedTexts,
    *,
    tokenizer: Tokenizer,
    device: torch.device | str = "cpu",
    on_batch: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Accuracy without word order; the difference from normal accuracy is what the model gains from word order.

    `words_shuffled`: the words of each text in random order (seeded). `positions_mean`: every position vector replaced
    by the mean over the positions of all tokens; zeros would be an input unlike any in training. `positions_permuted`:
    the position vectors of each text in random order; omitted if tokens are words, where it equals `words_shuffled`.
    """
    logits = {
        "words_shuffled": predict_logits(model, shuffle_words(texts, tokenizer), device=device, on_batch=on_batch)
    }
    if model.config.positions != "none":
        without_positions = deepcopy(model)  # the model itself may be shared
        vectors = without_positions.embeddings.positional
        counts = torch.from_numpy((texts.lengths[:, None] > np.arange(len(vectors))).sum(axis=0)).to(vectors)  # T
        with torch.no_grad():
            vectors.copy_((counts @ vectors / counts.sum()).expand_as(vectors))
        logits["positions_mean"] = predict_logits(without_positions, texts, device=device, on_batch=on_batch)
    if _has_permuted(model, tokenizer):
        permuted = shuffle_words(texts, tokenizer, whole_words=False)
        logits["positions_permuted"] = predict_logits(model, permuted, device=device, on_batch=on_batch)
    return {
        name: round(float((scores.argmax(-1).numpy() == texts.labels).mean()), 6)  # N C
        for name, scores in logits.items()
    }


def _has_permuted(model: TextClassifier, tokenizer: Tokenizer) -> bool:
    """Whether permuting position vectors equals permuting tokens, and differs from shuffling words."""
    treats_tokens_alike = model.config.pooling != "first" and not model.config.causal
    return tokenizer.byte_pairs is not None and model.config.positions != "none" and treats_tokens_alike


def shuffle_words(
    texts: TokenisedTexts, tokenizer: Tokenizer, *, seed: int = 0, whole_words: bool = True
) -> TokenisedTexts:
    """The same texts with their words in random order; a class token stays first.

    The subwords of a word stay together unless `whole_words` is false. If every token attends to all tokens, this
    equals permuting the position vectors of each text.
    """
    if tokenizer.byte_pairs is None or not whole_words:
        begins = np.ones(tokenizer.vocab_size, dtype=bool)  # V
    else:
        begins = np.array([token.startswith("Ġ") for token in tokenizer.vocabulary.tokens])  # V: Ġ is a leading space
    starts_word = begins[texts.ids]
    starts_word[texts.offsets[:-1]] = True
    word = np.cumsum(starts_word)  # the word of each token, numbered from 1 over all texts
    random_key = np.random.default_rng(seed).random(len(word) + 1)[word]
    if tokenizer.class_token:
        random_key[texts.offsets[:-1]] = -1.0
    text = np.repeat(np.arange(len(texts)), texts.lengths)  # the text of each token
    order = np.lexsort((np.arange(len(word)), random_key, text))  # by text, then randomly by word, then by position
    return TokenisedTexts(texts.ids[order], texts.offsets, texts.labels)


def in_classes_of(rows: LabelledTexts, checkpoint: Checkpoint) -> LabelledTexts:
    """The same rows, with labels as indices into the checkpoint's classes.

    Raises:
        DataError: some classes are unknown to the checkpoint.
    """
    if rows.classes == checkpoint.classes:
        return rows
    if unknown := sorted(set(rows.classes) - set(checkpoint.classes)):
        raise DataError(
            f"the data have classes that {checkpoint.name} does not know: {', '.join(unknown[:5])}; "
            f"it knows {', '.join(checkpoint.classes)}"
        )
    return rows_in_classes(rows, checkpoint.classes)[0]


def _classifier_of(checkpoint: Checkpoint) -> TextClassifier:
    if not isinstance(checkpoint.model, TextClassifier):
        raise CheckpointError(f"{checkpoint.name} is a language model; its validation metrics are in its model card")
    return checkpoint.model


def _validation_rows(checkpoint: Checkpoint, dataset: Dataset) -> LabelledTexts:
    if checkpoint.metrics.get("data", {}).get("validation") == "given beside the training rows":
        raise DataError(
            f"{checkpoint.name}: its validation rows are not recorded, and all other rows may be training rows; "
            "measure it on rows that it was not trained on: `evaluate CHECKPOINT --data FILE`"
        )
    return training_and_validation(dataset, checkpoint.config.data)[1]


def _tokenised(rows: LabelledTexts, checkpoint: Checkpoint) -> TokenisedTexts:
    return TokenisedTexts.encode(checkpoint.tokenizer, in_classes_of(rows, checkpoint))


def _out_of_scope(
    checkpoint: Checkpoint, dataset: Dataset, split: SplitName, *, device: torch.device | str
) -> tuple[Logits, NDArray[np.int64]]:
    """Logits (M, C) and numbers of tokens (M,) of a split's out-of-scope texts."""
    texts = TokenisedTexts.encode(checkpoint.tokenizer, dataset.load(split))
    return predict_logits(_classifier_of(checkpoint), texts, device=device).numpy(), texts.lengths


def _fit_scope(inside: Logits, labels: NDArray[np.int64], outside: Logits, calibration: Calibration) -> ScopeRule:
    """The score with the highest AUROC between in-scope (N, C) and out-of-scope (M, C) logits, and its threshold."""
    right = inside.argmax(axis=1) == labels  # N
    scores = {
        kind: tuple(scope_scores(logits, calibration=calibration, score=kind) for logits in (inside, outside))
        for kind in get_args(ScopeScore)
    }
    kind = max(scores, key=lambda kind: auroc(*scores[kind]))
    inside_scores, outside_scores = scores[kind]
    return ScopeRule(score=kind, threshold=scope_threshold(inside_scores, right, outside_scores))


def _scope_metrics(
    inside: Logits,
    labels: NDArray[np.int64],
    outside: Logits,
    outside_lengths: NDArray[np.int64],
    calibration: Calibration,
    rule: ScopeRule,
) -> dict[str, float]:
    """AUROC, and accuracies if texts below the threshold are rejected, on N in-scope and M out-of-scope rows."""
    inside_scores, outside_scores = (
        scope_scores(logits, calibration=calibration, score=rule.score) for logits in (inside, outside)
    )
    accepted = (inside.argmax(axis=1) == labels) & (inside_scores >= rule.threshold)  # N
    rejected = outside_scores < rule.threshold  # M
    is_confident = calibrated_probabilities(outside, calibration, outside_lengths).max(axis=1) > CONFIDENT  # M
    values: dict[str, float] = rounded(
        {
            "n_in": len(inside),
            "n_out": len(outside),
            "auroc": auroc(inside_scores, outside_scores),
            "accuracy": float((accepted.sum() + rejected.sum()) / (len(inside) + len(outside))),
            "accuracy_in": float(accepted.mean()),
            "recall_out": float(rejected.mean()),
            "accepted_out": int((~rejected).sum()),
            "confident_out": int((~rejected & is_confident).sum()),
        }
    )
    return values
