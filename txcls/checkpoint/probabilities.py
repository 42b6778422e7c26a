"""Calibrated probabilities and in-scope scores of logits, with a checkpoint's stored settings."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from txcls.config import Calibration

Floats = NDArray[np.floating[Any]]


def log_softmax(logits: Floats) -> Floats:
    """Log-probabilities (N, C) of logits (N, C), as float64; importing SciPy's version would take 0.1 s."""
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)  # N C
    log_probabilities: Floats = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))  # N C
    return log_probabilities


def calibrated_probabilities(
    logits: Floats, calibration: Calibration, lengths: NDArray[np.integer[Any]] | int | None = None
) -> Floats:
    """Class probabilities (N, C) of logits (N, C) under `txcls.config.Calibration`; rows sum to 1.

    `lengths` are the texts' numbers of tokens, (N,) or one for all texts; if None, no text counts as short.
    """
    temperature = calibration.temperature if lengths is None else temperatures(calibration, lengths)[:, None]
    log_probabilities = calibrated_log_probabilities(log_softmax(logits), temperature, calibration.power)
    probabilities: Floats = np.exp(log_probabilities)
    return probabilities


def temperatures(calibration: Calibration, lengths: NDArray[np.integer[Any]] | int) -> Floats:
    """The temperature for each text, (N,), according to its number of tokens."""
    lengths = np.atleast_1d(lengths)
    result = np.full(lengths.shape, calibration.temperature)
    for up_to, temperature in reversed(calibration.short):
        result[lengths <= up_to] = temperature
    return result


def calibrated_log_probabilities(log_probabilities: Floats, temperature: Floats | float, power: float) -> Floats:
    """Calibrated log-probabilities (N, C) from uncalibrated ones (N, C)."""
    surprisal = np.maximum(-log_probabilities, 0.0)  # N C; rounding can make it slightly negative
    return log_softmax(-((surprisal / temperature) ** power))


def scope_scores(logits: Floats, *, calibration: Calibration, score: str) -> Floats:
    """In-scope scores (N,) of logits (N, C); higher means more like a text of the known classes.

    "max_probability" is the highest calibrated probability (Hendrycks & Gimpel 2017); "energy" is the log-sum-exp of
    the logits, the negative free energy of Liu et al. 2020. "standard_score" is the number of standard deviations by
    which the highest logit exceeds the mean of the text's logits. It depends on the direction of the pooled vector, but
    not on its length, like the cosine with the class head's row for the predicted class (Zhang & Xiang 2023,
    "MaxCosine").
    """
    if score == "energy":
        highest = logits.max(axis=1).astype(np.float64)  # N
        energy: Floats = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
        return energy
    if score == "standard_score":
        centred = logits.astype(np.float64) - logits.mean(axis=1, keepdims=True, dtype=np.float64)  # N C
        deviation = centred.std(axis=1)  # N
        above: Floats = centred.max(axis=1) / np.where(deviation > 0, deviation, 1.0)  # 0 if all logits are equal
        return above
    confidence: Floats = calibrated_probabilities(logits, calibration).max(axis=1)
    return confidence
