"""How good a classifier is, from its probabilities and the true labels: accuracy, macro-F1, calibration."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class ClassMetrics:
    """One class against the rest; each figure 0 to 1, `support` in rows."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Predictions whose confidence lies in (low, high]: how many, how sure on average, and how often right."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """What `evaluate` reports; `confusion[i][j]` counts rows of class i that were called j."""

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
    """Winning predictions grouped by confidence in equal-width bins; empty bins count 0 rows (Guo et al. 2017).

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
    present = support > 0  # a class without test rows has no recall, and would only pull the mean down
    bins = reliability_bins(probabilities, labels)
    true_probability = np.clip(probabilities[np.arange(len(labels)), labels].astype(np.float64), 1e-12, None)
    return Metrics(
        n=len(labels),
        accuracy=float((predicted == labels).mean()),
        macro_f1=float(f1[present].mean()),
        ece=expected_calibration_error(bins),
        log_loss=float(-np.log(true_probability).mean()),
        per_class=tuple(
            ClassMetrics(label, float(p), float(r), float(f), int(s))
            for label, p, r, f, s in zip(classes, precision, recall, f1, support, strict=True)
        ),
        confusion=tuple(tuple(int(n) for n in row) for row in confusion_matrix(labels, predicted, labels=every)),
        reliability=bins,
    )


def scope_scores(logits: Floats, *, temperature: float, score: str) -> Floats:
    """How much each of (N, C) logits looks like a text of the known classes, (N,); higher is more.

    "max_probability" is the winner's calibrated probability (Hendrycks & Gimpel 2017), "energy" the log sum exp of the
    logits, the negative free energy of Liu et al. 2020.
    """
    from scipy.special import logsumexp, softmax

    scaled = logits.astype(np.float64) / temperature
    if score == "energy":
        energy: Floats = logsumexp(logits.astype(np.float64), axis=1)
        return energy
    confidence: Floats = softmax(scaled, axis=1).max(axis=1)
    return confidence


def auroc(inside: Floats, outside: Floats) -> float:
    """Chance that a random text of the classes scores higher than a random one of none; 0.5 is guessing."""
    from sklearn.metrics import roc_auc_score

    truth = np.concatenate([np.ones(len(inside)), np.zeros(len(outside))])
    return float(roc_auc_score(truth, np.concatenate([inside, outside])))


def scope_threshold(inside: Floats, right: NDArray[np.bool_], outside: Floats, *, share: float = 0.2) -> float:
    """The threshold with the best expected accuracy over texts of the classes and texts of none.

    Args:
        inside: (N,) scores of texts of the classes.
        right: (N,) whether each of them is classified correctly where it is not turned away.
        outside: (M,) scores of texts of no class, which are right where they are turned away.
        share: how many texts in use are taken to be of no class.
    """
    best_threshold, best = -np.inf, -np.inf
    for threshold in np.unique(np.concatenate([inside, outside])):
        kept = float((right & (inside >= threshold)).mean())
        turned_away = float((outside < threshold).mean())
        expected = (1 - share) * kept + share * turned_away
        if expected > best:
            best_threshold, best = float(threshold), expected
    return best_threshold


def fit_temperature(logits: Floats, labels: Integers) -> float:
    """The T that makes softmax(logits / T) fit the labels best: temperature scaling (Guo et al. 2017, section 4.2).

    Minimises the negative log-likelihood over log T between 1/20 and 20; one number, so the ranking never changes.

    Args:
        logits: (N, C) of rows the model was not trained on.
        labels: (N,) their true classes.
    """
    from scipy.optimize import minimize_scalar  # comes with scikit-learn
    from scipy.special import log_softmax

    rows = np.arange(len(labels))

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(logits.astype(np.float64) / np.exp(log_temperature), axis=1)
        return float(-scaled[rows, labels].mean())

    bound = float(np.log(20.0))
    return float(np.exp(minimize_scalar(loss, bounds=(-bound, bound), method="bounded").x))
