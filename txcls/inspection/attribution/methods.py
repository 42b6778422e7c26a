"""Methods that score the words of a text: last-layer attention, rollout, pooling attention, gradient times input,
integrated gradients, leave one out."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.errors import shown
from txcls.inspection.attention import attention_rollout, readout_weights
from txcls.inspection.tracing import TracedText, texts_together, trace_text
from txcls.predictor import Predictor
from txcls.runtime.pause import may_pause
from txcls.tap import trace
from txcls.text.encoder import Token

Target = Literal["logit", "probability"]
Baseline = Literal["blank", "zero"]
Floats = NDArray[np.float64]

METHODS = {
    "attention": "Last-layer attention",
    "rollout": "Attention rollout",
    "pooling": "Pooling attention",
    "gradient": "Gradient × input",
    "integrated": "Integrated gradients",
    "leave_one_out": "Leave one out",
}
"""Key to name. Only models that pool by attention have pooling attention."""
SIGNED = ("gradient", "integrated", "leave_one_out")
"""Those with positive scores for words that support the class and negative ones for words against it; attention has no
sign."""


@dataclass(frozen=True)
class IntegratedGradients:
    """`scores` (T,) of all tokens.

    In exact arithmetic they sum to `value`, the target of the text, minus `baseline_value`, that of the baseline
    (completeness); `completeness_error` is due to the finite number of steps.
    """

    scores: Floats
    value: float
    baseline_value: float

    @property
    def completeness_error(self) -> float:
        """The difference between both, never negative."""
        return abs(float(self.scores.sum()) - (self.value - self.baseline_value))


def methods_of(classifier: Predictor) -> tuple[str, ...]:
    """The keys of the methods that this classifier has."""
    pools = classifier.checkpoint.config.model.pooling == "attention"
    return tuple(name for name in METHODS if pools or name != "pooling")


class TargetFunction:
    """The target of one text, the winning class's logit or probability, as a function of the first layer's input.

    `given` (T, D) is that input for the text.
    """

    def __init__(self, classifier: Predictor, traced: TracedText, target: Target) -> None:
        self.classifier, self.traced, self.target = classifier, traced, target
        self.ids = torch.tensor([[token.id for token in traced.tokens]])  # 1 T
        self.index = classifier.classes.index(str(traced.prediction.label))
        self.given = torch.from_numpy(traced.values["embeddings.out"])  # T D

    def of_logits(self, logits: Tensor) -> Tensor:
        """The winner's logit, or its calibrated probability, (B,), of logits (B, C)."""
        exact = logits.double()  # B C
        if self.target == "probability":
            # `txcls.checkpoint.probabilities.calibrated_probabilities` in torch, for its gradient.
            calibration = self.classifier.checkpoint.calibration
            surprisal = -exact.log_softmax(-1).clamp(max=-1e-12)  # B C
            exact = (-((surprisal / calibration.temperature) ** calibration.power)).softmax(-1)  # B C
        return exact[:, self.index]

    def without(self, removed: Sequence[Set[int]]) -> Floats:
        """The target (n,) of the text without the tokens at each of n sets of positions."""
        ids = [token.id for token in self.traced.prediction.tokens]  # without the padding of models that pad all texts
        values: Floats = self.of_logits(logits_without(self.classifier, ids, removed)).numpy()
        return values

    def of_points(self, points: Tensor) -> Tensor:
        """The target (S,) with each of S points (S, T, D) as the first layer's input."""
        with trace(record=(), edit={"embeddings.out": lambda _: points}):
            logits = self.classifier.checkpoint.model(self.ids.expand(len(points), -1))  # S C
        return self.of_logits(logits)

    def gradient(self, points: Tensor) -> Tensor:
        """The target's gradient (S, T, D) at S points; the points of a long text take several passes."""
        slopes = []
        for some in points.split(texts_together(self.ids.shape[1])):
            may_pause()
            with torch.enable_grad():
                leaves = some.detach().requires_grad_()
                # The gradient of the points only: parameters are shared by all threads and must not collect any.
                [slope] = torch.autograd.grad(self.of_points(leaves).sum(), leaves)
                slopes.append(slope)
        return torch.cat(slopes)

    def baseline(self, kind: Baseline) -> Tensor:
        """The baseline, (T, D)."""
        if kind == "zero":
            return torch.zeros_like(self.given)
        words = torch.tensor([not token.is_special for token in self.traced.tokens])  # T
        with trace(record=["embeddings.out"]) as opened:
            self.classifier.logits(torch.where(words, self.classifier.encoder.blank, self.ids))
        return opened["embeddings.out"][0].clone()  # T D


