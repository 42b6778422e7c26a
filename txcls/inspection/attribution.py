"""Which words did it: five ways to score the words of a text, how far they agree, and what happens when words go.

Whether attention explains an answer was argued by Jain & Wallace 2019 (https://aclanthology.org/N19-1357) and Wiegreffe
& Pinter 2019 (https://aclanthology.org/D19-1002), both on recurrent models. Here the question is put to one text.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from txcls.classifier import Classifier
from txcls.inspection.phrases import votes_by_token
from txcls.inspection.rollout import attention_rollout, read_out
from txcls.inspection.tracing import TracedText, texts_together, trace_text
from txcls.pause import may_pause
from txcls.text.encoder import Token
from txcls.text.vocabulary import UNK

if TYPE_CHECKING:
    from torch import Tensor

Target = Literal["logit", "probability"]
Baseline = Literal["unknown", "zero"]
Floats = NDArray[np.float64]

METHODS = {
    "attention": "Last-layer attention",
    "rollout": "Attention rollout",
    "gradient": "Gradient × input",
    "integrated": "Integrated gradients",
    "leave_one_out": "Leave one out",
}
"""The ways to score words, by key, as people call them."""
SIGNED = ("gradient", "integrated", "leave_one_out")
"""Those whose scores tell words for the class (above 0) from words against it; attention only says how much."""


@dataclass(frozen=True)
class IntegratedGradients:
    """`scores` (T,) of all tokens for the `target` of class `label`.

    They should add up to `value`, the target of the text, less `baseline_value`, that of the baseline; they miss it by
    `completeness_error` because the path is walked in a finite number of steps.
    """

    scores: Floats
    value: float
    baseline_value: float

    @property
    def completeness_error(self) -> float:
        """See above; never negative."""
        return abs(float(self.scores.sum()) - (self.value - self.baseline_value))


class _Asked:
    """One text, the class that wins on it, and its target as a function of what is known of each token at first.

    That is what the first layer reads, and, where phrases vote, their votes, each phrase's shared by its tokens in
    equal parts: `given`, by tap, (T, D) and (T, C).
    """

    def __init__(self, classifier: Classifier, traced: TracedText, target: Target) -> None:
        import torch

        from txcls.model import TextClassifier

        self.classifier, self.traced, self.target = classifier, traced, target
        self.ids = torch.tensor([[token.id for token in traced.tokens]])  # 1 T
        self.index = classifier.classes.index(str(traced.prediction.label))
        self.given = {"embeddings.out": torch.from_numpy(traced.values["embeddings.out"])}  # T D
        model = classifier.checkpoint.model
        assert isinstance(model, TextClassifier)
        if model.phrases is not None:
            self.given["phrases.votes"] = torch.from_numpy(votes_by_token(model.phrases, self.ids[0].tolist()))  # T C

    def of_logits(self, logits: "Tensor") -> "Tensor":
        """The winner's logit, or its calibrated probability, (B,), of logits (B, C)."""
        exact = logits.double()  # B C
        if self.target == "probability":
            # As `txcls.calibration.calibrated_probabilities`, in torch, so that gradients pass.
            calibration = self.classifier.checkpoint.calibration
            surprise = -exact.log_softmax(-1).clamp(max=-1e-12)  # B C
            exact = (-((surprise / calibration.temperature) ** calibration.power)).softmax(-1)  # B C
        return exact[:, self.index]

    def without(self, removed: Sequence[Set[int]]) -> Floats:
        """The target (n,) of the text without the tokens at each of n sets of places."""
        ids = [token.id for token in self.traced.prediction.tokens]  # without the padding of models that pad all texts
        values: Floats = self.of_logits(logits_without(self.classifier, ids, removed)).numpy()
        return values

    def of_points(self, points: Mapping[str, "Tensor"]) -> "Tensor":
        """The target (S,) at S points: by tap, (S, T, D) or (S, T, C) in the place of what is `given`."""
        from txcls.tap import trace

        n = len(points["embeddings.out"])
        edits = {tap: partial(_put, values) for tap, values in points.items()}
        with trace(record=(), edit=edits):
            logits = self.classifier.checkpoint.model(self.ids.expand(n, -1))  # S C
        return self.of_logits(logits)

    def gradient(self, points: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
        """The target's gradient at S points, by tap; of long texts, a few points share a pass."""
        import torch

        some = texts_together(self.ids.shape[1])
        found: dict[str, list[Tensor]] = {tap: [] for tap in points}
        for first in range(0, len(points["embeddings.out"]), some):
            may_pause()
            with torch.enable_grad():
                leaves = {tap: values[first : first + some].detach().requires_grad_() for tap, values in points.items()}
                target = self.of_points(leaves).sum()
                # Gradients of the points alone: the parameters, which all threads share, collect none.
                for tap, slope in zip(leaves, torch.autograd.grad(target, list(leaves.values())), strict=True):
                    found[tap].append(slope)
        return {tap: torch.cat(slopes) for tap, slopes in found.items()}

    def baseline(self, kind: Baseline) -> dict[str, "Tensor"]:
        """The same of the baseline, by tap; no phrase is known there."""
        import torch

        from txcls.tap import trace

        start = {tap: torch.zeros_like(values) for tap, values in self.given.items()}
        if kind == "unknown":
            words = torch.tensor([not token.is_special for token in self.traced.tokens])  # T
            with trace(record=["embeddings.out"]) as opened:
                self.classifier.logits(torch.where(words, UNK, self.ids))
            start["embeddings.out"] = opened["embeddings.out"][0].clone()  # T D
        return start


def _put(values: "Tensor", _: "Tensor") -> "Tensor":
    return values


def gradient_x_input(classifier: Classifier, text: str, *, target: Target = "logit") -> Floats:
    """Score of each token, (T,): the target's gradient by what the first layer reads of it, times that itself.

    Shrikumar et al. 2016, https://arxiv.org/abs/1605.01713. The target is the winning class's logit, or its calibrated
    probability, which hardly moves where the model is sure; what the first layer reads is the sum of the vectors of
    token, bigram and position. Where phrases vote, so do their votes count, a phrase's shared by its tokens evenly.

    Raises:
        TraceError: the text holds no token to read.
    """
    return _gradient_x_input(_Asked(classifier, trace_text(classifier, text), target))


def _gradient_x_input(asked: _Asked) -> Floats:
    slopes = asked.gradient({tap: values[None] for tap, values in asked.given.items()})
    scores = np.zeros(len(asked.traced.tokens))  # T
    for tap, values in asked.given.items():
        scores += (slopes[tap][0] * values).double().sum(dim=-1).numpy()
    return scores


def integrated_gradients(
    classifier: Classifier,
    text: str,
    *,
    target: Target = "logit",
    baseline: Baseline = "unknown",
    steps: int = 32,
) -> IntegratedGradients:
    """Gradient times input, averaged along the straight way from a baseline to the text.

    Sundararajan et al. 2017, https://arxiv.org/abs/1703.01365, equation 1, with the Gauss-Legendre rule; all steps in
    one batched pass.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        target: the winning class's logit, or its calibrated probability.
        baseline: a text of as many unknown words ("unknown"), or zeros ("zero"), for what the first layer reads; no
            phrase votes in either.
        steps: points along the way.

    Raises:
        TraceError: the text holds no token to read.
        ValueError: `steps` is below 1.
    """
    return _integrated_gradients(_Asked(classifier, trace_text(classifier, text), target), baseline, steps)


def _integrated_gradients(asked: _Asked, baseline: Baseline, steps: int) -> IntegratedGradients:
    import torch

    if steps < 1:
        raise ValueError(f"got steps = {steps}; wanted at least 1")
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    at = torch.from_numpy((nodes + 1) / 2).float()[:, None, None]  # S 1 1: from 0 to 1
    start = asked.baseline(baseline)
    slopes = asked.gradient({tap: start[tap] + at * (end - start[tap]) for tap, end in asked.given.items()})  # S T …
    scores = torch.zeros(len(asked.traced.tokens), dtype=torch.float64)  # T
    for tap, end in asked.given.items():
        mean = torch.einsum("s,std->td", torch.from_numpy(weights / 2), slopes[tap].double())  # T D, or T C
        scores += (mean * (end - start[tap]).double()).sum(dim=-1)  # T
    with torch.no_grad():
        both = asked.of_points({tap: torch.stack([end, start[tap]]) for tap, end in asked.given.items()})
    value, baseline_value = both.tolist()
    return IntegratedGradients(scores.numpy(), value, baseline_value)


def leave_one_out(classifier: Classifier, text: str, *, target: Target = "logit") -> Floats:
    """Score of each word, (W,), special tokens left out: by how much the target falls when the word is not there.

    Its neighbours move together (Li et al. 2016, https://arxiv.org/abs/1612.08220). All words in one batched pass.

    Raises:
        TraceError: the text holds no token to read.
    """
    return _leave_one_out(_Asked(classifier, trace_text(classifier, text), target))


def _leave_one_out(asked: _Asked) -> Floats:
    values = asked.without([set(), *({int(word)} for word in _words(asked.traced))])
    scores: Floats = values[0] - values[1:]
    return scores


def _words(traced: TracedText) -> NDArray[np.intp]:
    """The places of the tokens that are words, W of them."""
    return np.flatnonzero([not token.is_special for token in traced.tokens])


def logits_without(classifier: Classifier, ids: Sequence[int], removed: Sequence[Set[int]]) -> "Tensor":
    """Logits (n, C) of ids (T,) without those at each of n sets of places; of nothing but an unknown token where none
    is left.

    Texts of the same length share a pass, so that none needs padding, as many as `texts_together` says.
    """
    import torch

    rows = [[one for place, one in enumerate(ids) if place not in gone] or [UNK] for gone in removed]
    by_length: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(number)
    logits = torch.zeros(len(rows), len(classifier.classes))  # n C
    for numbers in by_length.values():
        together = texts_together(len(rows[numbers[0]]))
        for first in range(0, len(numbers), together):
            some = numbers[first : first + together]
            logits[some] = classifier.logits(torch.tensor([rows[number] for number in some]))
    return logits


@dataclass(frozen=True)
class Explanation:
    """All five ways to score the W words of one text, for the class `label` that wins.

    Attributes:
        words: the tokens that were typed; those that the model adds have no part in it.
        scores: method to (W,).
        elsewhere: method to what falls on the tokens that the model adds.
        integrated: integrated gradients over all tokens, with what it compares.
    """

    label: str
    target: Target
    baseline: Baseline
    words: tuple[Token, ...]
    scores: Mapping[str, Floats]
    elsewhere: Mapping[str, float]
    integrated: IntegratedGradients


def explain(
    classifier: Classifier,
    text: str,
    *,
    target: Target = "logit",
    baseline: Baseline = "unknown",
    steps: int = 32,
) -> Explanation:
    """Score the words of a text in every way of `METHODS`.

    Attention (the last layer's patterns, mean of the heads) and rollout are read where the text's vector is: each
    token's row counts as much as the token does in pooling.

    Args, Raises: as `integrated_gradients`.
    """
    asked = _Asked(classifier, trace_text(classifier, text), target)
    traced = asked.traced
    counted = read_out(traced).astype(np.float64)  # T
    integrated = _integrated_gradients(asked, baseline, steps)
    of_tokens = {
        "attention": counted @ traced.attention[-1].mean(axis=0),
        "rollout": counted @ attention_rollout(traced.attention),
        "gradient": _gradient_x_input(asked),
        "integrated": integrated.scores,
    }
    words = _words(traced)
    scores = {name: values[words] for name, values in of_tokens.items()}
    return Explanation(
        label=str(traced.prediction.label),
        target=target,
        baseline=baseline,
        words=tuple(traced.tokens[place] for place in words),
        scores={**scores, "leave_one_out": _leave_one_out(asked)},
        elsewhere={name: float(values.sum() - scores[name].sum()) for name, values in of_tokens.items()},
        integrated=integrated,
    )


def rank_correlations(scores: Mapping[str, Floats]) -> Floats:
    """Spearman's rank correlation of every two methods, (M, M), over how strongly they score each word.

    Strength is the score's magnitude, whichever way it points, so that attention, which has no sign, can be compared.
    NaN where a method scores all words alike, or there is one word only.

    Args:
        scores: M methods to (W,).
    """
    from scipy.stats import rankdata  # comes with scikit-learn

    # Differences in the last digits, which depend on the machine, are no order.
    strengths = [np.abs(values) / max(float(np.abs(values).max(initial=0.0)), 1e-12) for values in scores.values()]
    ranks = np.stack([rankdata(strength.round(6)) for strength in strengths])  # M W
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1)
    lengths[lengths == 0] = np.nan
    correlations: Floats = np.clip(centred @ centred.T / np.outer(lengths, lengths), -1.0, 1.0)
    return correlations


