"""The search for a story of each head, on validation texts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from txcls.inspection.stories.kinds import ANY, TOKEN_KINDS, KindsTable, TextKinds, measure_kinds
from txcls.inspection.stories.lists import FittedLists
from txcls.inspection.stories.story import (
    ATTENDS,
    CONFIRMED,
    IDLE,
    MIN_GAIN,
    Clause,
    Story,
    Weights,
    attention_of,
    right_answers,
    uniform_weights,
    weights_of,
)
from txcls.predictor import Predictor

MAX_CLAUSES = 3
"""Most clauses of a story."""
MAX_TRIED = 24
"""Clauses tried in each round, those with the most attention above chance."""
MIN_COVERAGE = 0.05
"""Least share of the texts that hold what a clause is about."""


def find_stories(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    *,
    lists: Sequence[FittedLists] | None = None,
    on_head: Callable[[int, int], None] | None = None,
) -> list[Story]:
    """A story for every head, layer by layer: a hypothesis for `measure_story`, which needs other texts.

    Of a head that loses accuracy when all of its weights are made uniform, the simplest hypothesis is tried first: that
    queries make no difference (`lists`). Where that brings too little back to be confirmed, or the data set names the
    roles of words, which say more than lists, clauses are chosen among
    the pairs of kinds to which the head gives more attention than chance would, greedily, each by how much accuracy
    the story brings back with it less what the story then still loses: first among the clauses that describe most of
    the attention, then, if these bring too little back, among all candidates. Of both stories the better one counts.
    Other heads are idle; their story is what is clearest in their attention.

    Args:
        classifier: nothing in it is changed.
        texts: validation texts, at least one; more texts cost more time, up to 150 passes over them for each head that
            is not idle.
        lists: of every head, fitted on training texts; None to try clauses alone.
        on_head: called with the heads done and their number.

    Raises:
        ValueError: there are no texts.
    """
    config = classifier.checkpoint.config.model
    table = measure_kinds(classifier, texts)
    own = float(right_answers(classifier, texts).mean())
    stories: list[Story] = []
    for layer, head in np.ndindex(config.n_layers, config.n_heads):
        search = _Search(classifier, texts, own, layer, head)
        stories.append(search.best(*_candidates(table, layer, head), None if lists is None else lists[len(stories)]))
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
    """The choice of one head's story."""

    def __init__(self, classifier: Predictor, texts: Sequence[TextKinds], own: float, layer: int, head: int) -> None:
        self.classifier, self.texts, self.own, self.layer, self.head = classifier, texts, own, layer, head
        self.has_roles = any(kind not in TOKEN_KINDS for kind in texts[0].kinds)
        self.causal = classifier.checkpoint.config.model.causal
        self.uniform_accuracies: dict[bytes, float] = {}
        """Accuracy with uniform weights, by the queries that have them."""

    def best(self, candidates: Sequence[Clause], clear: Sequence[Clause], lists: FittedLists | None) -> Story:
        """The simplest story that brings enough back, or else the one that brings most back."""
        every = Story(self.layer, self.head, (Clause(ANY, "itself"),))
        if self.own - self._even(every) < IDLE:
            return replace(every, clauses=tuple(candidates[:1]))
        without_queries = [] if lists is None else [self._best_lists(lists)]
        for story in without_queries:
            [(overlap, _)] = attention_of(self.classifier, self.texts, story)
            if not self.has_roles and overlap >= ATTENDS and self._share(story) >= CONFIRMED:
                return story
        by_clauses = self._chosen(clear)
        if not by_clauses.clauses or self._share(by_clauses) < CONFIRMED:
            by_clauses = self._chosen(candidates)
        return max(*without_queries, by_clauses, key=self._score) if without_queries else by_clauses

    def _best_lists(self, lists: FittedLists) -> Story:
        """By word or by distance alone, or by both if that brings clearly more back."""
        words, distances, both = (
            Story(self.layer, self.head, lists=one) for one in (lists.words, lists.distances, lists.both)
        )
        alone = max(words, distances, key=self._score)
        return both if self._score(both) >= self._score(alone) + MIN_GAIN * (self.own - self._even(both)) else alone

    def _chosen(self, candidates: Sequence[Clause]) -> Story:
        """Clauses chosen greedily, none where there are no candidates."""
        chosen = Story(self.layer, self.head)
        best, lost = -np.inf, self.own - self._even(replace(chosen, clauses=(Clause(ANY, "itself"),)))
        while len(chosen.clauses) < MAX_CLAUSES:
            longer = [
                replace(chosen, clauses=(*chosen.clauses, clause))
                for clause in candidates
                if clause not in chosen.clauses
            ]
            scores = [self._score(story) for story in longer]
            if max(scores, default=-np.inf) < best + MIN_GAIN * lost or max(scores, default=-np.inf) == -np.inf:
                break
            chosen, best = longer[int(np.argmax(scores))], max(scores)
        return chosen

    def _score(self, story: Story) -> float:
        """Accuracy that the story brings back over uniform weights, less the accuracy that it does not bring back;
        minus infinity for a story about queries that lose nothing."""
        if not (story.clauses or story.lists) or self.own - self._even(story) < IDLE:
            return -np.inf
        restored = self._restored(story)
        return restored - self._even(story) - max(0.0, self.own - restored)

    def _share(self, story: Story) -> float:
        """The share of what uniform weights lose that the story brings back; 0 where they lose too little to count."""
        lost = self.own - self._even(story)
        return (self._restored(story) - self._even(story)) / lost if lost >= IDLE else 0.0

    def _restored(self, story: Story) -> float:
        return self._accuracy(weights_of(story, self.texts, causal=self.causal))

    def _even(self, story: Story) -> float:
        every = [story.queries(text, causal=self.causal) for text in self.texts]
        queries = np.packbits(np.concatenate(every)).tobytes()
        if queries not in self.uniform_accuracies:
            weights = uniform_weights(story, self.texts, causal=self.causal)
            self.uniform_accuracies[queries] = self._accuracy(weights)
        return self.uniform_accuracies[queries]

    def _accuracy(self, weights: Weights) -> float:
        replaced = {(self.layer, self.head): weights}
        return float(right_answers(self.classifier, self.texts, replaced).mean())
