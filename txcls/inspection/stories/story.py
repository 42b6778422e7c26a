"""Stories of heads, tested by replacing attention weights.

A story states on which keys the queries of some kind put their weight (`Clause`), or how much weight each key gets
regardless of the query (`Lists`). To test it, the weights of its queries are replaced in three ways: with the story's
weights, with uniform weights, and, as a control, with equally many other keys per query or with shuffled lists. If the
story is true and complete, its weights restore the accuracy that uniform weights lose, and the control does not. The
limits below were set before anything was measured, except ATTENDS, which was added after a first look at the results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import batches_by_length
from txcls.inspection.stories.kinds import Bools, TextKinds, head_patterns, keys_of, queries_of
from txcls.inspection.stories.lists import FittedLists, Floats, Lists
from txcls.predictor import Predictor, padded
from txcls.tap import trace

BATCH = 128
"""Maximum number of texts in a batch; fewer if they are long."""


@dataclass(frozen=True, slots=True)
class Clause:
    """Queries of one kind attend to keys of another (`txcls.inspection.stories.kinds`)."""

    query: str
    key: str

    def __str__(self) -> str:
        return f"{self.query} → {self.key}"


@dataclass(frozen=True, slots=True)
class Story:
    """What one head does: a clause for each kind of query that the story covers, or `lists` for all queries."""

    layer: int
    head: int
    clauses: tuple[Clause, ...] = ()
    lists: Lists | None = None

    def __str__(self) -> str:
        return "; ".join(map(str, self.clauses)) if self.lists is None else str(self.lists)

    def weights(self, text: TextKinds, *, causal: bool = False) -> Floats:
        """The attention pattern that the story predicts, (T, T); zero in the rows of queries that it does not cover."""
        if self.lists is not None:
            return self.lists.weights(text.ids, causal=causal)
        return spread(story_masks(self.clauses, text, causal=causal))

    def queries(self, text: TextKinds, *, causal: bool = False) -> Bools:
        """The queries that the story covers, (T,)."""
        if self.lists is not None:
            return np.ones(len(text), dtype=bool)
        queries: Bools = np.any(story_masks(self.clauses, text, causal=causal), axis=1)
        return queries


def clause_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> list[Bools]:
    """For each clause, which keys (columns) it names for each query (row), (T, T).

    A query of two kinds follows the first clause that names a key for it. With `causal`, later keys are left out.
    """
    free = np.ones(len(text), dtype=bool)  # T: queries for which no clause has named a key yet
    masks = []
    for clause in clauses:
        keys = keys_of(clause.key, text)  # T T
        named = (queries_of(clause.query, text) & free)[:, None] & (np.tril(keys) if causal else keys)
        free = free & ~named.any(axis=1)
        masks.append(named)
    return masks


def story_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> Bools:
    """The union of the clauses' masks, (T, T); a query with an empty row is not covered by the story."""
    named: Bools = np.any(clause_masks(clauses, text, causal=causal), axis=0)
    return named


def spread(named: Bools) -> Floats:
    """Uniform weights over the keys (columns) named for each query (row), (T, T); zero in rows without a key."""
    weights: Floats = (named / np.maximum(named.sum(axis=1, keepdims=True), 1)).astype(np.float32)
    return weights


def uniform(queries: Bools, *, causal: bool = False) -> Floats:
    """Uniform weights over all keys for these queries (T,), (T, T); zero in the other rows."""
    every = np.broadcast_to(queries[:, None], (len(queries), len(queries)))
    return spread(np.tril(every) if causal else every)


Weights = Callable[[int], Floats]
"""Given the index of a text, the weights (T, T) that replace a head's; the head keeps its own weights in zero rows."""


def weights_of(story: Story, texts: Sequence[TextKinds], *, causal: bool, among: Story | None = None) -> Weights:
    """A story's weights in each text; with `among`, uniform weights for the remaining queries of that story."""

    def weights(n: int) -> Floats:
        said = story.weights(texts[n], causal=causal)
        if among is None:
            return said
        return said + uniform(among.queries(texts[n], causal=causal) & ~said.any(axis=1), causal=causal)

    return weights


def uniform_weights(story: Story, texts: Sequence[TextKinds], *, causal: bool) -> Weights:
    """Uniform weights for the queries of a story."""
    return lambda n: uniform(story.queries(texts[n], causal=causal), causal=causal)


