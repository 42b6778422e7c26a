"""Stories of heads, tested by replacing attention weights.

A story says on which keys the queries of some kind put their weight (`Clause`), or how much weight each key gets
whichever query asks (`Lists`). To test it, the weights of its queries are replaced three times: by those that the story
says, by uniform ones, and, as a control, by clauses about as many other keys or by shuffled lists. If the story is true
and complete, the first restores the accuracy that uniform weights lose, and the control does not. The limits below were
set before anything was measured, except ATTENDS, which was added after a first look at results.
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
"""Texts of a batch, fewer if they are long."""


@dataclass(frozen=True, slots=True)
class Clause:
    """Queries of one kind attend to keys of another (`txcls.inspection.stories.kinds`)."""

    query: str
    key: str

    def __str__(self) -> str:
        return f"{self.query} → {self.key}"


@dataclass(frozen=True, slots=True)
class Story:
    """What one head does: a clause for each kind of query that the story is about, or `lists` for all queries."""

    layer: int
    head: int
    clauses: tuple[Clause, ...] = ()
    lists: Lists | None = None

    def __str__(self) -> str:
        return "; ".join(map(str, self.clauses)) if self.lists is None else str(self.lists)

    def weights(self, text: TextKinds, *, causal: bool = False) -> Floats:
        """The pattern that the story says, (T, T); rows of queries that it is not about are zero."""
        if self.lists is not None:
            return self.lists.weights(text.ids, causal=causal)
        return spread(story_masks(self.clauses, text, causal=causal))

    def queries(self, text: TextKinds, *, causal: bool = False) -> Bools:
        """The queries that the story is about, (T,)."""
        if self.lists is not None:
            return np.ones(len(text), dtype=bool)
        queries: Bools = np.any(story_masks(self.clauses, text, causal=causal), axis=1)
        return queries


def clause_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> list[Bools]:
    """For each clause which keys (columns) it names for each query (row), (T, T).

    A query of two kinds follows the first clause that names a key for it. With `causal`, later keys are left out.
    """
    free = np.ones(len(text), dtype=bool)  # T: queries that no clause has named a key for
    masks = []
    for clause in clauses:
        keys = keys_of(clause.key, text)  # T T
        named = (queries_of(clause.query, text) & free)[:, None] & (np.tril(keys) if causal else keys)
        free = free & ~named.any(axis=1)
        masks.append(named)
    return masks


def story_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> Bools:
    """The union of the clauses' masks, (T, T); a query whose row is empty is not part of the story."""
    named: Bools = np.any(clause_masks(clauses, text, causal=causal), axis=0)
    return named


def spread(named: Bools) -> Floats:
    """Uniform weights over the keys (columns) named for each query (row), (T, T); zero in rows without a key."""
    weights: Floats = (named / np.maximum(named.sum(axis=1, keepdims=True), 1)).astype(np.float32)
    return weights


def uniform(queries: Bools, *, causal: bool = False) -> Floats:
    """Uniform weights over all keys for these queries (T,), (T, T); zero in other rows."""
    every = np.broadcast_to(queries[:, None], (len(queries), len(queries)))
    return spread(np.tril(every) if causal else every)


Weights = Callable[[int], Floats]
"""The weights (T, T) that replace a head's in the text at this place; rows without a weight keep the head's own."""


def weights_of(story: Story, texts: Sequence[TextKinds], *, causal: bool, among: Story | None = None) -> Weights:
    """What a story says in each text; with `among`, uniform weights for the remaining queries of that story."""

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
        classifier: nothing in it is changed.
        texts: with their labels.
        replaced: for each layer and head the weights in place of its own.
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
    """For each clause the weight that the head puts on the keys it names, and what uniform weights would put there.

    Means over the queries for which a clause names a key; nan where there are none. Of a story with lists, one pair:
    the weight that the head's pattern has in common with the lists' (the sum of the smaller of both), and with a
    uniform one.
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
    """An edit of an attention pattern, (B, H, T, T): the rows of some heads become those of their weights (B, N, N)
    that have a sum.

    The pattern is larger than the weights where the model pads all texts to one length.
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
    """One tensor (B, T, T) of the weights of texts, zero in padding."""
    length = max(map(len, weights))
    stacked = np.zeros((len(weights), length, length), dtype=np.float32)
    for n, of_text in enumerate(weights):
        stacked[n, : len(of_text), : len(of_text)] = of_text
    return torch.from_numpy(stacked)


Verdict = Literal["confirmed", "part of it", "wrong", "idle"]

CONFIRMED = 0.8
"""Smallest share of the lost accuracy that a confirmed story restores."""
MAX_BY_CONTROL = 0.3
"""Largest share that the control may bring back for a story to be confirmed; the low end of the story's own interval
must lie above it too, so that a few lucky texts confirm nothing."""
PART = 0.3
"""Least share that part of a story brings back; it must also bring back more than the control."""
ATTENDS = 0.5
"""Least weight that the head itself puts on the keys of every clause, mean over its queries, for a confirmed story; of
lists, least weight that the head's pattern has in common with theirs. All weight on the winner brings the accuracy back
in any head that is read, also in one that does not attend to it."""
IDLE = 0.005
"""Where uniform weights cost less accuracy than this, it makes no difference to what these queries attend."""
MIN_GAIN = 0.05
"""Least gain of a clause or list, as a share of what uniform weights cost."""
RESAMPLES = 1000
"""How many times texts are drawn anew for the interval of the share."""


