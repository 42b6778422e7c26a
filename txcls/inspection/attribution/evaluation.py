"""How good is an explanation? Rank correlation between methods, and deletion curves.

Whether attention is an explanation was argued by Jain & Wallace 2019 (https://aclanthology.org/N19-1357) and Wiegreffe
& Pinter 2019 (https://aclanthology.org/D19-1002), both on recurrent models. Here the question is asked of one text.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.attribution.methods import TargetFunction, explain, word_positions
from txcls.inspection.tracing import trace_text
from txcls.predictor import Predictor

Floats = NDArray[np.float64]


def rank_correlations(scores: Mapping[str, Floats]) -> Floats:
    """Spearman's rank correlation between every two methods, (M, M), of the magnitudes of their scores.

    Magnitudes, since attention has no sign. NaN where a method gives all words the same score, or there is one word
    only.

    Args:
        scores: M methods to (W,).
    """
    from scipy.stats import rankdata  # comes with scikit-learn

    # Rounded, since the last digits depend on the machine.
    strengths = [np.abs(values) / max(float(np.abs(values).max(initial=0.0)), 1e-12) for values in scores.values()]
    ranks = np.stack([rankdata(strength.round(6)) for strength in strengths])  # M W
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1)
    lengths[lengths == 0] = np.nan
    correlations: Floats = np.clip(centred @ centred.T / np.outer(lengths, lengths), -1.0, 1.0)
    return correlations


@dataclass(frozen=True)
class DeletionCurves:
    """The winning class's probability while words are removed from the text, those with the highest score first.

    Attributes:
        shares: (K,) share of the words that are removed, from 0 to 1.
        curves: method to (K,) probabilities.
        random: (R, K), the same for R random orders.
        areas: method to the area under its curve. Smaller means that the words removed first mattered more.
        random_area: mean area of the random orders.
    """

    shares: Floats
    curves: Mapping[str, Floats]
    random: Floats
    areas: Mapping[str, float]
    random_area: float


def deletion_curves(
    classifier: Predictor,
    text: str,
    scores: Mapping[str, Floats],
    *,
    n_random: int = 10,
    seed: int = 0,
    most_steps: int = 24,
) -> DeletionCurves:
    """Remove words in each method's order, and in random orders (Samek et al. 2017, DeYoung et al. 2020).

    The rest of the text closes the gap; once no word is left, the text is one unknown token.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        scores: method to (W,), as `explain` gives them; equal scores are removed from left to right.
        n_random: R, the number of random orders.
        seed: of these.
        most_steps: from longer texts several words are removed at a time.

    Raises:
        TraceError: the text holds no token to read.
        ValueError: there is not one score per word, or `n_random` is below 1.
    """
    asked = TargetFunction(classifier, trace_text(classifier, text), "probability")
    words = word_positions(asked.traced)
    if n_random < 1 or any(len(values) != len(words) for values in scores.values()):
        raise ValueError(
            f"got n_random = {n_random} and scores of {sorted({len(values) for values in scores.values()})} words; "
            f"wanted at least 1, and one score for each of the {len(words)} words"
        )
    random = np.random.default_rng(seed)
    orders = [np.argsort(-values, kind="stable") for values in scores.values()]
    orders += [random.permutation(len(words)) for _ in range(n_random)]
    steps = np.unique(np.linspace(0, len(words), min(len(words), most_steps) + 1).round().astype(int))  # K
    removed = [set(words[order[:step]].tolist()) for order in orders for step in steps]
    values = asked.without(removed).reshape(len(orders), len(steps))
    shares = steps / len(words)
    areas: Floats = np.asarray(np.trapezoid(values, shares, axis=1))
    n = len(scores)
    return DeletionCurves(
        shares=shares,
        curves=dict(zip(scores, values[:n], strict=True)),
        random=values[n:],
        areas=dict(zip(scores, areas[:n].tolist(), strict=True)),
        random_area=float(areas[n:].mean()),
    )


@dataclass(frozen=True)
class ExplanationEvaluation:
    """How good the five methods are on one text."""

    curves: DeletionCurves
    correlations: Floats
    completeness_error: float


def evaluate_explanation(classifier: Predictor, text: str) -> ExplanationEvaluation:
    """Score one text's words for the winning class's logit, and evaluate the five methods.

    Raises:
        TraceError: the text holds no token to read.
    """
    explained = explain(classifier, text)
    return ExplanationEvaluation(
        curves=deletion_curves(classifier, text, explained.scores),
        correlations=rank_correlations(explained.scores),
        completeness_error=explained.integrated.completeness_error,
    )
