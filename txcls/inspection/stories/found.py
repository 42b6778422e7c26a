"""Which story could a head have? Proposed from its attention, chosen by what it brings back; measured elsewhere."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from txcls.inspection.stories.kinds import ANY, Bools, TextKinds
from txcls.inspection.stories.measured import ATTENDS, CONFIRMED, IDLE
from txcls.inspection.stories.story import Clause, Story, even_masks, right_answers, story_masks
from txcls.inspection.stories.table import KindsTable, measure_kinds
from txcls.predictor import Predictor

MOST_CLAUSES = 3
"""Most clauses of a story."""
MOST_TRIED = 24
"""Clauses tried in each round, those with the most attention above chance."""
LEAST_HELD = 0.05
"""Least share of the texts that hold what a clause is about."""
LEAST_GAIN = 0.05
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
    given = table.attention[layer, head]  # Q K
    above = np.where(table.held >= LEAST_HELD, given - table.chance, -np.inf)
    order = [place for place in np.argsort(-above, axis=None, kind="stable") if above.flat[place] > 0]
    order = order or [int(above.argmax())]
    clauses = [
        (Clause(table.queries[n // len(table.keys)], table.keys[n % len(table.keys)]), given.flat[n]) for n in order
    ]
    clear = [clause for clause, weight in clauses if weight >= ATTENDS]
    return [clause for clause, _ in clauses[:MOST_TRIED]], clear[:MOST_TRIED]


class _Search:
    """The greedy choice of one head's clauses."""

    def __init__(self, classifier: Predictor, texts: Sequence[TextKinds], own: Bools, layer: int, head: int) -> None:
        self.right = partial(right_answers, classifier, texts, layer=layer, head=head)
        self.texts, self.own = texts, float(own.mean())
        self.causal = classifier.checkpoint.config.model.causal
        self.evened: dict[bytes, float] = {}
        """By the queries that were made even."""

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
        while len(chosen) < MOST_CLAUSES:
            scores = {clause: self._score((*chosen, clause)) for clause in candidates if clause not in chosen}
            found = max(scores, key=lambda clause: scores[clause], default=None)
            if found is None or scores[found] == -np.inf or scores[found] < best + LEAST_GAIN * lost:
                break
            chosen, best = (*chosen, found), scores[found]
        return chosen

    def _score(self, clauses: tuple[Clause, ...]) -> float:
        """Accuracy that the story brings back over even weights, less the accuracy that it does not bring back; minus
        infinity for a story about queries that lose nothing."""
        masks = self._masks(clauses)
        even = self._even_accuracy(masks)
        if self.own - even < IDLE:
            return -np.inf
        told = float(self.right(masks=masks).mean())
        return told - even - max(0.0, self.own - told)

    def _share(self, clauses: tuple[Clause, ...]) -> float:
        """The share of what even weights lose that the story brings back; 0 where they lose too little to count."""
        masks = self._masks(clauses)
        even = self._even_accuracy(masks)
        told = float(self.right(masks=masks).mean())
        return (told - even) / (self.own - even) if self.own - even >= IDLE else 0.0

    def _even_accuracy(self, masks: Sequence[Bools]) -> float:
        queries = np.packbits(np.concatenate([one.any(axis=1) for one in masks])).tobytes()
        if queries not in self.evened:
            evened = [even_masks(one, causal=self.causal) for one in masks]
            self.evened[queries] = float(self.right(masks=evened).mean())
        return self.evened[queries]

    def _masks(self, clauses: tuple[Clause, ...]) -> list[Bools]:
        return [story_masks(clauses, text, causal=self.causal) for text in self.texts]