@dataclass(frozen=True)
class MeasuredStory:
    """The accuracy on n texts with each kind of weights, and how much of the loss the story brings back.

    Attributes:
        story: what was tested.
        n: texts that hold a query and a key of the story; the accuracies are over these.
        coverage: their share of all texts.
        accuracy: with the head's own weights.
        even: accuracy with uniform weights for the story's queries.
        restored: accuracy with the weights that the story says.
        control: accuracy with those of the control.
        share: (restored - even) / (accuracy - even); nan where nothing is lost.
        interval: 95 % of the shares over texts drawn anew (bootstrap); nan where most draws lose nothing.
        control_share: the same as `share`, of the control.
        attention: how much of the head's own weight is where the story says, for each clause (`attention_of`).
        chance: the same of uniform weights.
        verdict: by the limits of this module.
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
    """Replace the weights that a story is about, and measure what that costs.

    The control of clauses puts each query's weight on as many keys that the story does not name. For each key that it
    names, one is drawn among those whose token is about as frequent in training texts (at most twice or half as
    frequent), or among all others where there is none. So a story about a team name is compared with other teams'
    names. The control of lists is `Lists.shuffled`.

    Args:
        classifier: nothing in it is changed.
        texts: with labels, none of which the story was chosen on; those without a query and a key of the story are
            left out.
        story: of one head.
        counts: (V,) how often training texts hold each id; a story with lists needs them.
        seed: of the control and of the bootstrap.

    Raises:
        ValueError: no text holds a query and a key of the story, there is no such head, or `counts` are missing.
    """
    config = classifier.checkpoint.config.model
    if not (0 <= story.layer < config.n_layers and 0 <= story.head < config.n_heads):
        raise ValueError(
            f"got layer {story.layer}, head {story.head}; the model has {config.n_layers} layers of {config.n_heads}"
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
    """The story without the clauses that add nothing, or with one of its two lists where the other adds nothing.

    Clauses are left out one by one, their queries with uniform weights, as long as that costs less than `MIN_GAIN` of
    the accuracy that the story is about.

    Args:
        classifier: nothing in it is changed.
        texts: at least one of which holds a query of the story.
        story: of one head.
        fitted: the lists by word alone and by distance alone, for a story with both.
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
    """What uniform weights lose, and how much of it the tested weights and the control bring back (`MeasuredStory`)."""

    own: float
    even: float
    share: float
    interval: tuple[float, float]
    control_share: float

    @classmethod
    def of(cls, right: Mapping[str, Bools], random: np.random.Generator) -> "Shares":
        """From the right answers with "own", "even", "restored" and "control" weights, (N,) each."""
        own, even, restored, control = (float(right[kind].mean()) for kind in ("own", "even", "restored", "control"))
        return cls(own, even, _share(own, even, restored), _bootstrap(right, random), _share(own, even, control))


def verdict_of(lost: float, *, share: float, low: float, control_share: float, attention: float) -> Verdict:
    """The verdict.

    Args:
        lost: the accuracy that uniform weights cost.
        share: how much of it the story brings back.
        low: the low end of the interval of `share`.
        control_share: how much the control brings back.
        attention: the weight that the head itself puts on the keys of the clause that gets least.
    """
    if lost < IDLE:
        return "idle"
    if share >= CONFIRMED and control_share <= MAX_BY_CONTROL < low and attention >= ATTENDS:
        return "confirmed"
    return "part of it" if share >= PART and share > control_share else "wrong"


def _like_these(named: Bools, text: TextKinds, random: np.random.Generator, *, causal: bool) -> Bools:
    """For each query of the story as many keys that it does not name, like them in frequency where possible, (T, T)."""
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
        # The smallest number wins: unlike keys after those alike, and keys that cannot be drawn after these.
        chosen = (random.random((len(rows), n)) + unlike[keys] + 2 * ~left[rows]).argmin(axis=1)
        drawn[rows, chosen], left[rows, chosen] = True, False
    return drawn


def _share(own: float, even: float, other: float) -> float:
    """How much of what even weights lose is brought back."""
    return (other - even) / (own - even) if own > even else float("nan")


def _bootstrap(right: Mapping[str, NDArray[np.bool_]], random: np.random.Generator) -> tuple[float, float]:
    """95 % bootstrap interval of the story's share (texts resampled); nan where most resamples lose nothing."""
    own, even, restored = (right[kind].astype(int) for kind in ("own", "even", "restored"))
    n = len(own)
    counts = random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # R N
    lost, back = counts @ (own - even), counts @ (restored - even)  # R: whole texts, so that none lost is exactly 0
    shares = back[lost > 0] / lost[lost > 0]
    if len(shares) < RESAMPLES / 2:
        return float("nan"), float("nan")
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)
