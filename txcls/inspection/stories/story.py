"""Stories of heads: proposed from attention, chosen by the accuracy they bring back, and measured on other texts.

A story says to which kind of key the queries of some kind attend. To test it, the weights of its queries are replaced
three times: all on the keys that the story names, evenly over all keys, and, as a control, on as many other keys. If
the story is true and complete, the first restores the accuracy that even weights lose, and the control does not. The
limits below were set before anything was measured, except ATTENDS, which was added after a first look at results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import batches_by_length
from txcls.data.types import Roles
from txcls.inspection.stories.kinds import (
    ANY,
    Bools,
    KindsTable,
    TextKinds,
    head_patterns,
    keys_of,
    kinds_of_text,
    measure_kinds,
    queries_of,
)
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
    """What one head does: a clause for each kind of query that the story is about."""

    layer: int
    head: int
    clauses: tuple[Clause, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.clauses))


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


def even_masks(named: Bools, *, causal: bool = False) -> Bools:
    """All keys for the queries that a story is about, (T, T)."""
    every = np.broadcast_to(named.any(axis=1, keepdims=True), named.shape)
    return np.tril(every) if causal else every


def right_answers(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    *,
    layer: int = 0,
    head: int = 0,
    masks: Sequence[Bools] | None = None,
) -> Bools:
    """Which texts are classified correctly, (N,), with a head's weights spread evenly over the keys in `masks`.

    Args:
        classifier: nothing in it is changed.
        texts: with their labels.
        layer, head: whose weights are replaced.
        masks: for each text the keys (columns) of each query (row), (T, T); rows without a key keep the head's own
            weights. None to replace nothing.
    """
    right = np.zeros(len(texts), dtype=bool)
    for batch in batches_by_length(map(len, texts), batch_size=BATCH):
        ids = padded([texts[n].ids.tolist() for n in batch])  # B T
        edit = {}
        if masks is not None:
            edit = {f"layers.{layer}.attn.pattern": _Replaced(head, _spread([masks[n] for n in batch]))}
        with trace(record=(), edit=edit):
            answers = classifier.logits(ids).argmax(dim=-1).numpy()  # B
        right[batch] = answers == np.array([texts[n].label for n in batch])
    return right


def attention_of(classifier: Predictor, texts: Sequence[TextKinds], story: Story) -> list[tuple[float, float]]:
    """For each clause the weight that the head puts on the keys it names, and what even weights would put there.

    Both are means over the queries for which it names a key; nan where there are none.
    """
    causal = classifier.checkpoint.config.model.causal
    sums = np.zeros((len(story.clauses), 3))  # weight, even weight, queries
    for place, patterns in head_patterns(classifier, texts, batch_size=BATCH):
        pattern = patterns[story.layer, story.head]  # T T
        for row, named in zip(sums, clause_masks(story.clauses, texts[place], causal=causal), strict=True):
            even = named.sum(axis=1) / np.maximum(even_masks(named, causal=causal).sum(axis=1), 1)  # T
            row += pattern[named].sum(), even.sum(), named.any(axis=1).sum()
    return [(float(weight / n), float(even / n)) if n else (np.nan, np.nan) for weight, even, n in sums]


class _Replaced:
    """An edit of an attention pattern, (B, H, T, T): one head's rows become those of `weights` (B, N, N) with a sum.

    The pattern is larger than the weights where the model pads all texts to one length.
    """

    def __init__(self, head: int, weights: Tensor) -> None:
        self.head, self.weights = head, weights
        self.rows = weights.sum(dim=-1, keepdim=True) > 0  # B N 1

    def __call__(self, pattern: Tensor) -> Tensor:
        n = self.weights.shape[-1]
        wide = torch.nn.functional.pad(self.weights.to(pattern), (0, pattern.shape[-1] - n))  # B N T
        changed = pattern.clone()
        changed[:, self.head, :n] = torch.where(self.rows, wide, pattern[:, self.head, :n])
        return changed


def _spread(masks: Sequence[Bools]) -> Tensor:
    """Weights (B, T, T) that are even over the keys of each row, zero in rows without a key and in padding."""
    length = max(len(mask) for mask in masks)
    weights = np.zeros((len(masks), length, length), dtype=np.float32)
    for n, mask in enumerate(masks):
        weights[n, : len(mask), : len(mask)] = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return torch.from_numpy(weights)


Verdict = Literal["confirmed", "part of it", "wrong", "idle"]

CONFIRMED = 0.8
"""Smallest share of the lost accuracy that a confirmed story restores."""
MAX_BY_CONTROL = 0.3
"""Largest share that the control may bring back for a story to be confirmed; the low end of the story's own interval
must lie above it too, so that a few lucky texts confirm nothing."""
PART = 0.3
"""Least share that part of a story brings back; it must also bring back more than the control."""
ATTENDS = 0.5
"""Least weight that the head itself puts on the keys of every clause, mean over its queries, for a confirmed story. All
weight on the winner brings the accuracy back in any head that is read, also in one that does not attend to it."""
IDLE = 0.005
"""Where even weights cost less accuracy than this, the head is idle for these queries."""
RESAMPLES = 1000
"""How many times texts are drawn anew for the interval of the share."""


@dataclass(frozen=True)
class MeasuredStory:
    """The accuracy on n texts with each kind of weights, and how much of the loss the story brings back.

    Attributes:
        story: what was tested.
        n: texts that hold both a query and a key of the story; the accuracies are over these.
        coverage: their share of all texts.
        accuracy: with the head's own weights.
        even: accuracy with even weights for the story's queries.
        restored: accuracy with all weight on the keys that the story names.
        control: accuracy with all weight on as many other keys.
        share: (restored - even) / (accuracy - even); nan where nothing is lost.
        interval: 95 % of the shares over texts drawn anew (bootstrap); nan where most draws lose nothing.
        control_share: the same as `share`, of the control.
        attention: for each clause the weight that the head itself puts on the keys it names, mean over its queries.
        chance: for each clause what even weights would put there.
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

    @property
    def brought_back(self) -> float:
        """By how much the story's weights are more accurate than even ones, on the n texts."""
        return self.restored - self.even