def right_answers(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    replaced: Mapping[tuple[int, int], Weights] | None = None,
) -> Bools:
    """Which texts are classified correctly, (N,), with the attention weights of some heads replaced.

    Args:
        texts: with their labels.
        replaced: (layer, head) to the weights that replace the head's own.
    """
    right = np.zeros(len(texts), dtype=bool)
    for batch in batches_by_length(map(len, texts), batch_size=BATCH):
        ids = padded([texts[n].ids.tolist() for n in batch])  # B T
        by_layer: dict[int, dict[int, Tensor]] = {}
        for (layer, head), weights in (replaced or {}).items():
            by_layer.setdefault(layer, {})[head] = _stacked([weights(int(n)) for n in batch])
        edit = {f"layers.{layer}.attn.pattern": _Replaced(heads) for layer, heads in by_layer.items()}
        with trace(record=(), edit=edit):
            answers = classifier.logits(ids).argmax(dim=-1).numpy()  # B
        right[batch] = answers == np.array([texts[n].label for n in batch])
    return right


def attention_of(classifier: Predictor, texts: Sequence[TextKinds], story: Story) -> list[tuple[float, float]]:
    """For each clause, the weight that the head puts on the keys it names, and the weight that uniform attention would.

    Averaged over the queries for which the clause names a key; NaN if there are none. A story with lists has one pair:
    the overlap of the head's pattern with the lists' pattern (the sum of the elementwise minimum), and the overlap with
    a uniform pattern.
    """
    causal = classifier.checkpoint.config.model.causal
    sums = np.zeros((max(1, len(story.clauses)), 3))  # weight, uniform weight, queries
    for place, patterns in head_patterns(classifier, texts, batch_size=BATCH):
        pattern, text = patterns[story.layer, story.head], texts[place]  # T T
        every = uniform(np.ones(len(text), dtype=bool), causal=causal)
        if story.lists is not None:
            both = (np.minimum(pattern, other).sum() for other in (story.weights(text, causal=causal), every))
            sums[0] += *both, len(text)
            continue
        for row, named in zip(sums, clause_masks(story.clauses, text, causal=causal), strict=True):
            row += pattern[named].sum(), every[named].sum(), named.any(axis=1).sum()
    return [(float(weight / n), float(even / n)) if n else (np.nan, np.nan) for weight, even, n in sums]


class _Replaced:
    """An edit of an attention pattern, (B, H, T, T): in some heads, nonzero rows of weights (B, N, N) replace its rows.

    The pattern is larger than the weights if the model pads all texts to one length.
    """

    def __init__(self, heads: Mapping[int, Tensor]) -> None:
        self.heads = heads

    def __call__(self, pattern: Tensor) -> Tensor:
        changed = pattern.clone()
        for head, weights in self.heads.items():
            n = weights.shape[-1]
            wide = torch.nn.functional.pad(weights.to(pattern), (0, pattern.shape[-1] - n))  # B N T
            rows = weights.sum(dim=-1, keepdim=True) > 0  # B N 1
            changed[:, head, :n] = torch.where(rows, wide, pattern[:, head, :n])
        return changed


def _stacked(weights: Sequence[Floats]) -> Tensor:
    """The weights of several texts as one tensor (B, T, T), with zeros for padding."""
    length = max(map(len, weights))
    stacked = np.zeros((len(weights), length, length), dtype=np.float32)
    for n, of_text in enumerate(weights):
        stacked[n, : len(of_text), : len(of_text)] = of_text
    return torch.from_numpy(stacked)


Verdict = Literal["confirmed", "part of it", "wrong", "idle"]

CONFIRMED = 0.8
"""Minimum fraction of the lost accuracy that a confirmed story restores."""
MAX_BY_CONTROL = 0.3
"""Maximum fraction that the control may restore if a story is to be confirmed. The lower end of the story's own
interval must also be above it, so that a few lucky texts do not confirm a story."""
PART = 0.3
"""Minimum fraction that a partly true story restores; it must also restore more than the control."""
ATTENDS = 0.5
"""Minimum weight that the head itself puts on the keys of every clause, averaged over its queries, for a confirmed
story; for lists, the minimum overlap of the head's pattern with theirs. Without this, putting all weight on the winner
would restore the accuracy in any head whose output is used, even if the head does not attend to the winner."""
IDLE = 0.005
"""If uniform weights cost less accuracy than this, what these queries attend to makes no difference."""
MIN_GAIN = 0.05
"""Minimum gain from a clause or list, as a fraction of the accuracy that uniform weights cost."""
RESAMPLES = 1000
"""Number of bootstrap resamples of the texts for the interval of the share."""


