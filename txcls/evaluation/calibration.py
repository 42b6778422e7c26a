"""Calibration and the out-of-scope threshold, fitted on validation rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.checkpoint.probabilities import calibrated_log_probabilities, log_softmax
from txcls.config import Calibration

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


def fit_calibration(logits: Floats, labels: Integers) -> Calibration:
    """The calibration with the lowest log loss on held-out rows with logits (N, C) and labels (N,).

    The temperature is fitted between 1/20 and 20 (Guo et al. 2017, section 4.2). The power is also fitted if this
    lowers the log loss in two-fold cross-validation on these rows. Nothing is fitted if every prediction is correct,
    since the log loss would have no minimum: sharper probabilities always lower it.
    """
    log_probabilities = log_softmax(logits)  # N C
    if (log_probabilities.argmax(axis=1) == labels).all():
        return Calibration()
    is_odd = np.arange(len(labels)) % 2 == 1  # N
    without_power, with_power = (
        sum(
            _log_loss(log_probabilities[~half], labels[~half], *_fit(log_probabilities[half], labels[half], has_power))
            for half in (is_odd, ~is_odd)
            if half.any() and not half.all()
        )
        for has_power in (False, True)
    )
    temperature, power = _fit(log_probabilities, labels, with_power < without_power)
    return Calibration(temperature=temperature, power=power)


def _fit(log_probabilities: Floats, labels: Integers, with_power: bool) -> tuple[float, float]:
    """Temperature and power with the lowest log loss; without `with_power`, the power is 1."""
    from scipy.optimize import minimize, minimize_scalar  # installed with scikit-learn

    bound = float(np.log(20.0))
    log_temperature = minimize_scalar(
        lambda x: _log_loss(log_probabilities, labels, np.exp(x), 1.0), bounds=(-bound, bound), method="bounded"
    ).x
    if not with_power:
        return float(np.exp(log_temperature)), 1.0
    temperature, power = minimize(
        lambda x: _log_loss(log_probabilities, labels, np.exp(x[0]), np.exp(x[1])),
        [log_temperature, 0.0],
        method="Nelder-Mead",
        bounds=[(-bound, bound), (-np.log(5.0), np.log(5.0))],
        options={"xatol": 1e-4, "fatol": 1e-8},
    ).x
    return float(np.exp(temperature)), float(np.exp(power))


def fit_short(logits: Floats, labels: Integers, calibration: Calibration) -> float:
    """The temperature with the lowest log loss on truncated texts, but at least the temperature of whole texts.

    `logits` (N, C) are of the truncated texts; `calibration` was fitted on whole texts, and its power is kept.
    """
    from scipy.optimize import minimize_scalar  # installed with scikit-learn

    log_probabilities = log_softmax(logits)  # N C
    lowest = np.log(calibration.temperature)
    fitted = minimize_scalar(
        lambda x: _log_loss(log_probabilities, labels, np.exp(x), calibration.power),
        bounds=(lowest, max(lowest, 0.0) + np.log(20.0)),
        method="bounded",
    )
    return float(np.exp(fitted.x))


def _log_loss(log_probabilities: Floats, labels: Integers, temperature: float, power: float) -> float:
    calibrated = calibrated_log_probabilities(log_probabilities, temperature, power)  # N C
    return float(-calibrated[np.arange(len(labels)), labels].mean())


def scope_threshold(inside: Floats, right: NDArray[np.bool_], outside: Floats, *, share: float = 0.2) -> float:
    """The threshold with the best expected accuracy over in-scope and out-of-scope texts.

    Args:
        inside: (N,) scores of in-scope texts.
        right: (N,) whether each in-scope text is classified correctly.
        outside: (M,) scores of out-of-scope texts, for which rejection is correct.
        share: the assumed share of out-of-scope texts.
    """
    best_threshold, best_accuracy = -np.inf, -np.inf
    for threshold in np.unique(np.concatenate([inside, outside])):
        accepted = float((right & (inside >= threshold)).mean())
        rejected = float((outside < threshold).mean())
        expected = (1 - share) * accepted + share * rejected
        if expected > best_accuracy:
            best_threshold, best_accuracy = float(threshold), expected
    return best_threshold
