"""Fit what a classifier gets after training: its calibration, and token counts by which to recognise unusual texts."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.probabilities import CountSurprisal, TokenCounts, calibrated_log_probabilities, log_softmax
from txcls.config import Calibration
from txcls.data.batches import TokenisedTexts
from txcls.data.types import Dataset
from txcls.evaluation.evaluate import fit_scope, measure, out_of_scope_logits, scope_metrics
from txcls.evaluation.metrics import LENGTH_BOUNDS
from txcls.evaluation.predict_logits import classifier_of, predict_logits
from txcls.text.tokenizer import Tokenizer

RARE = 0.01
"""Texts of a length are rare if fewer than this share of the validation texts are as short."""
COUNTED_TEXTS = 8_000
"""Maximum number of training texts whose tokens are counted."""
USUAL = 0.98
"""At least this share of the held-out texts, and of their beginnings, must count as usual; this sets the bound."""

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]


def with_calibration(
    checkpoint: Checkpoint, dataset: Dataset, held_out: TokenisedTexts, *, device: torch.device | str
) -> Checkpoint:
    """A copy with calibration and out-of-scope rule fitted on held-out texts, and with metrics on these texts."""
    model = classifier_of(checkpoint)
    logits = predict_logits(model, held_out, device=device).numpy()  # N C
    calibration = fit_calibration(logits, held_out.labels)
    short = _fit_short_temperatures(checkpoint, held_out, calibration, device=device)
    checkpoint = replace(checkpoint, calibration=calibration.model_copy(update={"short": short}))
    metrics = {**checkpoint.metrics, "validation": measure(logits, held_out, checkpoint).to_dict()}
    scope = None
    if "oos_validation" in dataset.splits:
        outside, lengths = out_of_scope_logits(checkpoint, dataset.load("oos_validation"), device=device)
        scope = fit_scope(logits, held_out.labels, outside, checkpoint.calibration)
        measured = scope_metrics(logits, held_out.labels, outside, lengths, checkpoint.calibration, scope)
        metrics["scope"] = {"validation": measured}
    return replace(checkpoint, metrics=metrics, scope=scope)


def _fit_short_temperatures(
    checkpoint: Checkpoint, texts: TokenisedTexts, calibration: Calibration, *, device: torch.device | str
) -> tuple[tuple[int, float], ...]:
    """`Calibration.short`: a temperature for each range of lengths that is rare among these texts.

    Each is fitted on these texts, truncated to random lengths in its range.
    """
    random = np.random.default_rng(0)
    min_length = 1 + checkpoint.tokenizer.class_token
    fitted: list[tuple[int, float]] = []
    for over, up_to in pairwise((0, *LENGTH_BOUNDS)):
        if up_to > checkpoint.tokenizer.max_length or (texts.lengths <= up_to).mean() >= RARE:
            break
        beginnings = texts.truncate(random.integers(max(over + 1, min_length), up_to + 1, size=len(texts)))
        logits = predict_logits(classifier_of(checkpoint), beginnings, device=device).numpy()  # N C
        fitted.append((up_to, round(fit_truncated_temperature(logits, texts.labels, calibration), 4)))
    return tuple(fitted)


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
    from scipy.optimize import minimize

    bound = float(np.log(20.0))
    log_temperature = _fit_log_temperature(log_probabilities, labels, 1.0, bounds=(-bound, bound))
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


def fit_truncated_temperature(logits: Floats, labels: Integers, calibration: Calibration) -> float:
    """The temperature with the lowest log loss on truncated texts, but at least the temperature of whole texts.

    `logits` (N, C) are those of the truncated texts; `calibration` was fitted on whole texts, and its power is kept.
    """
    lowest = np.log(calibration.temperature)
    bounds = (lowest, max(lowest, 0.0) + np.log(20.0))
    return float(np.exp(_fit_log_temperature(log_softmax(logits), labels, calibration.power, bounds=bounds)))


def _fit_log_temperature(
    log_probabilities: Floats, labels: Integers, power: float, *, bounds: tuple[float, float]
) -> float:
    from scipy.optimize import minimize_scalar

    def loss(logarithm: float) -> float:
        return _log_loss(log_probabilities, labels, np.exp(logarithm), power)

    return float(minimize_scalar(loss, bounds=bounds, method="bounded").x)


def _log_loss(log_probabilities: Floats, labels: Integers, temperature: float, power: float) -> float:
    calibrated = calibrated_log_probabilities(log_probabilities, temperature, power)  # N C
    return float(-calibrated[np.arange(len(labels)), labels].mean())


def fit_token_counts(training: TokenisedTexts, held_out: TokenisedTexts, tokenizer: Tokenizer) -> TokenCounts:
    """Count tokens in training texts, and set the bound for unusual texts from held-out texts."""
    chosen = np.random.default_rng(0).permutation(len(training))[:COUNTED_TEXTS]
    counts = np.bincount(training.subset(chosen).ids, minlength=tokenizer.vocab_size)  # V
    surprisal = CountSurprisal(counts, tokenizer)
    bits = [
        [surprisal.per_character(texts[n]) for n in range(len(texts))] for texts in (held_out, beginnings(held_out))
    ]
    bound = float(np.quantile(bits, USUAL, axis=1, method="higher").max())
    return TokenCounts(math.ceil(1e4 * bound) / 1e4, tuple(counts.tolist()))


def beginnings(texts: TokenisedTexts) -> TokenisedTexts:
    """The first 8 to 24 tokens of each text: about as much as visitors type, and more varied than whole texts."""
    return texts.truncate(np.random.default_rng(0).integers(8, 25, size=len(texts)))