@dataclass(frozen=True)
class DeletionCurves:
    """The winning class's probability while words are taken out of the text, the highest scored first.

    Attributes:
        shares: (K,) of the words that are gone, from 0 to 1.
        curves: method to (K,) probabilities.
        random: (R, K), the same for R random orders.
        areas: method to the area under its curve. Smaller means that what was taken out first mattered more.
        random_area: the mean of those of the random orders.
    """

    shares: Floats
    curves: Mapping[str, Floats]
    random: Floats
    areas: Mapping[str, float]
    random_area: float


def deletion_curves(
    classifier: Classifier,
    text: str,
    scores: Mapping[str, Floats],
    *,
    n_random: int = 10,
    seed: int = 0,
    most_steps: int = 24,
) -> DeletionCurves:
    """Take words out in each method's order, and in random ones (Samek et al. 2017, DeYoung et al. 2020).

    Their neighbours move together; where none is left, one unknown token stands for the empty text.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        scores: method to (W,), as `explain` gives them; equal ones go from left to right.
        n_random: random orders, R.
        seed: of these.
        most_steps: longer texts lose several words at a time.

    Raises:
        TraceError: the text holds no token to read.
        ValueError: scores are not one for each word, or `n_random` is below 1.
    """
    asked = _Asked(classifier, trace_text(classifier, text), "probability")
    words = _words(asked.traced)
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
class ExplanationAverages:
    """What the five methods come to on `n` texts of a split.

    Attributes:
        areas: method to the mean area under its deletion curve.
        random_area: the mean of random orders.
        correlations: (M, M) mean rank correlations, of the texts on which they are defined; NaN where there is none.
        completeness_error: mean of that of integrated gradients, in logits.
    """

    split: str
    n: int
    areas: Mapping[str, float]
    random_area: float
    correlations: Floats
    completeness_error: float

    @classmethod
    def of(cls, classifier: Classifier) -> "ExplanationAverages | None":
        """Those that the checkpoint keeps; None where it has none, or none of these methods."""
        try:
            kept = classifier.checkpoint.metrics["explanations"]
            areas = {name: float(kept["areas"][name]) for name in METHODS}
            rows = [[np.nan if one is None else float(one) for one in row] for row in kept["correlations"]]
            correlations = np.array(rows)
            found = cls(
                str(kept["split"]),
                int(kept["n"]),
                areas,
                float(kept["random_area"]),
                correlations,
                float(kept["completeness_error"]),
            )
        except (KeyError, TypeError, ValueError):
            return None
        return found if correlations.shape == (len(METHODS), len(METHODS)) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, rounded to six places: what stands under `metrics["explanations"]`."""
        return {
            "split": self.split,
            "n": self.n,
            "areas": {name: round(area, 6) for name, area in self.areas.items()},
            "random_area": round(self.random_area, 6),
            "correlations": [
                [None if np.isnan(one) else round(float(one), 6) for one in row] for row in self.correlations
            ],
            "completeness_error": round(self.completeness_error, 8),
        }


@dataclass(frozen=True)
class ExplanationFigures:
    """One text's part in `ExplanationAverages`."""

    curves: DeletionCurves
    correlations: Floats
    completeness_error: float