def measure_story(classifier: Predictor, texts: Sequence[TextKinds], story: Story, *, seed: int = 0) -> MeasuredStory:
    """Replace the weights that a story is about, and measure what that costs.

    The control puts each query's weight on as many keys that the story does not name. For each key that it names, one
    is drawn among those whose token is about as frequent in training texts (at most twice or half as frequent), or
    among all others where there is none. So a story about a team name is compared with other teams' names.

    Args:
        classifier: nothing in it is changed.
        texts: with labels, none of which the story was chosen on; those without a query and a key of the story are
            left out.
        story: of one head.
        seed: of the control's keys and of the bootstrap.

    Raises:
        ValueError: no text holds a query and a key of the story, or there is no such head.
    """
    config = classifier.checkpoint.config.model
    if not (0 <= story.layer < config.n_layers and 0 <= story.head < config.n_heads):
        raise ValueError(
            f"got layer {story.layer}, head {story.head}; the model has {config.n_layers} layers of {config.n_heads}"
        )
    masks = [story_masks(story.clauses, text, causal=config.causal) for text in texts]
    about = [(text, named) for text, named in zip(texts, masks, strict=True) if named.any()]
    if not about:
        raise ValueError(f"no text holds what the story is about: {story}")
    random = np.random.default_rng(seed)
    weights: dict[str, list[Bools] | None] = {
        "own": None,
        "even": [even_masks(named, causal=config.causal) for _, named in about],
        "restored": [named for _, named in about],
        "control": [_like_these(named, text, random, causal=config.causal) for text, named in about],
    }
    right = {
        kind: right_answers(classifier, [text for text, _ in about], layer=story.layer, head=story.head, masks=of)
        for kind, of in weights.items()
    }
    own, even, restored, control = (float(right[kind].mean()) for kind in ("own", "even", "restored", "control"))
    share, control_share = _share(own, even, restored), _share(own, even, control)
    interval = _bootstrap(right, random)
    attention, chance = zip(*attention_of(classifier, [text for text, _ in about], story), strict=True)
    return MeasuredStory(
        story=story,
        n=len(about),
        coverage=len(about) / len(texts),
        accuracy=own,
        even=even,
        restored=restored,
        control=control,
        share=share,
        interval=interval,
        control_share=control_share,
        attention=attention,
        chance=chance,
        verdict=verdict_of(
            own - even, share=share, low=interval[0], control_share=control_share, attention=float(np.min(attention))
        ),
    )