def gradient_x_input(classifier: Predictor, text: str, *, target: Target = "logit") -> Floats:
    """Score of each token, (T,): the first layer's input for it, times the gradient of the target with respect to that.

    Shrikumar et al. 2016, https://arxiv.org/abs/1605.01713. The target is the winning class's logit, or its calibrated
    probability, whose gradient vanishes where the model is certain. The input is the sum of the vectors of token and
    position.

    Raises:
        TraceError: the text holds no token to read.
    """
    return _gradient_x_input(TargetFunction(classifier, trace_text(classifier, text), target))


def _gradient_x_input(asked: TargetFunction) -> Floats:
    slope = asked.gradient(asked.given[None])[0]  # T D
    scores: Floats = (slope * asked.given).double().sum(dim=-1).numpy()  # T
    return scores


def integrated_gradients(
    classifier: Predictor,
    text: str,
    *,
    target: Target = "logit",
    baseline: Baseline = "blank",
    steps: int = 32,
) -> IntegratedGradients:
    """Gradient times input, with the gradient averaged along the straight line from a baseline to the text.

    Sundararajan et al. 2017, https://arxiv.org/abs/1703.01365, equation 1, by Gauss-Legendre quadrature in one batched
    pass.

    Args:
        classifier: nothing in it is changed.
        text: at least one token long.
        target: the winning class's logit, or its calibrated probability.
        baseline: what the first layer reads there: as many blank tokens ("blank", `TextEncoder.blank`), or zeros
            ("zero").
        steps: points on the line.

    Raises:
        TraceError: the text holds no token to read.
        ValueError: `steps` is below 1.
    """
    return _integrated_gradients(TargetFunction(classifier, trace_text(classifier, text), target), baseline, steps)


def _integrated_gradients(asked: TargetFunction, baseline: Baseline, steps: int) -> IntegratedGradients:
    if steps < 1:
        raise ValueError(f"got steps = {steps}; wanted at least 1")
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    at = torch.from_numpy((nodes + 1) / 2).float()[:, None, None]  # S 1 1: from 0 to 1
    start, end = asked.baseline(baseline), asked.given  # T D each
    slopes = asked.gradient(start + at * (end - start))  # S T D
    mean = torch.einsum("s,std->td", torch.from_numpy(weights / 2), slopes.double())  # T D
    scores = (mean * (end - start).double()).sum(dim=-1)  # T
    with torch.no_grad():
        value, baseline_value = asked.of_points(torch.stack([end, start])).tolist()
    return IntegratedGradients(scores.numpy(), value, baseline_value)


def leave_one_out(classifier: Predictor, text: str, *, target: Target = "logit") -> Floats:
    """Score of each word, (W,), without special tokens: by how much the target falls when the word is removed.

    The rest of the text closes the gap (Li et al. 2016, https://arxiv.org/abs/1612.08220). One batched pass.

    Raises:
        TraceError: the text holds no token to read.
    """
    return _leave_one_out(TargetFunction(classifier, trace_text(classifier, text), target))


def _leave_one_out(asked: TargetFunction) -> Floats:
    values = asked.without([set(), *({int(word)} for word in word_positions(asked.traced))])
    scores: Floats = values[0] - values[1:]
    return scores


def word_positions(traced: TracedText) -> NDArray[np.intp]:
    """The positions of the W tokens that are words."""
    return np.flatnonzero([not token.is_special for token in traced.tokens])


