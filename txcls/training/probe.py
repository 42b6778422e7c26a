"""With few rows, training starts from a probe: a logistic regression on the frozen encoder (Alain & Bengio 2017).

Cross-validation on the training rows decides whether training improves on it; otherwise the encoder stays as it is.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import RunConfig
from txcls.data.batches import TokenisedTexts
from txcls.data.splits import first_copies
from txcls.data.types import LabelledTexts
from txcls.evaluation.predict_logits import mean_states, predict_logits
from txcls.model import TextClassifier
from txcls.training.from_pretrained import copy_pretrained_weights, tokenizer_from
from txcls.training.loop import fit
from txcls.training.objectives import Classify
from txcls.training.supervised import Head

Features = NDArray[np.float64]
Rows = NDArray[np.int64]

FOLDS = 3
DECAYS = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
"""Candidates for the decay (the L2 penalty); the one with the lowest loss in cross-validation is used."""
UNSEEN = -20.0
"""The bias of a class without rows in a fold."""


def choose_start(
    config: RunConfig,
    init: Checkpoint,
    rows: LabelledTexts,
    validation: LabelledTexts,
    *,
    seconds: float | None,
    say: Callable[[str], None],
) -> tuple[Head, bool]:
    """Fit the probe to N rows, and compare it with training from it, in at most `seconds` seconds.

    Returns the head that training starts from, and whether the probe is kept without training. It is kept if it gets
    more rows right than training does, by more than about one standard error: the square root of the number of rows
    that exactly one of the two gets right.
    """
    started, seed, n_classes = time.monotonic(), config.train.seed, len(rows.classes)
    tokenizer = tokenizer_from(init, config)
    texts, held_out = (TokenisedTexts.encode(tokenizer, part) for part in (rows, validation))

    def new_model() -> TextClassifier:
        torch.manual_seed(seed)
        model = TextClassifier(config.model, vocab_size=tokenizer.vocab_size, n_classes=n_classes)
        copy_pretrained_weights(model, init)
        return model

    say("fitting a logistic regression on the frozen encoder")
    features, labels = mean_states(new_model(), texts), np.asarray(rows.labels, dtype=np.int64)
    folds = list(_folds(rows, labels, seed=seed))
    decay, probes, probe_right = _best_probe(features, labels, folds, n_classes)
    right = np.zeros(len(labels), dtype=bool)
    for number, ((fitted, left), fold_head) in enumerate(zip(folds, probes, strict=True), start=1):
        say(f"cross-validation: training on part {number} of {len(folds)}")
        model, part = new_model(), texts.subset(fitted)
        fold_head.write_to(model)
        share = None if seconds is None else (started + seconds - time.monotonic()) / (len(folds) + 1 - number)
        objective = Classify.of(part, n_classes=n_classes, config=config.train, dropped=tokenizer.blank)
        fit(model, part, held_out, config.train, objective=objective, max_seconds=share and max(share, 1.0))
        right[left] = predict_logits(model, texts.subset(left)).numpy().argmax(axis=1) == labels[left]
    n_apart = int((right != probe_right).sum())
    is_better = int(probe_right.sum()) - int(right.sum()) > math.sqrt(n_apart)
    return _probe(features, labels, n_classes, decay), bool(folds) and is_better


def _folds(rows: LabelledTexts, labels: Rows, *, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield, for each fold, the rows to fit to and the rows left out; copies of a text are in the same fold."""
    from sklearn.model_selection import StratifiedGroupKFold

    splitter = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed)
    # Warnings are about classes with fewer rows than folds, errors about too few rows for any fold.
    with warnings.catch_warnings(action="ignore"), suppress(ValueError):
        for fitted, left in splitter.split(labels, labels, first_copies(rows.texts)):
            if len(left) and len(np.unique(labels[fitted])) > 1:
                yield fitted, left


def _best_probe(
    features: Features, labels: Rows, folds: list[tuple[Rows, Rows]], n_classes: int
) -> tuple[float, list[Head], NDArray[np.bool_]]:
    """The decay with the lowest loss, each fold's probe with this decay, and which rows these get right, (N,)."""
    from scipy.special import log_softmax

    best: tuple[float, float, list[Head], NDArray[np.bool_]] | None = None
    for decay in DECAYS:
        loss, right, heads = 0.0, np.zeros(len(labels), dtype=bool), []
        for fitted, left in folds:
            heads.append(head := _probe(features[fitted], labels[fitted], n_classes, decay))
            logs = log_softmax(features[left] @ head.weight.T + head.bias, axis=1)  # M C
            loss -= float(logs[np.arange(len(left)), labels[left]].sum())
            right[left] = logs.argmax(axis=1) == labels[left]
        if best is None or loss < best[0]:
            best = loss, decay, heads, right
    assert best is not None
    return best[1:]


def _probe(features: Features, labels: Rows, n_classes: int, decay: float) -> Head:
    """Multinomial logistic regression on standardised features, as a head for the original features (N, D)."""
    from sklearn.linear_model import LogisticRegression

    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale < 1e-6] = 1.0
    fitted = LogisticRegression(C=1 / decay, max_iter=300).fit((features - mean) / scale, labels)
    coefficients, intercepts = fitted.coef_, fitted.intercept_  # K D, K
    if len(fitted.classes_) == 2:  # scikit-learn has one row for two classes
        coefficients, intercepts = (
            np.concatenate([-coefficients, coefficients]) / 2,
            np.append(-intercepts, intercepts) / 2,
        )
    weight, bias = np.zeros((n_classes, features.shape[1])), np.full(n_classes, UNSEEN)
    weight[fitted.classes_] = coefficients / scale
    bias[fitted.classes_] = intercepts - (coefficients / scale) @ mean
    return Head(weight, bias)
