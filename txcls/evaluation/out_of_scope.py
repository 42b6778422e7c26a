"""Fit and measure the rule that rejects texts outside all classes."""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.json_files import round_numbers
from txcls.checkpoint.probabilities import calibrated_probabilities, scope_scores
from txcls.config import Calibration, ScopeRule, ScopeScore
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.evaluation.metrics import auroc
from txcls.evaluation.predict_logits import Logits, classifier_of, predict_logits

CONFIDENT = 0.9
"""Accepted out-of-scope texts with a higher probability than this are counted separately."""


def predict_out_of_scope(
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
