"""How do methods score the words of a text? With tests of how faithful the scores are.

Jain & Wallace 2019 (https://aclanthology.org/N19-1357) and Wiegreffe & Pinter 2019
(https://aclanthology.org/D19-1002) debate whether attention is an explanation; both studied recurrent models.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.checkpoint.card import card_part
from txcls.checkpoint.json_files import round_numbers, validate
from txcls.checkpoint.probabilities import temperatures
from txcls.config import ModelConfig
from txcls.errors import CheckpointError, sanitize
from txcls.evaluation.metrics import RESAMPLES
from txcls.inference.interrupts import may_pause
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import attention_rollout, readout_weights
from txcls.inspection.tracing import TracedText, max_texts_per_batch, trace_text
from txcls.tap import trace
from txcls.text.formatting import decimals, percentage
from txcls.text.tokens import Token

ACTIVATION_BYTES = 64 << 20
"""Memory budget for the activations of a backward pass; a pass of one text may exceed it."""
Target = Literal["logit", "probability"]
Baseline = Literal["blank", "zero"]
Floats = NDArray[np.float64]

METHODS = {
    "rollout": "Attention rollout",
    "gradient": "Gradient × input",
    "integrated": "Integrated gradients",
    "leave_one_out": "Leave one out",
}
"""The names of the methods."""
SIGNED = ("gradient", "integrated", "leave_one_out")
"""Methods whose scores are positive for words that support the class and negative for words against it; attention has
no sign."""
MAX_LEFT_OUT = 96
"""Maximum number of removals in leave one out; in texts of more words, several neighbours are removed together."""


@dataclass(frozen=True)
class IntegratedGradients:
    """The result of integrated gradients: `scores` (T,) of all tokens, from gradients at `steps` points.

    Completeness: with infinitely many steps, the scores sum to `value`, the target for the text, minus
    `baseline_value`, the target for the baseline.
    """

    scores: Floats
    value: float
    baseline_value: float
    steps: int

    @property
    def completeness_error(self) -> float:
        """The absolute difference between the sum of `scores` and `value - baseline_value`."""
        return abs(float(self.scores.sum()) - (self.value - self.baseline_value))


def activation_bytes(model: ModelConfig) -> int:
    """Approximate bytes of activations per token in a forward pass that is traced or differentiated."""
    return 4 * model.n_layers * (14 * model.d_model + 2 * model.d_ff)


class TargetFunction:
    """The target of one text (the predicted class's logit or probability) as a function of the first layer's input.

    `input` (T, D) is the first layer's input for the text itself.
    """

    def __init__(self, classifier: Predictor, traced: TracedText, target: Target) -> None:
        self.classifier, self.traced, self.target = classifier, traced, target
        self.ids = torch.tensor([[token.id for token in traced.tokens]])  # 1 T
        self.index = classifier.classes.index(str(traced.prediction.label))
        self.input = torch.from_numpy(traced.values["embeddings.out"])  # T D

    def from_logits(self, logits: Tensor) -> Tensor:
        """The predicted class's logit or calibrated probability, (B,), from logits (B, C)."""
        values = logits.double()  # B C
        if self.target == "probability":
            # Like `txcls.checkpoint.probabilities.calibrated_probabilities`, but in torch, to get gradients.
            calibration = self.classifier.checkpoint.calibration
            [temperature] = temperatures(calibration, len(self.traced.prediction.tokens))
            surprisal = -values.log_softmax(-1).clamp(max=-1e-12)  # B C
            values = (-((surprisal / temperature) ** calibration.power)).softmax(-1)  # B C
        return values[:, self.index]

    def without_tokens(self, removed: Sequence[Set[int]]) -> Floats:
        """The target (n,) of the text with the tokens at each of n sets of positions removed."""
        ids = [token.id for token in self.traced.prediction.tokens]  # without padding to a fixed length
        values: Floats = self.from_logits(logits_without(self.classifier, ids, removed)).numpy()
        return values

    def at_points(self, points: Tensor) -> Tensor:
        """The target, (S,), for S inputs to the first layer, (S, T, D)."""
        with trace(record=(), edit={"embeddings.out": lambda _: points}):
            logits = self.classifier.checkpoint.model(self.ids.expand(len(points), -1))  # S C
        return self.from_logits(logits)

    def gradient(self, points: Tensor) -> Tensor:
        """The target's gradient (S, T, D) at S points, computed in several passes if the text is long."""
        gradients = []
        model = self.classifier.checkpoint.config.model
        for part in points.split(max(1, ACTIVATION_BYTES // (activation_bytes(model) * self.ids.shape[1]))):
            may_pause()
            with torch.enable_grad():
                leaves = part.detach().requires_grad_()
                # Not `backward`: it would also accumulate gradients in the parameters, which all threads share.
                gradients += torch.autograd.grad(self.at_points(leaves).sum(), leaves)
        return torch.cat(gradients)

    def baseline(self, kind: Baseline) -> Tensor:
        """The first layer's input for the baseline, (T, D)."""
        if kind == "zero":
            return torch.zeros_like(self.input)
        words = torch.tensor([not token.is_special for token in self.traced.tokens])  # T
        with trace(record=["embeddings.out"]) as activations:
            self.classifier.logits(torch.where(words, self.classifier.tokenizer.blank, self.ids))
        return activations["embeddings.out"][0].clone()  # T D


def gradient_x_input(target_function: TargetFunction) -> Floats:
    """Score of each token, (T,): the first layer's input at that token times the target's gradient with respect to it.

    Shrikumar et al. 2016, https://arxiv.org/abs/1605.01713. The input is the sum of the token and position vectors. The
    gradient of a probability vanishes where the probability is close to 0 or 1.
    """
    gradient = target_function.gradient(target_function.input[None])[0]  # T D
    scores: Floats = (gradient * target_function.input).double().sum(dim=-1).numpy()  # T
    return scores


MIN_STEPS, MAX_STEPS = 16, 1024
"""Initial number of points for integrated gradients, and the maximum, reached by doubling."""
MAX_ERROR = 0.01
"""Maximum completeness error, as a fraction of the difference that the scores should sum to."""


def integrated_gradients(target_function: TargetFunction, baseline: Baseline, steps: int | None) -> IntegratedGradients:
    """(Input - baseline) times the gradient, averaged over `steps` points on the line from the baseline to the text.

    Sundararajan et al. 2017, https://arxiv.org/abs/1703.01365, equation 1, by Gauss-Legendre quadrature. The baseline
    is the first layer's input for the same number of blank tokens ("blank", `Tokenizer.blank`), or zeros ("zero").
    If `steps` is None, it is doubled until the completeness error is below `MAX_ERROR` or it reaches `MAX_STEPS`.
    """
    if steps is None:
        steps = MIN_STEPS
        while True:
            result = integrated_gradients(target_function, baseline, steps)
            difference = abs(result.value - result.baseline_value)
            if result.completeness_error < MAX_ERROR * difference or steps >= MAX_STEPS:
                return result
            steps *= 2
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    fractions = torch.from_numpy((nodes + 1) / 2).float()[:, None, None]  # S 1 1: from 0 to 1
    start, end = target_function.baseline(baseline), target_function.input  # T D each
    gradients = target_function.gradient(start + fractions * (end - start))  # S T D
    mean = torch.einsum("s,std->td", torch.from_numpy(weights / 2), gradients.double())  # T D
    scores = (mean * (end - start).double()).sum(dim=-1)  # T
    with torch.no_grad():
        value, baseline_value = target_function.at_points(torch.stack([end, start])).tolist()
    return IntegratedGradients(scores.numpy(), value, baseline_value, steps)


def leave_one_out(target_function: TargetFunction) -> Floats:
    """Score of each token, (W,), without special tokens: how much the target falls when the token is removed.

    The remaining tokens close the gap (Li et al. 2016, https://arxiv.org/abs/1612.08220). In texts of more than
    `MAX_LEFT_OUT` tokens, runs of neighbours are removed, and each token of a run gets an equal share of the fall.
    """
    words = word_positions(target_function.traced)
    runs = np.array_split(words, min(len(words), MAX_LEFT_OUT))
    values = target_function.without_tokens([set(), *(set(run.tolist()) for run in runs)])
    scores: Floats = np.concatenate(
        [np.full(len(run), (values[0] - value) / len(run)) for run, value in zip(runs, values[1:], strict=True)]
    )
    return scores


def word_positions(traced: TracedText) -> NDArray[np.intp]:
    """The positions of the W tokens that are not special."""
    return np.flatnonzero([not token.is_special for token in traced.tokens])


def logits_without(classifier: Predictor, ids: Sequence[int], removed: Sequence[Set[int]]) -> Tensor:
    """Logits (n, C) of the ids (T,) without each of n sets of positions; if no id is left, one blank token is read.

    Only texts of equal length share a pass, so no padding is needed.
    """
    blank = classifier.tokenizer.blank
    rows = [
        [token_id for position, token_id in enumerate(ids) if position not in positions] or [blank]
        for positions in removed
    ]
    by_length: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        by_length.setdefault(len(row), []).append(number)
    logits = torch.zeros(len(rows), len(classifier.classes))  # n C
    for numbers in by_length.values():
        batch_size = max_texts_per_batch(len(rows[numbers[0]]))
        for first in range(0, len(numbers), batch_size):
            batch = numbers[first : first + batch_size]
            logits[batch] = classifier.logits(torch.tensor([rows[number] for number in batch]))
    return logits


@dataclass(frozen=True, repr=False)
class Explanation:
    """The scores that each method gives the W words of one text for the predicted class `label`.

    Attributes:
        words: the tokens of the text, without special tokens.
        scores: for each method, the scores of the words, (W,).
        integrated: integrated gradients of all tokens; None if the method was not requested.
    """

    label: str
    target: Target
    baseline: Baseline
    words: tuple[Token, ...]
    scores: Mapping[str, Floats]
    integrated: IntegratedGradients | None

    def __repr__(self) -> str:
        """A line per word with its score from each method."""
        names = [sanitize(token.label, limit=30) for token in self.words]
        width = max(map(len, names))
        columns = {method: max(len(method), 8) for method in self.scores}
        heading = " " * width + "".join(f"  {method:>{columns[method]}}" for method in self.scores)
        lines = [f"Explanation of '{sanitize(self.label, limit=60)}' by {self.target}", heading]
        for position, name in enumerate(names):
            numbers = (
                f"  {scores[position]:>{'+' if method in SIGNED else ''}{columns[method]}.3f}"
                for method, scores in self.scores.items()
            )
            lines.append(f"{name:<{width}}" + "".join(numbers))
        return "\n".join(lines)


def explain(
    classifier: Predictor,
    text: str,
    *,
    target: Target = "logit",
    baseline: Baseline = "blank",
    steps: int | None = None,
    methods: Collection[str] | None = None,
) -> Explanation:
    """Score the words of a text with all methods, or with those in `methods`.

    Rollout has one row per query; the rows are averaged with the pooling weights of the queries.

    Args:
        target: what all methods but rollout explain: the predicted class's logit or calibrated probability.
        baseline, steps: for integrated gradients; if `steps` is None, as many steps as completeness needs.

    Raises:
        TraceError: the text contains no word.
        ValueError: there is no such method or target.
    """
    methods = METHODS if methods is None else methods
    if unknown := [method for method in methods if method not in METHODS]:
        raise ValueError(f"got the method {unknown[0]!r}; expected one of {', '.join(METHODS)}")
    if target not in get_args(Target):
        raise ValueError(f"got the target {target!r}; expected one of {', '.join(get_args(Target))}")
    traced = trace_text(classifier, text, record=["embeddings.out", "layers.*.attn.pattern", "pool.pattern"])
    target_function = TargetFunction(classifier, traced, target)
    words = word_positions(traced)
    scores: dict[str, Floats] = {}
    integrated = None
    if "rollout" in methods:
        readout = readout_weights(traced, classifier.checkpoint.config.model).astype(np.float64)  # T
        rollout = readout @ attention_rollout(traced.attention)  # T
        scores["rollout"] = rollout[words]
    if "gradient" in methods:
        scores["gradient"] = gradient_x_input(target_function)[words]
    if "integrated" in methods:
        integrated = integrated_gradients(target_function, baseline, steps)
        scores["integrated"] = integrated.scores[words]
    if "leave_one_out" in methods:
        scores["leave_one_out"] = leave_one_out(target_function)
    tokens = tuple(traced.tokens[position] for position in words)
    return Explanation(str(traced.prediction.label), target, baseline, tokens, scores, integrated)


RANDOM_ORDERS = 10
"""Number of random orders that deletion curves are compared with."""


@dataclass(frozen=True)
class Deletion:
    """How many words must be deleted, highest score first, until the predicted class changes.

    `counts` has the number for each method, `random` the median over random orders; `n_words` + 1 means never.
    """

    n_words: int
    counts: Mapping[str, int]
    random: int


def delete_until_changed(classifier: Predictor, text: str, scores: Mapping[str, Floats]) -> Deletion:
    """Count the words to delete in the order of each method's `scores` (from `explain`), and in random orders.

    In texts of more than 24 words, several words are deleted at a time.

    Raises:
        TraceError: the text contains no word.
    """
    traced = trace_text(classifier, text, record=[])
    words = word_positions(traced)
    orders, steps = _deletion_orders(scores, len(words))
    ids = [token.id for token in traced.prediction.tokens]  # without padding to a fixed length
    removed = [set(words[order[:step]].tolist()) for order in orders for step in steps]
    classes = logits_without(classifier, ids, removed).argmax(-1).numpy().reshape(len(orders), len(steps))
    is_changed = classes != classes[0, 0]  # orders, K
    counts = np.where(is_changed.any(axis=1), steps[is_changed.argmax(axis=1)], len(words) + 1)
    of_methods = dict(zip(scores, counts.tolist(), strict=False))
    return Deletion(len(words), of_methods, int(np.median(counts[len(scores) :])))


def _deletion_orders(scores: Mapping[str, Floats], n_words: int) -> tuple[list[NDArray[np.intp]], NDArray[np.intp]]:
    """Orders of the words by each method's scores and at random, and the numbers of words to delete, (K,)."""
    random = np.random.default_rng(0)
    orders = [np.argsort(-values, kind="stable") for values in scores.values()]
    orders += [random.permutation(n_words) for _ in range(RANDOM_ORDERS)]
    return orders, np.unique(np.linspace(0, n_words, min(n_words, 24) + 1).round().astype(int))


@dataclass(frozen=True)
class DeletionAreas:
    """Areas under the curves of the predicted class's probability as words are removed, highest score first.

    Attributes:
        by_score: the area for each method; a smaller area means that the words removed first mattered more.
        by_magnitude: the same, with words removed by the magnitude of their scores, whether for or against the class.
        random: the mean over random orders.
    """

    by_score: Mapping[str, float]
    by_magnitude: Mapping[str, float]
    random: float


def measure_deletion(classifier: Predictor, text: str, scores: Mapping[str, Floats]) -> DeletionAreas:
    """Measure the areas for each method's order, and for random orders (Samek et al. 2017, DeYoung et al. 2020).

    `scores` come from `explain`; words with equal scores are removed from left to right. Once no word is left, the text
    is one blank token. In texts of more than 24 words, several words are removed at a time.

    Raises:
        TraceError: the text contains no word.
    """
    target_function = TargetFunction(classifier, trace_text(classifier, text, record=["embeddings.out"]), "probability")
    words = word_positions(target_function.traced)
    orders, steps = _deletion_orders(scores, len(words))
    has_signs = [name for name, values in scores.items() if (values < 0).any()]
    orders += [np.argsort(-np.abs(scores[name]), kind="stable") for name in has_signs]
    removed = [set(words[order[:step]].tolist()) for order in orders for step in steps]
    values = target_function.without_tokens(removed).reshape(len(orders), len(steps))
    areas = np.asarray(np.trapezoid(values, steps / len(words), axis=1)).tolist()
    n, n_before = len(scores), len(scores) + RANDOM_ORDERS
    by_score = dict(zip(scores, areas[:n], strict=True))
    by_magnitude = by_score | dict(zip(has_signs, areas[n_before:], strict=True))
    return DeletionAreas(by_score, by_magnitude, float(np.mean(areas[n:n_before])))


@dataclass(frozen=True)
class ExplanationAverages:
    """A comparison of the methods on `n` texts of a split.

    Attributes:
        areas: mean area under each method's deletion curves.
        random_area: mean area for random orders.
        areas_by_magnitude: like `areas`, with words removed by the magnitude of their scores.
        intervals: the `share_interval`, unless None, keyed by how words are removed: "by_score" or "by_magnitude".
    """

    split: str
    n: int
    areas: Mapping[str, float]
    random_area: float
    areas_by_magnitude: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, classifier: Predictor) -> "ExplanationAverages | None":
        """The averages stored in the checkpoint; None if there are none, or if a method is missing."""
        try:
            stored = validate(cls, classifier.checkpoint.metrics["explanations"], where="explanations")
        except (KeyError, CheckpointError):
            return None
        return stored if set(stored.areas) == set(stored.areas_by_magnitude) == set(METHODS) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, rounded to six decimals, for `metrics["explanations"]`."""
        values: dict[str, Any] = round_numbers(asdict(self))
        return values | {"card": self._card()}

    def _card(self) -> list[dict[str, Any]]:
        """The tables of the model card."""
        text = (
            f"Mean area under the deletion curve of the predicted class's probability, on {self.n:,} {self.split} "
            "texts (`measure NAME explanations`); smaller is better. By score, words against the class are deleted "
            "last; by magnitude, words for and against it alike, as attention orders them."
        )
        rows = [(METHODS[name], area, self.areas_by_magnitude[name]) for name, area in self.areas.items()]
        rows.append(("random order", self.random_area, self.random_area))
        cells = [(name, decimals(area, 3), decimals(by_magnitude, 3)) for name, area, by_magnitude in rows]
        parts = [card_part(text, ("method", "area, by score", "area, by magnitude"), cells)]
        if self.intervals:
            shares = ", ".join(
                f"{percentage(low, 0)} to {percentage(high, 0)} {order.replace('_', ' ')}"
                for order, (low, high) in self.intervals.items()
            )
            parts.append(
                card_part(
                    f"Attention rollout achieves {shares} of the best other method's improvement over a random order "
                    "(95 % bootstrap intervals over the texts)."
                )
            )
        return parts


def measure_explanations(
    classifier: Predictor, texts: Sequence[str], *, on_text: Callable[[int, int], None] = lambda done, total: None
) -> ExplanationAverages:
    """Compare the methods on test texts; texts without a word are skipped.

    `on_text` is called after each text with the number of texts done and their total.

    Raises:
        ValueError: no text contains a word.
    """
    measured = []
    for number, text in enumerate(texts, start=1):
        if classifier.encode(text).has_words:
            measured.append(measure_deletion(classifier, text, explain(classifier, text).scores))
        on_text(number, len(texts))
    if not measured:
        raise ValueError("got no text with a word; expected at least one")
    random_areas = [of_text.random for of_text in measured]
    orders = {
        "by_score": [of_text.by_score for of_text in measured],
        "by_magnitude": [of_text.by_magnitude for of_text in measured],
    }
    intervals = {name: share_interval(areas, random_areas) for name, areas in orders.items()}
    return ExplanationAverages(
        split="test",
        n=len(measured),
        areas=_mean_areas(orders["by_score"]),
        areas_by_magnitude=_mean_areas(orders["by_magnitude"]),
        intervals={name: interval for name, interval in intervals.items() if interval is not None},
        random_area=float(np.mean(random_areas)),
    )


def best_other(areas: Mapping[str, float]) -> str:
    """The method other than rollout with the smallest area."""
    return min(SIGNED, key=areas.__getitem__)


def share_interval(areas: Sequence[Mapping[str, float]], random_areas: Sequence[float]) -> tuple[float, float] | None:
    """95 % bootstrap interval (over texts) of rollout's gain divided by the gain of the best other method.

    A method's gain is the mean area for random orders (`random_areas`, one per text) minus its own. The best other
    method is chosen on all texts. None if that method has no gain in some resample.
    """
    other = best_other(_mean_areas(areas))
    gains = np.array(
        [[area - of_text["rollout"], area - of_text[other]] for of_text, area in zip(areas, random_areas, strict=True)]
    )  # n 2
    samples = np.random.default_rng(0).integers(0, len(gains), (RESAMPLES, len(gains)))  # R n
    of_rollout, of_other = gains[samples].mean(axis=1).T  # R each
    if (of_other <= 0).any():
        return None
    low, high = np.quantile(of_rollout / of_other, [0.025, 0.975])
    return float(low), float(high)


def _mean_areas(areas: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([of_text[name] for of_text in areas])) for name in areas[0]}