def logits_without(classifier: Predictor, ids: Sequence[int], removed: Sequence[Set[int]]) -> Tensor:
    """Logits (n, C) of ids (T,) without those at each of n sets of positions; of one blank token where none is left.

    Texts of the same length share passes of at most `texts_together`, so that none needs padding.
    """
    blank = classifier.encoder.blank
    rows = [[one for place, one in enumerate(ids) if place not in gone] or [blank] for gone in removed]
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


@dataclass(frozen=True, repr=False)
class Explanation:
    """The scores that methods give the W words of one text for the winning class `label`.

    Attributes:
        words: the tokens that were typed, without those that the model adds.
        scores: method to (W,).
        elsewhere: method to the sum of the scores of the tokens that the model adds.
    """

    label: str
    target: Target
    baseline: Baseline
    words: tuple[Token, ...]
    scores: Mapping[str, Floats]
    elsewhere: Mapping[str, float]
    _integrated: IntegratedGradients | None

    @property
    def integrated(self) -> IntegratedGradients:
        """Integrated gradients of all tokens, with the values they should sum to.

        Raises:
            ValueError: the method was not asked for.
        """
        if self._integrated is None:
            raise ValueError(f"integrated gradients were not computed, only {', '.join(self.scores)}")
        return self._integrated

    def __repr__(self) -> str:
        """A line for each word with its score by each method."""
        names = [shown(token.label, limit=30) for token in self.words]
        width = max(map(len, names))
        columns = {method: max(len(method), 8) for method in self.scores}
        lines = [f"Explanation of '{shown(self.label, limit=60)}' by {self.target}", " " * width]
        lines[1] += "".join(f"  {method:>{columns[method]}}" for method in self.scores)
        for place, name in enumerate(names):
            line = f"{name:<{width}}"
            for method, values in self.scores.items():
                written = f"{values[place]:+.3f}" if method in SIGNED else f"{values[place]:.3f}"
                line += f"  {written:>{columns[method]}}"
            lines.append(line)
        return "\n".join(lines)


def explain(
    classifier: Predictor,
    text: str,
    *,
    target: Target = "logit",
    baseline: Baseline = "blank",
    steps: int = 32,
    methods: Collection[str] | None = None,
) -> Explanation:
    """Score the words of a text by methods of `methods_of(classifier)`, all of them unless `methods` names some.

    Attention (the mean of the last layer's heads) and rollout have one row per query. The rows are averaged with the
    weights that pooling gives the queries. Pooling attention is those weights themselves.

    Args, Raises: as `integrated_gradients`; ValueError for a method or target that there is not.
    """
    available = methods_of(classifier)
    methods = available if methods is None else methods
    if unknown := [method for method in methods if method not in available]:
        raise ValueError(f"got the method {unknown[0]!r}; wanted one of {', '.join(available)}")
    if target not in get_args(Target):
        raise ValueError(f"got the target {target!r}; wanted one of {', '.join(get_args(Target))}")
    asked = TargetFunction(classifier, trace_text(classifier, text), target)
    traced = asked.traced
    queries = readout_weights(traced).astype(np.float64)  # T
    integrated = _integrated_gradients(asked, baseline, steps) if "integrated" in methods else None
    of_tokens: dict[str, Floats] = {}
    if "attention" in methods:
        of_tokens["attention"] = queries @ traced.attention[-1].mean(axis=0)
    if "rollout" in methods:
        of_tokens["rollout"] = queries @ attention_rollout(traced.attention)
    if "pooling" in methods:
        of_tokens["pooling"] = queries
    if "gradient" in methods:
        of_tokens["gradient"] = _gradient_x_input(asked)
    if integrated is not None:
        of_tokens["integrated"] = integrated.scores
    words = word_positions(traced)
    scores = {name: values[words] for name, values in of_tokens.items()}
    elsewhere = {name: float(values.sum() - scores[name].sum()) for name, values in of_tokens.items()}
    if "leave_one_out" in methods:
        scores["leave_one_out"] = _leave_one_out(asked)
    return Explanation(
        label=str(traced.prediction.label),
        target=target,
        baseline=baseline,
        words=tuple(traced.tokens[place] for place in words),
        scores=scores,
        elsewhere=elsewhere,
        _integrated=integrated,
    )
