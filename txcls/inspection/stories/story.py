"""Stories of heads: hypotheses that say which weights a head gives.

A story states to which keys the queries of some kind attend (`Clause`), or how much weight each key gets regardless of
the query (`Lists`). `measure_story.py` tests it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from txcls.inspection.stories.kinds import PREDICTION_ROLES, Bools, TextKinds, keys_of, queries_of
from txcls.inspection.stories.lists import Floats, Lists


@dataclass(frozen=True, slots=True)
class Clause:
    """Queries of one kind attend to keys of another kind (`txcls.inspection.stories.kinds`)."""

    query: str
    key: str

    def __str__(self) -> str:
        return f"{self.query} → {self.key}"


@dataclass(frozen=True, slots=True)
class Story:
    """A hypothesis about one head: a clause for each kind of query that it covers, or `lists` for all queries."""

    layer: int
    head: int
    clauses: tuple[Clause, ...] = ()
    lists: Lists | None = None

    def __str__(self) -> str:
        return "; ".join(map(str, self.clauses)) if self.lists is None else str(self.lists)

    @property
    def kinds(self) -> set[str]:
        """The kinds of its queries and keys, or the names of its lists."""
        if self.lists is not None:
            return set(self.lists.names)
        return {kind for clause in self.clauses for kind in (clause.query, clause.key)}

    @property
    def key_is_answer(self) -> bool:
        """Whether a key depends on the prediction, so that the story cannot show how the prediction is found."""
        return any(clause.key in PREDICTION_ROLES for clause in self.clauses)

    @property
    def has_leak(self) -> bool:
        """Whether a query depends on the prediction, as in older records; such a story is not shown."""
        return any(clause.query in PREDICTION_ROLES for clause in self.clauses)

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
    """For each clause, which keys (columns) it selects for each query (row), (T, T).

    A query of two kinds follows the first clause that selects a key for it. With `causal`, later keys are excluded.
    """
    uncovered = np.ones(len(text), dtype=bool)  # T: queries for which no clause has selected a key yet
    masks = []
    for clause in clauses:
        keys = keys_of(clause.key, text)  # T T
        mask = (queries_of(clause.query, text) & uncovered)[:, None] & (np.tril(keys) if causal else keys)
        uncovered = uncovered & ~mask.any(axis=1)
        masks.append(mask)
    return masks


def story_masks(clauses: Sequence[Clause], text: TextKinds, *, causal: bool = False) -> Bools:
    """The union of the clauses' masks, (T, T); a query with an empty row is not covered by the story."""
    mask: Bools = np.any(clause_masks(clauses, text, causal=causal), axis=0)
    return mask


def spread(mask: Bools) -> Floats:
    """Uniform weights over the selected keys (columns) of each query (row), (T, T); zero in rows without a key."""
    weights: Floats = (mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)).astype(np.float32)
    return weights


def uniform(queries: Bools, *, causal: bool = False) -> Floats:
    """Uniform weights over all keys for these queries (T,), (T, T); zero in the other rows."""
    mask = np.broadcast_to(queries[:, None], (len(queries), len(queries)))
    return spread(np.tril(mask) if causal else mask)


Weights = Callable[[int], Floats]
"""The weights (T, T) that replace a head's in the text with a given index; its own weights remain in zero rows."""


def weights_of(story: Story, texts: Sequence[TextKinds], *, causal: bool, uniform_for: Story | None = None) -> Weights:
    """A story's weights in each text; the queries that only `uniform_for` covers get uniform weights."""

    def weights(n: int) -> Floats:
        of_story = story.weights(texts[n], causal=causal)
        if uniform_for is None:
            return of_story
        return of_story + uniform(uniform_for.queries(texts[n], causal=causal) & ~of_story.any(axis=1), causal=causal)

    return weights


def uniform_weights(story: Story, texts: Sequence[TextKinds], *, causal: bool) -> Weights:
    """Uniform weights for the queries of a story, in each text."""
    return lambda n: uniform(story.queries(texts[n], causal=causal), causal=causal)
