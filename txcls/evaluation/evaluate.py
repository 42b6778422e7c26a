"""Measure a classifier on labelled rows, and fit its calibration: `evaluate`, `calibrate` and what they are made of.

python -m txcls evaluate ag_news            # on the test rows of its data set
python -m txcls calibrate ag_news           # on its validation rows
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.probabilities import calibrated_probabilities, scope_scores
from txcls.checkpoint.schema import MEASURED_SPLITS, Slice
from txcls.config import Calibration, ScopeRule, ScopeScore
from txcls.data.batches import TokenisedTexts, batches_by_length, pad_batch
from txcls.data.classes import in_classes
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, SplitName
from txcls.errors import CheckpointError, DataError
from txcls.evaluation.calibration import fit_calibration, scope_threshold
from txcls.evaluation.metrics import Metrics, accuracy_by, auroc, evaluate_probabilities
from txcls.model import TextClassifier
from txcls.runtime.device import choose_device
from txcls.text.encoder import TextEncoder
from txcls.text.vocabulary import UNK
from txcls.wording import percentage

LENGTHS = (10, 20, 40, 80, 160, 320)
"""Upper ends of the groups by number of tokens; the last group has none."""
UNKNOWN_SHARES = (0.0, 0.05, 0.1, 0.2)
"""Upper ends of the groups by share of unknown tokens."""


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Figures over in-scope rows and, where the data set has them, over out-of-scope rows.

    `by_length` groups rows by number of tokens, `by_unknown` by share of unknown tokens. `order` holds accuracies with
    word order removed (see `accuracy_without_order`).
    """

    metrics: Metrics
    by_length: tuple[Slice, ...]
    by_unknown: tuple[Slice, ...]
    order: Mapping[str, float] = field(default_factory=dict)
    scope: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        """One line with the main figures."""
        found = self.metrics
        return (
            f"Evaluation(accuracy {percentage(found.accuracy, 2)}, macro-F1 {found.macro_f1:.4f}, "
            f"calibration error {found.ece:.4f}, {found.n:,} rows)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values of everything but `scope`."""
        groups = {"by_length": self.by_length, "by_unknown": self.by_unknown}
        return {
            **self.metrics.to_dict(),
            **{name: [asdict(one) for one in slices] for name, slices in groups.items()},
            **({"order": dict(self.order)} if self.order else {}),
        }


def evaluate(
    checkpoint: Checkpoint,
    *,
    split: str = "test",
    data_path: Path | None = None,
    device: str | None = None,
    without_order: bool = True,
    on_rows: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Measure a checkpoint on the "test", the "validation" or the "new" rows of its data set.

    Args:
        checkpoint: a classifier.
        split: which rows; "new" where the data set has texts of a kind that training never shows.
        data_path: folder or file in the data set's published format; None looks where `open_dataset` says.
        device: "cpu", "cuda", …; None prefers CUDA.
        without_order: also measure accuracy with word order removed, which takes up to three more passes.
        on_rows: called with rows done and rows in all, over all passes.

    Raises:
        DataError: the data are missing, have no such split, or have classes unknown to the checkpoint.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    model = _classifier_of(checkpoint)
    if split not in MEASURED_SPLITS:
        raise DataError(f"got split {split!r}; wanted one of {', '.join(MEASURED_SPLITS)}")
    if split == "validation":
        _refuse_given_validation(checkpoint)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    if split == "validation":
        rows = training_and_validation(dataset, checkpoint.config.data)[1]
    else:
        rows = dataset.load("test" if split == "test" else "new")
    chosen = choose_device(device)
    tokenised = _tokenised(rows, checkpoint)
    measured, logits = _measured(checkpoint, tokenised, device=chosen, without_order=without_order, on_rows=on_rows)
    oos: SplitName = "oos_test" if split == "test" else "oos_validation"
    if checkpoint.scope is not None and split != "new" and oos in dataset.splits:
        outside = _out_of_scope_logits(model, dataset, oos, checkpoint.encoder, device=chosen)  # M C
        scope = _scope_figures(logits, tokenised.labels, outside, checkpoint.calibration, checkpoint.scope)
        measured = replace(measured, scope=scope)
    model.cpu()
    return measured


def evaluate_rows(
    checkpoint: Checkpoint,
    rows: LabelledTexts,
    *,
    device: str | None = None,
    without_order: bool = True,
    on_rows: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Measure a checkpoint on any labelled rows; arguments as those of `evaluate`.

    Raises:
        DataError: the rows have classes unknown to the checkpoint.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    model = _classifier_of(checkpoint)
    tokenised = TokenisedTexts.encode(checkpoint.encoder, in_classes_of(rows, checkpoint))
    chosen = choose_device(device)
    measured, _ = _measured(checkpoint, tokenised, device=chosen, without_order=without_order, on_rows=on_rows)
    model.cpu()
    return measured


def _refuse_given_validation(checkpoint: Checkpoint) -> None:
    """Refuse to split validation rows off a file where the checkpoint was validated on others.

    Raises:
        DataError: its validation rows were given beside the training rows, so that the file does not tell them.
    """
    if checkpoint.metrics.get("data", {}).get("validation") == "given beside the training rows":
        raise DataError(
            f"{checkpoint.name}: which rows validated it is not recorded, and some of any others may be training rows; "
            "measure it on rows that it has not learned from: `evaluate CHECKPOINT --data FILE`"
        )


def _measured(
    checkpoint: Checkpoint,
    texts: TokenisedTexts,
    *,
    device: torch.device,
    without_order: bool,
    on_rows: Callable[[int, int], None] | None = None,
) -> tuple[Evaluation, NDArray[np.float32]]:
    """The figures without `scope`, and the logits (N, C); the model is left on the device."""
    model = _classifier_of(checkpoint).to(device)
    passes = 1 + without_order * (1 + (model.config.positions != "none") + _has_permuted(model, checkpoint.encoder))
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows
        if on_rows is not None:
            on_rows(done, passes * len(texts))

    logits = predict_logits(model, texts, device=device, on_batch=count).numpy()  # N C
    measured = measure(logits, texts, calibration=checkpoint.calibration, classes=checkpoint.classes)
    if without_order:
        order = accuracy_without_order(model, texts, encoder=checkpoint.encoder, device=device, on_batch=count)
        measured = replace(measured, order=order)
    return measured, logits


def with_evaluation(checkpoint: Checkpoint, *, split: str, evaluation: Evaluation) -> Checkpoint:
    """A copy of the checkpoint with the figures of `evaluate` in its metrics (and, once saved, in its card)."""
    metrics = {**checkpoint.metrics, split: evaluation.to_dict()}
    metrics["data"] = {**metrics.get("data", {}), f"{split}_rows": evaluation.metrics.n}
    if evaluation.scope is not None:
        metrics["scope"] = {**metrics.get("scope", {}), split: dict(evaluation.scope)}
    return replace(checkpoint, metrics=metrics)


def with_comparison(checkpoint: Checkpoint, found: Comparison) -> Checkpoint:
    """A copy of the checkpoint with the comparison in its metrics (and, once saved, in its card)."""
    return replace(checkpoint, metrics={**checkpoint.metrics, "comparison": found.to_dict()})


def calibrate(checkpoint: Checkpoint, *, data_path: Path | None = None, device: str | None = None) -> Checkpoint:
    """A copy with calibration (and out-of-scope rule) fitted anew on the validation rows; the weights are unchanged.

    Its metrics hold the new validation figures; figures of other rows measured under the old calibration are dropped.

    Raises:
        DataError, CheckpointError, TrainingError: as for `evaluate`.
    """
    model = _classifier_of(checkpoint)
    _refuse_given_validation(checkpoint)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    rows = training_and_validation(dataset, checkpoint.config.data)[1]
    chosen = choose_device(device)
    model.to(chosen)
    kept = {name: value for name, value in checkpoint.metrics.items() if name not in ("test", "new", "scope")}
    fitted = with_calibration(replace(checkpoint, metrics=kept), dataset, _tokenised(rows, checkpoint), device=chosen)
    model.cpu()
    return fitted


def with_calibration(
    checkpoint: Checkpoint, dataset: Dataset, held_out: TokenisedTexts, *, device: torch.device | str
) -> Checkpoint:
    """A copy with calibration and out-of-scope rule fitted on held-out texts, and their figures in its metrics."""
    model = _classifier_of(checkpoint)
    logits = predict_logits(model, held_out, device=device).numpy()  # N C
    calibration = fit_calibration(logits, held_out.labels)
    measured = measure(logits, held_out, calibration=calibration, classes=checkpoint.classes)
    metrics = {**checkpoint.metrics, "validation": measured.to_dict()}
    scope = None
    if "oos_validation" in dataset.splits:
        outside = _out_of_scope_logits(model, dataset, "oos_validation", checkpoint.encoder, device=device)  # M C
        scope = _fit_scope(logits, held_out.labels, outside, calibration)
        metrics["scope"] = {"validation": _scope_figures(logits, held_out.labels, outside, calibration, scope)}
    return replace(checkpoint, calibration=calibration, metrics=metrics, scope=scope)


@torch.inference_mode()
def predict_logits(
    model: TextClassifier,
    texts: TokenisedTexts,
    *,
    device: torch.device | str = "cpu",
    batch_size: int = 256,
    on_batch: Callable[[int], None] | None = None,
) -> Tensor:
    """Logits (N, C) of all texts in their order, on the CPU as float32; batches hold texts of similar length.

    `on_batch` is called after each batch with its number of rows.
    """
    model.eval()
    logits = torch.zeros(len(texts), model.head.out_features)  # N C
    for indices in batches_by_length(texts.lengths, batch_size=batch_size):
        ids, _ = pad_batch(texts, indices)
        logits[torch.from_numpy(indices)] = model(torch.from_numpy(ids).to(device)).float().cpu()
        if on_batch is not None:
            on_batch(len(indices))
    return logits


def measure(
    logits: NDArray[np.float32], texts: TokenisedTexts, *, calibration: Calibration, classes: tuple[str, ...]
) -> Evaluation:
    """The figures that follow from logits (N, C) and labels; without `order` and `scope`."""
    probabilities = calibrated_probabilities(logits, calibration)  # N C
    right = probabilities.argmax(axis=1) == texts.labels  # N
    unknown = np.add.reduceat(texts.ids == UNK, texts.offsets[:-1], dtype=np.int64) / texts.lengths  # N
    return Evaluation(
        evaluate_probabilities(probabilities, texts.labels, classes=classes),
        by_length=accuracy_by(texts.lengths, right, upper=LENGTHS),
        by_unknown=accuracy_by(unknown, right, upper=UNKNOWN_SHARES),
    )


def accuracy_without_order(
    model: TextClassifier,
    texts: TokenisedTexts,
    *,
    encoder: TextEncoder,
    device: torch.device | str = "cpu",
    on_batch: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Accuracy with word order removed; the loss in accuracy is what the model gains from word order.

    `words_shuffled`: the words of each text in a random order (seeded). `positions_mean`: every position vector
    replaced by the mean of those that the texts read; zeros would be an input unlike any in training.
    `positions_permuted`: the position vectors of each text in a random order; left out where words are tokens, as it is
    the same as the first.
    """
    shuffled = shuffle_words(texts, encoder)
    logits = {"words_shuffled": predict_logits(model, shuffled, device=device, on_batch=on_batch)}
    if model.config.positions != "none":
        blind = deepcopy(model)  # the model itself may be shared
        vectors = blind.embeddings.positional
        reads = torch.from_numpy((texts.lengths[:, None] > np.arange(len(vectors))).sum(axis=0)).to(vectors)  # T
        with torch.no_grad():
            vectors.copy_((reads @ vectors / reads.sum()).expand_as(vectors))
        logits["positions_mean"] = predict_logits(blind, texts, device=device, on_batch=on_batch)
    if _has_permuted(model, encoder):
        permuted = shuffle_words(texts, encoder, whole_words=False)
        logits["positions_permuted"] = predict_logits(model, permuted, device=device, on_batch=on_batch)
    return {
        name: round(float((of_rows.argmax(-1).numpy() == texts.labels).mean()), 6)  # N C
        for name, of_rows in logits.items()
    }


def _has_permuted(model: TextClassifier, encoder: TextEncoder) -> bool:
    """Whether permuted position vectors can be measured by permuting tokens, and differ from shuffled words."""
    reads_all_alike = model.config.pooling != "first" and not model.config.causal
    return encoder.byte_pairs is not None and model.config.positions != "none" and reads_all_alike


def shuffle_words(
    texts: TokenisedTexts, encoder: TextEncoder, *, seed: int = 0, whole_words: bool = True
) -> TokenisedTexts:
    """The same texts with their words in random order; a class token stays first.

    The subwords of a word stay together. Without `whole_words` they do not, which for a model whose attention reads all
    tokens is the same as permuting the position vectors of each text.
    """
    if encoder.byte_pairs is None or not whole_words:
        begins = np.ones(encoder.vocab_size, dtype=bool)  # V
    else:
        begins = np.array([token.startswith("Ġ") for token in encoder.vocabulary.tokens])  # V: Ġ is a leading space
    starts = begins[texts.ids]
    starts[texts.offsets[:-1]] = True
    word = np.cumsum(starts)  # a number for each word of all texts, from 1
    chance = np.random.default_rng(seed).random(len(word) + 1)[word]
    if encoder.class_token:
        chance[texts.offsets[:-1]] = -1.0
    text = np.repeat(np.arange(len(texts)), texts.lengths)
    order = np.lexsort((np.arange(len(word)), chance, text))  # by text, then randomly by word, then by place
    return TokenisedTexts(texts.ids[order], texts.offsets, texts.labels)


def in_classes_of(rows: LabelledTexts, checkpoint: Checkpoint) -> LabelledTexts:
    """The same rows with labels indexing the checkpoint's classes.

    Raises:
        DataError: some of their classes are unknown to the checkpoint.
    """
    if rows.classes == checkpoint.classes:
        return rows
    if unknown := sorted(set(rows.classes) - set(checkpoint.classes)):
        raise DataError(
            f"the data have classes that {checkpoint.name} does not know: {', '.join(unknown[:5])}; "
            f"it knows {', '.join(checkpoint.classes)}"
        )
    return in_classes(rows, checkpoint.classes)[0]


def _classifier_of(checkpoint: Checkpoint) -> TextClassifier:
    if not isinstance(checkpoint.model, TextClassifier):
        raise CheckpointError(f"{checkpoint.name} is a language model; its validation figures are in its model card")
    return checkpoint.model


def _tokenised(rows: LabelledTexts, checkpoint: Checkpoint) -> TokenisedTexts:
    return TokenisedTexts.encode(checkpoint.encoder, in_classes_of(rows, checkpoint))


def _out_of_scope_logits(
    model: TextClassifier, dataset: Dataset, split: SplitName, encoder: TextEncoder, *, device: torch.device | str
) -> NDArray[np.float32]:
    """Logits (M, C) of the out-of-scope texts of a split."""
    texts = TokenisedTexts.encode(encoder, dataset.load(split))
    logits: NDArray[np.float32] = predict_logits(model, texts, device=device).numpy()
    return logits


def _fit_scope(inside: Any, labels: Any, outside: Any, calibration: Calibration) -> ScopeRule:
    """The score with the highest AUROC between in-scope (N, C) and out-of-scope (M, C) logits, and its threshold."""
    right = inside.argmax(axis=1) == labels  # N
    scores = {
        kind: tuple(scope_scores(logits, calibration=calibration, score=kind) for logits in (inside, outside))
        for kind in get_args(ScopeScore)
    }
    kind = max(scores, key=lambda name: auroc(*scores[name]))
    own, others = scores[kind]
    values = {"score": kind, "threshold": scope_threshold(own, right, others)}
    return ScopeRule.from_mapping(values, source="scope")


def _scope_figures(
    inside: Any, labels: Any, outside: Any, calibration: Calibration, rule: ScopeRule
) -> dict[str, float]:
    """AUROC, and accuracies with texts below the threshold rejected, over N in-scope and M out-of-scope rows."""
    own, others = (scope_scores(logits, calibration=calibration, score=rule.score) for logits in (inside, outside))
    accepted = (inside.argmax(axis=1) == labels) & (own >= rule.threshold)  # N
    rejected = others < rule.threshold  # M
    return {
        "n_in": len(own),
        "n_out": len(others),
        "auroc": round(auroc(own, others), 6),
        "accuracy": round(float((accepted.sum() + rejected.sum()) / (len(own) + len(others))), 6),
        "accuracy_in": round(float(accepted.mean()), 6),
        "recall_out": round(float(rejected.mean()), 6),
    }
