"""How good a classifier is, from its probabilities and the true labels: accuracy, macro-F1, calibration error."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.schema import ClassMetrics, ReliabilityBin, Slice

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Metrics:
    """What `evaluate` reports; `confusion[i][j]` counts rows of class i that were predicted as j."""

    n: int
    accuracy: float
    macro_f1: float
    ece: float
    log_loss: float
    per_class: tuple[ClassMetrics, ...]
    confusion: tuple[tuple[int, ...], ...]
    reliability: tuple[ReliabilityBin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, numbers rounded to six places."""
        rounded: dict[str, Any] = _rounded(asdict(self))
        return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return value


def reliability_bins(probabilities: Floats, labels: Integers, *, n_bins: int = 15) -> tuple[ReliabilityBin, ...]:
    """Top predictions in equal-width bins of confidence, empty bins included (Guo et al. 2017).

    Args:
        probabilities: (N, C), rows sum to 1.
        labels: (N,), true class of each row.
        n_bins: number of bins over 0 to 1.
    """
    confidence = probabilities.max(axis=1)  # N
    right = probabilities.argmax(axis=1) == labels  # N
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    place = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, n_bins - 1)  # N
    bins = []
    for index in range(n_bins):
        inside = place == index
        n = int(inside.sum())
        bins.append(
            ReliabilityBin(
                low=float(edges[index]),
                high=float(edges[index + 1]),
                n=n,
                confidence=float(confidence[inside].mean()) if n else 0.0,
                accuracy=float(right[inside].mean()) if n else 0.0,
            )
        )
    return tuple(bins)


def expected_calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Mean gap between confidence and accuracy over the bins, weighted by their rows (Guo et al. 2017, eq. 3)."""
    total = sum(one.n for one in bins)
    return sum(one.n * abs(one.confidence - one.accuracy) for one in bins) / total if total else 0.0


def accuracy_by(values: NDArray[Any], right: NDArray[np.bool_], *, upper: Sequence[float]) -> tuple[Slice, ...]:
    """Accuracy of rows grouped by some quantity; empty groups are left out.

    Args:
        values: (N,) the quantity.
        right: (N,) whether each row was classified correctly.
        upper: upper ends of the groups, ascending; one more group holds what is above the last.
    """
    place = np.searchsorted(upper, values, side="left")  # N
    slices = []
    for index, (over, up_to) in enumerate(pairwise([None, *upper, None])):
        inside = place == index
        if inside.any():
            slices.append(Slice(over, up_to, int(inside.sum()), round(float(right[inside].mean()), 6)))
    return tuple(slices)


def evaluate_probabilities(probabilities: Floats, labels: Integers, *, classes: Sequence[str]) -> Metrics:
    """All metrics of (N, C) probabilities against (N,) true labels.

    Raises:
        ValueError: no rows, or shapes that do not fit together.
    """
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    if not len(labels) or probabilities.shape != (len(labels), len(classes)):
        raise ValueError(
            f"got probabilities {probabilities.shape} for {len(labels)} labels and {len(classes)} classes; "
            "wanted one row per label, at least one, and one column per class"
        )
    predicted = probabilities.argmax(axis=1)
    every = np.arange(len(classes))
    precision, recall, f1, support = precision_recall_fscore_support(labels, predicted, labels=every, zero_division=0.0)
    present = support > 0  # a class without rows has no recall, and would only lower the mean
    bins = reliability_bins(probabilities, labels)
    true_probability = np.clip(probabilities[np.arange(len(labels)), labels].astype(np.float64), 1e-12, 1.0)
    return Metrics(
        n=len(labels),
        accuracy=float((predicted == labels).mean()),
        macro_f1=float(f1[present].mean()),
        ece=expected_calibration_error(bins),
        log_loss=float(np.log(1 / true_probability).mean()),
        per_class=tuple(
            ClassMetrics(label, float(p), float(r), float(f), int(s))
            for label, p, r, f, s in zip(classes, precision, recall, f1, support, strict=True)
        ),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion_matrix(labels, predicted, labels=every)),
        reliability=bins,
    )


def auroc(inside: Floats, outside: Floats) -> float:
    """Probability that a random in-scope text scores higher than a random out-of-scope one; 0.5 is chance."""
    from sklearn.metrics import roc_auc_score

    truth = np.concatenate([np.ones(len(inside)), np.zeros(len(outside))])
    return float(roc_auc_score(truth, np.concatenate([inside, outside])))
