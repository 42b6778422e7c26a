"""How good is an explanation? The overlap of the strongest words of two methods, and deletion curves.

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


MOST_TOP = 3
"""Most words of a text that are compared between methods."""


def n_top(n_words: int) -> int:
    """How many words of a text are compared: three, at most a third of them, at least one."""
    return max(1, min(MOST_TOP, n_words // 3))


def top_overlaps(scores: Mapping[str, Floats]) -> Floats:
    """Share of the `n_top` words with the largest magnitudes that every two methods have in common, (M, M).

    "Feature agreement" of Krishna et al. 2022 (https://arxiv.org/abs/2202.01602). Words with scores near zero take no
    part, in contrast to rank correlation. Magnitudes, since attention has no sign. Words with equal scores share their
    places. NaN where a method gives all words the same score, or there is one word only.

    Args:
        scores: M methods to (W,).
    """
    chosen = np.stack([_top(np.abs(values)) for values in scores.values()])  # M W
    common: Floats = np.minimum(chosen[:, None], chosen[None, :]).sum(axis=-1)  # M M
    shares: Floats = np.minimum(common / n_top(chosen.shape[1]), 1.0)
    return shares


def _top(strengths: Floats) -> Floats:
    """1 for the strongest words, 0 for the others, fractions for words that share the last places."""
    # Rounded, since the last digits depend on the machine.
    strengths = (strengths / max(float(strengths.max(initial=0.0)), 1e-12)).round(6)
    if strengths.max() == strengths.min():
        return np.full(len(strengths), np.nan)
    n = n_top(len(strengths))
    last = np.sort(strengths)[-n]
    above, level = strengths > last, strengths == last
    chosen: Floats = above + level * (n - above.sum()) / level.sum()
    return chosen


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

    The rest of the text closes the gap; once no word is left, the text is one blank token (`TextEncoder.blank`).

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
    """How good the methods are on one text; `chance` is the mean overlap of two random choices of words."""

    curves: DeletionCurves
    overlaps: Floats
    chance: float
    completeness_error: float


def evaluate_explanation(classifier: Predictor, text: str) -> ExplanationEvaluation:
    """Score one text's words for the winning class's logit, and evaluate the methods.

    Raises:
        TraceError: the text holds no token to read.
    """
    explained = explain(classifier, text)
    return ExplanationEvaluation(
        curves=deletion_curves(classifier, text, explained.scores),
        overlaps=top_overlaps(explained.scores),
        chance=n_top(len(explained.words)) / len(explained.words),
        completeness_error=explained.integrated.completeness_error,
    )
