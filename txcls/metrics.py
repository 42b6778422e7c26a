"""How good a classifier is, from its probabilities and the true labels: accuracy, macro-F1, calibration."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.config import Calibration

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
class Slice:
    """Rows for which some quantity is above `over` and at most `up_to` (None for no bound), and how many are right."""

    over: float | None
    up_to: float | None
    n: int
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


def accuracy_by(values: NDArray[Any], right: NDArray[np.bool_], *, upper: Sequence[float]) -> tuple[Slice, ...]:
    """Accuracy in groups of rows by some quantity; groups without rows are left out.

    Args:
        values: (N,) the quantity.
        right: (N,) whether each row was classified correctly.
        upper: upper ends of the groups, rising; one more group takes what is above the last.
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


def log_softmax(logits: Floats) -> Floats:
    """Log-probabilities (N, C) of logits (N, C), as float64; SciPy's would take a tenth of a second to import."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)  # N C
    log_probabilities: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))  # N C
    return log_probabilities


def calibrated_probabilities(logits: Floats, calibration: Calibration) -> Floats:
    """Class probabilities (N, C) of logits (N, C), as `txcls.config.Calibration` says; rows sum to 1."""
    probabilities: Floats = np.exp(_calibrated_log(log_softmax(logits), calibration.temperature, calibration.power))
    return probabilities


def _calibrated_log(log_probabilities: Floats, temperature: float, power: float) -> Floats:
    surprise = np.maximum(-log_probabilities, 0.0)  # N C; rounding can leave it a little below zero
    return log_softmax(-((surprise / temperature) ** power))


def scope_scores(logits: Floats, *, calibration: Calibration, score: str) -> Floats:
    """How much each of (N, C) logits looks like a text of the known classes, (N,); higher is more.

    "max_probability" is the winner's calibrated probability (Hendrycks & Gimpel 2017), "energy" the log sum exp of the
    logits, the negative free energy of Liu et al. 2020.
    """
    if score == "energy":
        highest = logits.max(axis=1).astype(np.float64)  # N
        energy: Floats = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
        return energy
    confidence: Floats = calibrated_probabilities(logits, calibration).max(axis=1)
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


def fit_calibration(logits: Floats, labels: Integers) -> Calibration:
    """The calibration under which held-out labels are likeliest (lowest log loss).

    The temperature is fitted alone first, between 1/20 and 20, as in Guo et al. 2017, section 4.2. The power joins it
    where that pays on rows it was not fitted on: with every other row held back in turn, the log loss must fall.

    Args:
        logits: (N, C) of rows the model was not trained on.
        labels: (N,) their true classes.
    """
    log_probabilities = log_softmax(logits)  # N C
    odd = np.arange(len(labels)) % 2 == 1  # N
    held_out = []
    for with_power in (False, True):
        losses = [
            _log_loss(log_probabilities[~half], labels[~half], *_fit(log_probabilities[half], labels[half], with_power))
            for half in (odd, ~odd)
            if half.any() and not half.all()
        ]
        held_out.append(sum(losses))
    temperature, power = _fit(log_probabilities, labels, held_out[1] < held_out[0])
    return Calibration(temperature=temperature, power=power)


def _fit(log_probabilities: Floats, labels: Integers, with_power: bool) -> tuple[float, float]:
    """Temperature and power of the lowest log loss; power 1 unless it is to be fitted."""
    from scipy.optimize import minimize, minimize_scalar  # comes with scikit-learn

    bound = float(np.log(20.0))
    alone = minimize_scalar(
        lambda x: _log_loss(log_probabilities, labels, np.exp(x), 1.0), bounds=(-bound, bound), method="bounded"
    ).x
    if not with_power:
        return float(np.exp(alone)), 1.0
    both = minimize(
        lambda x: _log_loss(log_probabilities, labels, np.exp(x[0]), np.exp(x[1])),
        [alone, 0.0],
        method="Nelder-Mead",
        bounds=[(-bound, bound), (-np.log(5.0), np.log(5.0))],
        options={"xatol": 1e-4, "fatol": 1e-8},
    ).x
    return float(np.exp(both[0])), float(np.exp(both[1]))


def _log_loss(log_probabilities: Floats, labels: Integers, temperature: float, power: float) -> float:
    calibrated = _calibrated_log(log_probabilities, temperature, power)  # N C
    return float(-calibrated[np.arange(len(labels)), labels].mean())