@dataclass(frozen=True)
class MeasuredStory:
    """The accuracy on n texts with each set of weights, and how much of the lost accuracy the story restores.

    Attributes:
        story: the story tested.
        n: number of texts that have a query and a key of the story; the accuracies are over these texts.
        coverage: their fraction of all texts.
        accuracy: with the head's own weights.
        even: with uniform weights for the story's queries.
        restored: with the story's weights.
        control: with the control's weights.
        share: (restored - even) / (accuracy - even); NaN if nothing is lost.
        interval: 95 % bootstrap interval of `share` over texts; NaN if most resamples lose nothing.
        control_share: the same as `share`, for the control.
        attention: for each clause, how much of the head's own weight is where the story says (`attention_of`).
        chance: the same for uniform weights.
        verdict: follows from the limits in this module.
    """

    story: Story
    n: int
    coverage: float
    accuracy: float
    even: float
    restored: float
    control: float
    share: float
    interval: tuple[float, float]
    control_share: float
    attention: tuple[float, ...]
    chance: tuple[float, ...]
    verdict: Verdict


def measure_story(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    story: Story,
    *,
    counts: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> MeasuredStory:
    """Replace the weights that a story covers, and measure the effect on accuracy.

    The control for clauses puts each query's weight on the same number of keys that the story does not name. For each
    named key, a key is drawn at random among those whose tokens have a similar frequency in the training texts (at most
    twice or half as frequent), or among all other keys if there is none. A story about a team name is thus compared
    with the names of other teams. The control for lists is `Lists.shuffled`.

    Args:
        texts: labelled texts that were not used to choose the story; those without a query and a key of the story are
            skipped.
        story: the story of one head.
        counts: (V,) number of occurrences of each id in the training texts; required for a story with lists.
        seed: seed for the control and the bootstrap.

    Raises:
        ValueError: no text has a query and a key of the story, there is no such head, or `counts` is missing.
    """
    config = classifier.checkpoint.config.model
    if not (0 <= story.layer < config.n_layers and 0 <= story.head < config.n_heads):
        raise ValueError(
            f"got layer {story.layer}, head {story.head}; the model has {config.n_layers} layers "
            f"of {config.n_heads} heads"
        )
    about = [text for text in texts if story.queries(text, causal=config.causal).any()]
    if not about:
        raise ValueError(f"no text holds what the story is about: {story}")
    random = np.random.default_rng(seed)
    if story.lists is None:
        masks = [story_masks(story.clauses, text, causal=config.causal) for text in about]
        others = [_like_these(*pair, random, causal=config.causal) for pair in zip(masks, about, strict=True)]
        control: Weights = lambda n: spread(others[n])  # noqa: E731
    elif counts is None:
        raise ValueError("the control of lists needs the counts of all words")
    else:
        shuffled = replace(story, lists=story.lists.shuffled(counts, random))
        control = weights_of(shuffled, about, causal=config.causal)
    weights = {
        "even": uniform_weights(story, about, causal=config.causal),
        "restored": weights_of(story, about, causal=config.causal),
        "control": control,
    }
    head = (story.layer, story.head)
    right = {kind: right_answers(classifier, about, {head: of}) for kind, of in weights.items()}
    right["own"] = right_answers(classifier, about)
    shares = Shares.of(right, random)
    attention, chance = zip(*attention_of(classifier, about, story), strict=True)
    return MeasuredStory(
        story=story,
        n=len(about),
        coverage=len(about) / len(texts),
        accuracy=shares.own,
        even=shares.even,
        restored=float(right["restored"].mean()),
        control=float(right["control"].mean()),
        share=shares.share,
        interval=shares.interval,
        control_share=shares.control_share,
        attention=attention,
        chance=chance,
        verdict=verdict_of(
            shares.own - shares.even,
            share=shares.share,
            low=shares.interval[0],
            control_share=shares.control_share,
            attention=float(np.min(attention)),
        ),
    )


def necessary_part(
    classifier: Predictor, texts: Sequence[TextKinds], story: Story, fitted: FittedLists | None = None
) -> Story:
    """The story without clauses that add nothing, or with only one of its two lists if the other adds nothing.

    Clauses are removed one by one, giving their queries uniform weights, as long as this costs less than `MIN_GAIN` of
    the accuracy that uniform weights lose for the whole story.

    Args:
        texts: at least one of them has a query of the story.
        story: the story of one head.
        fitted: the lists by word only and by distance only, for a story with both.
    """
    causal = classifier.checkpoint.config.model.causal
    simpler = [
        replace(story, clauses=(*story.clauses[:n], *story.clauses[n + 1 :]))
        for n in range(len(story.clauses))
        if len(story.clauses) > 1
    ]
    if fitted is not None and story.lists is fitted.both:
        simpler = [replace(story, lists=lists) for lists in (fitted.words, fitted.distances)]
    if not simpler:
        return story

    def accuracy(weights: Weights) -> float:
        return float(right_answers(classifier, texts, {(story.layer, story.head): weights}).mean())

    own, even = float(right_answers(classifier, texts).mean()), accuracy(uniform_weights(story, texts, causal=causal))
    restored, *without = (accuracy(weights_of(other, texts, causal=causal, among=story)) for other in (story, *simpler))
    best = int(np.argmax(without))
    if own - even < IDLE or restored - without[best] >= MIN_GAIN * (own - even):
        return story
    return necessary_part(classifier, texts, simpler[best])


@dataclass(frozen=True)
class Shares:
    """The accuracy lost with uniform weights, and how much of it the tested weights and the control restore
    (`MeasuredStory`)."""

    own: float
    even: float
    share: float
    interval: tuple[float, float]
    control_share: float

    @classmethod
    def of(cls, right: Mapping[str, Bools], random: np.random.Generator) -> "Shares":
        """Compute from `right`: which texts, (N,), are correct with "own", "even", "restored" and "control" weights."""
        own, even, restored, control = (float(right[kind].mean()) for kind in ("own", "even", "restored", "control"))
        return cls(own, even, _share(own, even, restored), _bootstrap(right, random), _share(own, even, control))


def verdict_of(lost: float, *, share: float, low: float, control_share: float, attention: float) -> Verdict:
    """The verdict on a story, from its measurements.

    Args:
        lost: the accuracy lost with uniform weights.
        share: the fraction of it that the story restores.
        low: the lower end of the interval of `share`.
        control_share: the fraction of it that the control restores.
        attention: the minimum over clauses of the weight that the head itself puts on the keys of the clause.
    """
    if lost < IDLE:
        return "idle"
    if share >= CONFIRMED and control_share <= MAX_BY_CONTROL < low and attention >= ATTENDS:
        return "confirmed"
    return "part of it" if share >= PART and share > control_share else "wrong"


def _like_these(named: Bools, text: TextKinds, random: np.random.Generator, *, causal: bool) -> Bools:
    """For each query of the story, as many keys that it does not name, of similar frequency if possible, (T, T)."""
    n = len(named)
    frequency = np.log2(text.counts + 1)  # T
    unlike = np.abs(frequency[:, None] - frequency) > 1  # T T
    seen = np.tril(np.ones((n, n), dtype=bool)) if causal else np.ones((n, n), dtype=bool)
    left = seen & ~named
    left = np.where(left.any(axis=1, keepdims=True), left, seen)  # T T: the keys to draw from
    drawn = np.zeros_like(named)
    number = np.where(named, named.cumsum(axis=1), 0)  # T T: 1 for the first key of a row, 2 for the second, …
    for nth in range(1, int(number.max()) + 1):
        rows = np.flatnonzero((number == nth).any(axis=1) & left.any(axis=1))
        keys = (number[rows] == nth).argmax(axis=1)
        # argmin prefers keys of similar frequency, then other keys, and takes unavailable keys last.
        chosen = (random.random((len(rows), n)) + unlike[keys] + 2 * ~left[rows]).argmin(axis=1)
        drawn[rows, chosen], left[rows, chosen] = True, False
    return drawn


def _share(own: float, even: float, other: float) -> float:
    """The fraction of the accuracy lost with uniform weights that is restored."""
    return (other - even) / (own - even) if own > even else float("nan")


def _bootstrap(right: Mapping[str, NDArray[np.bool_]], random: np.random.Generator) -> tuple[float, float]:
    """95 % bootstrap interval of the story's share (texts resampled); NaN if most resamples lose nothing."""
    own, even, restored = (right[kind].astype(int) for kind in ("own", "even", "restored"))
    n = len(own)
    counts = random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # R N
    lost, back = counts @ (own - even), counts @ (restored - even)  # R: integers, where no loss is exactly 0
    shares = back[lost > 0] / lost[lost > 0]
    if len(shares) < RESAMPLES / 2:
        return float("nan"), float("nan")
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)