def explanation_figures(classifier: Classifier, text: str) -> ExplanationFigures:
    """Score one text's words for the winning class's logit, and judge the five methods on it.

    Raises:
        TraceError: the text holds no token to read.
    """
    explained = explain(classifier, text)
    return ExplanationFigures(
        curves=deletion_curves(classifier, text, explained.scores),
        correlations=rank_correlations(explained.scores),
        completeness_error=explained.integrated.completeness_error,
    )


def average_explanations(figures: Sequence[ExplanationFigures], *, split: str) -> ExplanationAverages:
    """The mean over texts.

    Raises:
        ValueError: there is none.
    """
    if not figures:
        raise ValueError("got no text; an average needs at least one")
    stack = np.stack([one.correlations for one in figures])  # n M M
    counted = np.isfinite(stack).sum(axis=0)  # M M
    return ExplanationAverages(
        split=split,
        n=len(figures),
        areas={name: float(np.mean([one.curves.areas[name] for one in figures])) for name in METHODS},
        random_area=float(np.mean([one.curves.random_area for one in figures])),
        correlations=np.where(counted > 0, np.nansum(stack, axis=0) / np.maximum(counted, 1), np.nan),
        completeness_error=float(np.mean([one.completeness_error for one in figures])),
    )


def draw_rows(texts: Sequence[str], *, n: int, seed: int = 0) -> list[str]:
    """`n` different texts in random order, or all where there are fewer; the same seed draws the same."""
    places = np.random.default_rng(seed).permutation(len(texts))[:n]
    return [texts[int(place)] for place in places]
