"""Evaluate a classifier on labelled rows, also with their word order destroyed.

python -m txcls evaluate ag_news            # on the test rows of its data set
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import round_numbers
from txcls.checkpoint.probabilities import Floats, calibrated_probabilities, scope_scores
from txcls.checkpoint.schema import MEASURED_SPLITS, Metrics
from txcls.config import Calibration, ScopeRule, ScopeScore
from txcls.data.batches import TokenisedTexts
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset, LabelledTexts, SplitName
from txcls.errors import DataError
from txcls.evaluation.metrics import accuracy_by_length, auroc, evaluate_probabilities
from txcls.evaluation.predict_logits import Logits, OnRows, classifier_of, predict_logits, tokenised_for
from txcls.inference.device import choose_device
from txcls.model import TextClassifier
from txcls.text.formatting import percentage
from txcls.text.tokenizer import Tokenizer


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Metrics on N in-scope rows, and the calibrated probabilities (N, C) that they were computed from.

    `scope` are the metrics of the out-of-scope rule, if the data set has out-of-scope rows.
    """

    metrics: Metrics
    probabilities: Floats = field(compare=False)
    scope: Mapping[str, float] | None = None

    def __repr__(self) -> str:
        """One line with the main metrics."""
        return (
            f"Evaluation(accuracy {percentage(self.metrics.accuracy, 2)}, macro-F1 {self.metrics.macro_f1:.4f}, "
            f"calibration error {self.metrics.ece:.4f}, {self.metrics.n:,} rows)"
        )

    def to_dict(self) -> dict[str, Any]:
        """`metrics` as plain JSON values, with numbers rounded to six decimals."""
        values: dict[str, Any] = round_numbers(asdict(self.metrics))
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
        measure_without_order: also measure accuracy without word order, in up to three more passes.
        on_rows: called after each batch of each pass.

    Raises:
        DataError: the data are missing, have no such split, or have classes unknown to the checkpoint.
        CheckpointError: the checkpoint is a language model.
        TrainingError: the device cannot be used.
    """
    if split not in MEASURED_SPLITS:
        raise DataError(f"got split {split!r}; expected one of {', '.join(MEASURED_SPLITS)}")
    classifier_of(checkpoint)
    dataset = open_dataset(checkpoint.config.data, path=data_path)
    if split == "validation":
        rows = validation_rows(checkpoint, dataset)
    else:
        rows = dataset.load("test" if split == "test" else "new")
    oos_split: SplitName = "oos_test" if split == "test" else "oos_validation"
    outside = dataset.load(oos_split) if split != "new" and oos_split in dataset.splits else None
    return evaluate_rows(
        checkpoint, rows, outside=outside, device=device, measure_without_order=measure_without_order, on_rows=on_rows
    )


def evaluate_rows(
    checkpoint: Checkpoint,
    rows: LabelledTexts,
    *,
    outside: LabelledTexts | None = None,
    device: str | None = None,
    measure_without_order: bool = True,
    on_rows: OnRows | None = None,
) -> Evaluation:
    """Evaluate a checkpoint on labelled rows, and its out-of-scope rule, if any, also on `outside`, texts of no class.

    For the other arguments and errors see `evaluate`.
    """
    torch_device = choose_device(device)
    model, texts = classifier_of(checkpoint).to(torch_device), tokenised_for(rows, checkpoint)
    n_passes, n_done = 1, 0
    if measure_without_order:
        n_passes += 1 + model.config.adds_positions + measures_permuted_positions(model, checkpoint.tokenizer)

    def count(n: int) -> None:
        nonlocal n_done
        n_done += n
        if on_rows is not None:
            on_rows(n_done, n_passes * len(texts))

    logits = predict_logits(model, texts, device=torch_device, on_batch=count).numpy()  # N C
    evaluation = measure(logits, texts, checkpoint)
    if measure_without_order:
        order = accuracy_without_order(
            model, texts, tokenizer=checkpoint.tokenizer, device=torch_device, on_batch=count
        )
        evaluation = replace(evaluation, metrics=replace(evaluation.metrics, order=order))
    if checkpoint.scope is not None and outside is not None:
        others = out_of_scope_logits(checkpoint, outside, device=torch_device)
        scope = scope_metrics(logits, texts.labels, *others, checkpoint.calibration, checkpoint.scope)
        evaluation = replace(evaluation, scope=scope)
    model.cpu()
    return evaluation


def with_evaluation(checkpoint: Checkpoint, *, split: str, evaluation: Evaluation) -> Checkpoint:
    """A copy of the checkpoint with the evaluation in its metrics (and, once saved, in its card)."""
    metrics = {**checkpoint.metrics, split: evaluation.to_dict()}
    metrics["data"] = {**metrics.get("data", {}), f"{split}_rows": evaluation.metrics.n}
    if evaluation.scope is not None:
        metrics["scope"] = {**metrics.get("scope", {}), split: dict(evaluation.scope)}
    return replace(checkpoint, metrics=metrics)


def measure(logits: Logits, texts: TokenisedTexts, checkpoint: Checkpoint) -> Evaluation:
    """The evaluation computed from logits (N, C) and labels, without `order` and `scope`."""
    probabilities = calibrated_probabilities(logits, checkpoint.calibration, texts.lengths)  # N C
    right = probabilities.argmax(axis=1) == texts.labels  # N
    metrics = evaluate_probabilities(probabilities, texts.labels, classes=checkpoint.classes)
    return Evaluation(replace(metrics, by_length=accuracy_by_length(texts.lengths, right)), probabilities)


def validation_rows(checkpoint: Checkpoint, dataset: Dataset) -> LabelledTexts:
    """The validation rows that the checkpoint was trained with; for arguments and errors see `evaluate`."""
    if checkpoint.metrics.get("data", {}).get("validation") == "given beside the training rows":
        raise DataError(
            f"{checkpoint.name}: its validation rows are not recorded, and all other rows may be training rows; "
            "measure it on rows that it was not trained on: `evaluate CHECKPOINT --data FILE`"
        )
    return training_and_validation(dataset, checkpoint.config.data)[1]


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
    if model.config.adds_positions:
        without_positions = deepcopy(model)  # the model itself may be shared
        vectors = without_positions.embeddings.positional
        counts = torch.from_numpy((texts.lengths[:, None] > np.arange(len(vectors))).sum(axis=0)).to(vectors)  # T
        with torch.no_grad():
            vectors.copy_((counts @ vectors / counts.sum()).expand_as(vectors))
        logits["positions_mean"] = predict_logits(without_positions, texts, device=device, on_batch=on_batch)
    if measures_permuted_positions(model, tokenizer):
        permuted = shuffle_words(texts, tokenizer, whole_words=False)
        logits["positions_permuted"] = predict_logits(model, permuted, device=device, on_batch=on_batch)
    return {
        name: round(float((scores.argmax(-1).numpy() == texts.labels).mean()), 6)  # N C
        for name, scores in logits.items()
    }


def measures_permuted_positions(model: TextClassifier, tokenizer: Tokenizer) -> bool:
    """Whether permuting position vectors equals permuting tokens, and differs from shuffling words."""
    treats_tokens_alike = model.config.pooling != "first" and not model.config.causal
    return tokenizer.byte_pairs is not None and model.config.adds_positions and treats_tokens_alike


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


CONFIDENT = 0.9
"""Accepted out-of-scope texts with a higher probability than this are counted separately."""


def out_of_scope_logits(
    checkpoint: Checkpoint, outside: LabelledTexts, *, device: torch.device | str
) -> tuple[Logits, NDArray[np.int64]]:
    """Logits (M, C) and numbers of tokens (M,) of out-of-scope texts."""
    texts = TokenisedTexts.encode(checkpoint.tokenizer, outside)
    return predict_logits(classifier_of(checkpoint), texts, device=device).numpy(), texts.lengths


def fit_scope(inside: Logits, labels: NDArray[np.int64], outside: Logits, calibration: Calibration) -> ScopeRule:
    """The score with the highest AUROC between in-scope (N, C) and out-of-scope (M, C) logits, and its threshold."""
    right = inside.argmax(axis=1) == labels  # N
    scores = {
        kind: tuple(scope_scores(logits, calibration=calibration, score=kind) for logits in (inside, outside))
        for kind in get_args(ScopeScore)
    }
    kind = max(scores, key=lambda kind: auroc(*scores[kind]))
    inside_scores, outside_scores = scores[kind]
    return ScopeRule(score=kind, threshold=scope_threshold(inside_scores, right, outside_scores))


def scope_metrics(
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
    values: dict[str, float] = round_numbers(
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


def scope_threshold(
    inside: NDArray[np.floating[Any]],
    right: NDArray[np.bool_],
    outside: NDArray[np.floating[Any]],
    *,
    share: float = 0.2,
) -> float:
    """The threshold with the best expected accuracy over in-scope and out-of-scope texts.

    Args:
        inside: (N,) scores of in-scope texts.
        right: (N,) whether each in-scope text is classified correctly.
        outside: (M,) scores of out-of-scope texts, for which rejection is correct.
        share: the assumed share of out-of-scope texts.
    """
    thresholds = np.unique(np.concatenate([inside, outside]))
    accepted = [(right & (inside >= threshold)).mean() for threshold in thresholds]
    rejected = np.searchsorted(np.sort(outside), thresholds) / len(outside)
    return float(thresholds[np.argmax((1 - share) * np.array(accepted) + share * rejected)])


def accepted_out_of_scope(metrics: Mapping[str, Any]) -> str:
    """The number of accepted out-of-scope test texts as a sentence; empty if it was not measured."""
    scope = metrics.get("scope", {}).get("test", {})
    if not {"accepted_out", "confident_out"} <= set(scope):
        return ""
    return (
        f"It accepts {scope['accepted_out']:,} of the {scope['n_out']:,} test texts that belong to none of its "
        f"classes, {scope['confident_out']:,} of them with more than 90 %."
    )
