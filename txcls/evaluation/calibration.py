"""Calibration and the out-of-scope threshold, fitted on validation rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.probabilities import calibrated_log_probabilities, log_softmax
from txcls.config import Calibration

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


def fit_calibration(logits: Floats, labels: Integers) -> Calibration:
    """The calibration with the lowest log loss on held-out rows.

    The temperature is fitted first, between 1/20 and 20, as in Guo et al. 2017, section 4.2. The power is fitted too if
    it generalises: in two-fold cross-validation over these rows it must lower the log loss. Where every row is right,
    nothing is fitted: sharpening without end lowers the log loss, and no row can show that it goes too far.

    Args:
        logits: (N, C) of rows the model was not trained on.
        labels: (N,) their true classes.
    """
    log_probabilities = log_softmax(logits)  # N C
    if (log_probabilities.argmax(axis=1) == labels).all():
        return Calibration()
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
    """Temperature and power with the lowest log loss; power is 1 unless it is fitted too."""
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
    calibrated = calibrated_log_probabilities(log_probabilities, temperature, power)  # N C
    return float(-calibrated[np.arange(len(labels)), labels].mean())


def scope_threshold(inside: Floats, right: NDArray[np.bool_], outside: Floats, *, share: float = 0.2) -> float:
    """The threshold with the best expected accuracy over in-scope and out-of-scope texts.

    Args:
        inside: (N,) scores of in-scope texts.
        right: (N,) whether each of them is classified correctly if it is accepted.
        outside: (M,) scores of out-of-scope texts, which are right if they are rejected.
        share: the assumed share of out-of-scope texts in use.
    """
    best_threshold, best = -np.inf, -np.inf
    for threshold in np.unique(np.concatenate([inside, outside])):
        accepted = float((right & (inside >= threshold)).mean())
        rejected = float((outside < threshold).mean())
        expected = (1 - share) * accepted + share * rejected
        if expected > best:
            best_threshold, best = float(threshold), expected
    return best_threshold
