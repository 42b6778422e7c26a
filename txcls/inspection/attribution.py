"""Which words led to the answer? Methods that score the words of a text, and how good their explanations are.

`explain` scores the words of one text, `deletion_curves` and `top_overlaps` evaluate the methods on it, and
`measure_explanations` does so on many test texts. Whether attention is an explanation was argued by Jain & Wallace 2019
(https://aclanthology.org/N19-1357) and Wiegreffe & Pinter 2019 (https://aclanthology.org/D19-1002), both on recurrent
models.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.config import ModelConfig
from txcls.data.datasets import open_dataset
from txcls.errors import shown
from txcls.inspection.attention import attention_rollout, readout_weights
from txcls.inspection.random_texts import random_texts
from txcls.inspection.tracing import TracedText, texts_together, trace_text
from txcls.predictor import Predictor
from txcls.runtime.pause import may_pause
from txcls.tap import trace
from txcls.text.encoder import Token

ACTIVATION_BYTES = 64 << 20
"""Memory for what a backward pass keeps of its texts; a pass holds at least one."""
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
        """The absolute difference between the sum of `scores` and `value - baseline_value`."""
        return abs(float(self.scores.sum()) - (self.value - self.baseline_value))


def activation_bytes(model: ModelConfig) -> int:
    """About how many bytes of activations a token takes in a forward pass that is traced or differentiated."""
    return 4 * model.n_layers * (14 * model.d_model + 2 * model.d_ff)


def methods_of(classifier: Predictor) -> tuple[str, ...]:
    """The keys of the methods that this classifier has."""
    pools = classifier.checkpoint.config.model.pooling == "attention"
    return tuple(name for name in METHODS if pools or name != "pooling")


class TargetFunction:
    """The target of one text, the winning class's logit or probability, as a function of the first layer's input.

    `input` (T, D) is that input for the text.
    """

    def __init__(self, classifier: Predictor, traced: TracedText, target: Target) -> None:
        self.classifier, self.traced, self.target = classifier, traced, target
        self.ids = torch.tensor([[token.id for token in traced.tokens]])  # 1 T
        self.index = classifier.classes.index(str(traced.prediction.label))
        self.input = torch.from_numpy(traced.values["embeddings.out"])  # T D

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
        model = self.classifier.checkpoint.config.model
        for part in points.split(max(1, ACTIVATION_BYTES // (activation_bytes(model) * self.ids.shape[1]))):
            may_pause()
            with torch.enable_grad():
                leaves = part.detach().requires_grad_()
                # The gradient of the points only: parameters are shared by all threads and must not collect any.
                [slope] = torch.autograd.grad(self.of_points(leaves).sum(), leaves)
                slopes.append(slope)
        return torch.cat(slopes)

    def baseline(self, kind: Baseline) -> Tensor:
        """The baseline, (T, D)."""
        if kind == "zero":
            return torch.zeros_like(self.input)
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


def _gradient_x_input(target_function: TargetFunction) -> Floats:
    slope = target_function.gradient(target_function.input[None])[0]  # T D
    scores: Floats = (slope * target_function.input).double().sum(dim=-1).numpy()  # T
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


def _integrated_gradients(target_function: TargetFunction, baseline: Baseline, steps: int) -> IntegratedGradients:
    if steps < 1:
        raise ValueError(f"got steps = {steps}; wanted at least 1")
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    at = torch.from_numpy((nodes + 1) / 2).float()[:, None, None]  # S 1 1: from 0 to 1
    start, end = target_function.baseline(baseline), target_function.input  # T D each
    slopes = target_function.gradient(start + at * (end - start))  # S T D
    mean = torch.einsum("s,std->td", torch.from_numpy(weights / 2), slopes.double())  # T D
    scores = (mean * (end - start).double()).sum(dim=-1)  # T
    with torch.no_grad():
        value, baseline_value = target_function.of_points(torch.stack([end, start])).tolist()
    return IntegratedGradients(scores.numpy(), value, baseline_value)


def leave_one_out(classifier: Predictor, text: str, *, target: Target = "logit") -> Floats:
    """Score of each word, (W,), without special tokens: by how much the target falls when the word is removed.

    The rest of the text closes the gap (Li et al. 2016, https://arxiv.org/abs/1612.08220). One batched pass.

    Raises:
        TraceError: the text holds no token to read.
    """
    return _leave_one_out(TargetFunction(classifier, trace_text(classifier, text), target))


def _leave_one_out(target_function: TargetFunction) -> Floats:
    values = target_function.without([set(), *({int(word)} for word in word_positions(target_function.traced))])
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
    rows = [
        [token_id for place, token_id in enumerate(ids) if place not in left_out] or [blank] for left_out in removed
    ]
    by_length: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(number)
    logits = torch.zeros(len(rows), len(classifier.classes))  # n C
    for numbers in by_length.values():
        together = texts_together(len(rows[numbers[0]]))
        for first in range(0, len(numbers), together):
            batch = numbers[first : first + together]
            logits[batch] = classifier.logits(torch.tensor([rows[number] for number in batch]))
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
    traced = trace_text(classifier, text, record=["embeddings.out", "layers.*.attn.pattern", "pool.pattern"])
    target_function = TargetFunction(classifier, traced, target)
    queries = readout_weights(traced).astype(np.float64)  # T
    integrated = _integrated_gradients(target_function, baseline, steps) if "integrated" in methods else None
    of_tokens: dict[str, Floats] = {}
    if "attention" in methods:
        of_tokens["attention"] = queries @ traced.attention[-1].mean(axis=0)
    if "rollout" in methods:
        of_tokens["rollout"] = queries @ attention_rollout(traced.attention)
    if "pooling" in methods:
        of_tokens["pooling"] = queries
    if "gradient" in methods:
        of_tokens["gradient"] = _gradient_x_input(target_function)
    if integrated is not None:
        of_tokens["integrated"] = integrated.scores
    words = word_positions(traced)
    scores = {name: values[words] for name, values in of_tokens.items()}
    elsewhere = {name: float(values.sum() - scores[name].sum()) for name, values in of_tokens.items()}
    if "leave_one_out" in methods:
        scores["leave_one_out"] = _leave_one_out(target_function)
    return Explanation(
        label=str(traced.prediction.label),
        target=target,
        baseline=baseline,
        words=tuple(traced.tokens[place] for place in words),
        scores=scores,
        elsewhere=elsewhere,
        _integrated=integrated,
    )


MAX_TOP = 3
"""Most words of a text that are compared between methods."""


def n_top(n_words: int) -> int:
    """How many words of a text are compared: three, at most a third of them, at least one."""
    return max(1, min(MAX_TOP, n_words // 3))


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
    target_function = TargetFunction(classifier, trace_text(classifier, text, record=["embeddings.out"]), "probability")
    words = word_positions(target_function.traced)
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
    values = target_function.without(removed).reshape(len(orders), len(steps))
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


@dataclass(frozen=True)
class ExplanationAverages:
    """The methods on `n` texts of a split.

    Attributes:
        areas: each of M methods to the mean area under its deletion curve.
        random_area: the mean area of random orders.
        overlaps: (M, M) of `top_overlaps`, each averaged over the texts where it is defined; NaN if there is none.
        chance: the mean overlap of two random choices of words.
        completeness_error: mean error of integrated gradients, in logits.
    """

    split: str
    n: int
    areas: Mapping[str, float]
    random_area: float
    overlaps: Floats
    chance: float
    completeness_error: float

    @classmethod
    def of(cls, classifier: Predictor) -> "ExplanationAverages | None":
        """The averages saved with the checkpoint; None if there are none, or none of its methods."""
        try:
            stored = classifier.checkpoint.metrics["explanations"]
            areas = {name: float(stored["areas"][name]) for name in methods_of(classifier)}
            rows = [[np.nan if overlap is None else float(overlap) for overlap in row] for row in stored["overlaps"]]
            overlaps = np.array(rows)
            averages = cls(
                str(stored["split"]),
                int(stored["n"]),
                areas,
                float(stored["random_area"]),
                overlaps,
                float(stored["chance"]),
                float(stored["completeness_error"]),
            )
        except (KeyError, TypeError, ValueError):
            return None
        return averages if overlaps.shape == (len(areas), len(areas)) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, rounded to six places, for `metrics["explanations"]`."""
        return {
            "split": self.split,
            "n": self.n,
            "areas": {name: round(area, 6) for name, area in self.areas.items()},
            "random_area": round(self.random_area, 6),
            "overlaps": [
                [None if np.isnan(overlap) else round(float(overlap), 6) for overlap in row] for row in self.overlaps
            ],
            "chance": round(self.chance, 6),
            "completeness_error": round(self.completeness_error, 8),
        }


def average_explanations(evaluations: Sequence[ExplanationEvaluation], *, split: str) -> ExplanationAverages:
    """The mean over texts.

    Raises:
        ValueError: there is none.
    """
    if not evaluations:
        raise ValueError("got no text; an average needs at least one")
    names = evaluations[0].curves.areas
    stack = np.stack([each.overlaps for each in evaluations])  # n M M
    counted = np.isfinite(stack).sum(axis=0)  # M M
    return ExplanationAverages(
        split=split,
        n=len(evaluations),
        areas={name: float(np.mean([each.curves.areas[name] for each in evaluations])) for name in names},
        random_area=float(np.mean([each.curves.random_area for each in evaluations])),
        overlaps=np.where(counted > 0, np.nansum(stack, axis=0) / np.maximum(counted, 1), np.nan),
        chance=float(np.mean([each.chance for each in evaluations])),
        completeness_error=float(np.mean([each.completeness_error for each in evaluations])),
    )


def measure_explanations(
    classifier: Predictor,
    *,
    n: int = 200,
    data_path: Path | None = None,
    on_text: Callable[[int, int], None] | None = None,
) -> ExplanationAverages:
    """The methods evaluated on `n` random test texts, always the same ones.

    Args:
        classifier: nothing in it is changed.
        n: how many texts; those without a token are left out.
        data_path: folder or file in the data set's published format; None for where `open_dataset` looks.
        on_text: called after each text with how many are done, and of how many.

    Raises:
        DataError: the data are missing, or have no test split.
        ValueError: no text holds a token, or `n` is below 1.
    """
    texts = random_texts(open_dataset(classifier.checkpoint.config.data, path=data_path).load("test").texts, n=n)
    evaluations = []
    for place, text in enumerate(texts, start=1):
        if classifier.encoder.encode(text).has_words:
            evaluations.append(evaluate_explanation(classifier, text))
        if on_text is not None:
            on_text(place, len(texts))
    return average_explanations(evaluations, split="test")


def with_explanations(checkpoint: Checkpoint, averages: ExplanationAverages) -> Checkpoint:
    """A copy of the checkpoint with the results of `measure_explanations` in its record."""
    return replace(checkpoint, metrics={**checkpoint.metrics, "explanations": averages.to_dict()})