def verdict_of(lost: float, *, share: float, low: float, control_share: float, attention: float) -> Verdict:
    """The verdict.

    Args:
        lost: the accuracy that even weights cost.
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


MAX_CLAUSES = 3
"""Most clauses of a story."""
MAX_TRIED = 24
"""Clauses tried in each round, those with the most attention above chance."""
MIN_COVERAGE = 0.05
"""Least share of the texts that hold what a clause is about."""
MIN_GAIN = 0.05
"""Least gain of another clause, as a share of what the head loses with even weights."""


def find_stories(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    *,
    on_head: Callable[[int, int], None] | None = None,
) -> list[Story]:
    """A story for every head, layer by layer: a hypothesis for `measure_story`, which needs other texts.

    Candidates are the pairs of kinds to which a head gives more attention than chance would. Of a head that loses
    accuracy when all of its weights are made even, clauses are chosen greedily, each by how much accuracy the story
    brings back with it less what the story then still loses: first among the clauses that describe most of the
    attention, then, if these bring too little back to be confirmed, among all candidates. Other heads are idle; their
    story is what is clearest in their attention.

    Args:
        classifier: nothing in it is changed.
        texts: validation texts, at least one; more texts cost more time, about 150 passes over them for each head that
            is not idle.
        on_head: called with the heads done and their number.

    Raises:
        ValueError: there are no texts.
    """
    config = classifier.checkpoint.config.model
    table = measure_kinds(classifier, texts)
    own = right_answers(classifier, texts)
    stories = []
    for layer in range(config.n_layers):
        for head in range(config.n_heads):
            search = _Search(classifier, texts, own, layer, head)
            stories.append(Story(layer, head, search.best(*_candidates(table, layer, head))))
            if on_head is not None:
                on_head(len(stories), config.n_layers * config.n_heads)
    return stories


def _candidates(table: KindsTable, layer: int, head: int) -> tuple[list[Clause], list[Clause]]:
    """Clauses by how much attention above chance they describe, the clearest first, at least one; and those among all
    that describe most of their queries' attention, as a confirmed story must."""
    attention = table.attention[layer, head]  # Q K
    above = np.where(table.coverage >= MIN_COVERAGE, attention - table.chance, -np.inf)
    order = [place for place in np.argsort(-above, axis=None, kind="stable") if above.flat[place] > 0]
    order = order or [int(above.argmax())]
    clauses = [
        (Clause(table.queries[n // len(table.keys)], table.keys[n % len(table.keys)]), attention.flat[n]) for n in order
    ]
    clear = [clause for clause, weight in clauses if weight >= ATTENDS]
    return [clause for clause, _ in clauses[:MAX_TRIED]], clear[:MAX_TRIED]


class _Search:
    """The greedy choice of one head's clauses."""

    def __init__(self, classifier: Predictor, texts: Sequence[TextKinds], own: Bools, layer: int, head: int) -> None:
        self.right = partial(right_answers, classifier, texts, layer=layer, head=head)
        self.texts, self.own = texts, float(own.mean())
        self.causal = classifier.checkpoint.config.model.causal
        self.even_accuracies: dict[bytes, float] = {}
        """Accuracy with even weights, by the queries whose weights are made even."""

    def best(self, candidates: Sequence[Clause], clear: Sequence[Clause]) -> tuple[Clause, ...]:
        """The story made of clear clauses where it brings enough back, else that of all candidates; at least one."""
        lost = self.own - self._even_accuracy(self._masks((Clause(ANY, "itself"),)))
        if lost < IDLE:
            return tuple(candidates[:1])
        chosen = self._chosen(clear, lost)
        if chosen and self._share(chosen) >= CONFIRMED:
            return chosen
        return self._chosen(candidates, lost)

    def _chosen(self, candidates: Sequence[Clause], lost: float) -> tuple[Clause, ...]:
        """Clauses chosen greedily, none where there are no candidates."""
        chosen: tuple[Clause, ...] = ()
        best = -np.inf
        while len(chosen) < MAX_CLAUSES:
            scores = {clause: self._score((*chosen, clause)) for clause in candidates if clause not in chosen}
            clause = max(scores, key=scores.__getitem__, default=None)
            if clause is None or scores[clause] == -np.inf or scores[clause] < best + MIN_GAIN * lost:
                break
            chosen, best = (*chosen, clause), scores[clause]
        return chosen

    def _score(self, clauses: tuple[Clause, ...]) -> float:
        """Accuracy that the story brings back over even weights, less the accuracy that it does not bring back; minus
        infinity for a story about queries that lose nothing."""
        masks = self._masks(clauses)
        even = self._even_accuracy(masks)
        if self.own - even < IDLE:
            return -np.inf
        restored = float(self.right(masks=masks).mean())
        return restored - even - max(0.0, self.own - restored)

    def _share(self, clauses: tuple[Clause, ...]) -> float:
        """The share of what even weights lose that the story brings back; 0 where they lose too little to count."""
        masks = self._masks(clauses)
        even = self._even_accuracy(masks)
        restored = float(self.right(masks=masks).mean())
        return (restored - even) / (self.own - even) if self.own - even >= IDLE else 0.0

    def _even_accuracy(self, masks: Sequence[Bools]) -> float:
        queries = np.packbits(np.concatenate([mask.any(axis=1) for mask in masks])).tobytes()
        if queries not in self.even_accuracies:
            even = [even_masks(mask, causal=self.causal) for mask in masks]
            self.even_accuracies[queries] = float(self.right(masks=even).mean())
        return self.even_accuracies[queries]

    def _masks(self, clauses: tuple[Clause, ...]) -> list[Bools]:
        return [story_masks(clauses, text, causal=self.causal) for text in self.texts]


def clearest_texts(
    classifier: Predictor, stories: Sequence[Story], texts: Sequence[str], *, roles: Sequence[Roles] | None = None
) -> list[int]:
    """For each story the place of the text in which its head follows it most closely.

    That is the text that holds the most clauses of the story, and among those the one with the most weight on the keys
    that the clauses name, mean over clauses. Where no text holds any, the one whose attention is sharpest.

    Args:
        classifier: nothing in it is changed.
        stories: one for each head that is asked for.
        texts: at least one with a token.
        roles: what the parts of each text do. Typical and rare words are not known here, so clauses about them count
            for nothing.

    Raises:
        ValueError: no text has a token.
    """
    encodings = [classifier.encoder.encode(text) for text in texts]
    places = [place for place, encoding in enumerate(encodings) if encoding.has_words]
    if not places:
        raise ValueError(f"none of {len(texts)} texts has a token")
    counts = np.zeros(classifier.encoder.vocab_size, dtype=np.int64)
    kinds = [
        kinds_of_text(encodings[place], 0, counts=counts, roles=None if roles is None else roles[place])
        for place in places
    ]
    causal = classifier.checkpoint.config.model.causal
    marks = np.zeros((len(stories), len(kinds), 3))  # clauses that the text holds, weight on them, sharpness
    for n, patterns in head_patterns(classifier, kinds, batch_size=BATCH):
        for number, story in enumerate(stories):
            pattern = patterns[story.layer, story.head]  # T T
            marks[number, n] = *_followed(pattern, story, kinds[n], causal=causal), pattern.max(axis=1).mean()
    return [places[max(range(len(kinds)), key=lambda n: tuple(of_story[n]))] for of_story in marks]


def _followed(pattern: NDArray[np.float32], story: Story, text: TextKinds, *, causal: bool) -> tuple[float, float]:
    """How many clauses the text holds, and the weight on the keys that they name, mean over these clauses."""
    masks = [named for named in clause_masks(story.clauses, text, causal=causal) if named.any()]
    weights = [pattern[named].sum() / named.any(axis=1).sum() for named in masks]
    return float(len(masks)), float(np.mean(weights)) if weights else 0.0
