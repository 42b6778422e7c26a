"""The search for each head's story, on validation texts."""

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
"""Maximum number of clauses in a story."""
MAX_TRIED = 24
"""Maximum number of clauses tried in each round: those with the most attention above chance."""
MIN_COVERAGE = 0.05
"""Minimum fraction of the texts that must match a clause."""


def find_stories(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    *,
    lists: Sequence[FittedLists] | None = None,
    on_head: Callable[[int, int], None] | None = None,
) -> list[Story]:
    """A story for every head, layer by layer: a hypothesis for `measure_story`, which needs other texts.

    For a head that loses accuracy when all of its weights are made uniform, the simplest hypothesis is tried first:
    that the query makes no difference (`lists`). If this restores too little accuracy to be confirmed, or the data set
    gives the roles of words, which are more informative than lists, clauses are chosen as well. They are chosen
    greedily among the pairs of kinds with attention above chance, to maximise the accuracy that the story restores
    minus the accuracy that remains lost: first among the clauses that describe most of the attention, then, if these
    restore too little, among all candidates. The better of the two stories is returned. Heads that lose no accuracy
    are idle; their story is the clause that describes their attention most clearly.

    Args:
        texts: validation texts, at least one; each head that is not idle takes up to 150 passes over them.
        lists: for every head, fitted on training texts; None to try only clauses.
        on_head: called with the number of heads done and their total.

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
    """At least one clause, sorted by attention above chance in descending order; and the clauses that describe most of
    their queries' attention, as a confirmed story must."""
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
    """The search for one head's story."""

    def __init__(self, classifier: Predictor, texts: Sequence[TextKinds], own: float, layer: int, head: int) -> None:
        self.classifier, self.texts, self.own, self.layer, self.head = classifier, texts, own, layer, head
        self.has_roles = any(kind not in TOKEN_KINDS for kind in texts[0].kinds)
        self.causal = classifier.checkpoint.config.model.causal
        self.uniform_accuracies: dict[bytes, float] = {}
        """Cached accuracy with uniform weights, keyed by the set of queries that get them."""

    def best(self, candidates: Sequence[Clause], clear: Sequence[Clause], lists: FittedLists | None) -> Story:
        """The simplest story that restores enough accuracy, or else the story with the best score."""
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
        """By word only or by distance only, or by both if that scores clearly higher."""
        words, distances, both = (
            Story(self.layer, self.head, lists=one) for one in (lists.words, lists.distances, lists.both)
        )
        alone = max(words, distances, key=self._score)
        return both if self._score(both) >= self._score(alone) + MIN_GAIN * (self.own - self._even(both)) else alone

    def _chosen(self, candidates: Sequence[Clause]) -> Story:
        """Clauses chosen greedily; none if there are no candidates."""
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
        """Accuracy that the story restores over uniform weights, minus the accuracy that remains lost; minus infinity
        if uniform weights for the story's queries cost nothing."""
        if not (story.clauses or story.lists) or self.own - self._even(story) < IDLE:
            return -np.inf
        restored = self._restored(story)
        return restored - self._even(story) - max(0.0, self.own - restored)

    def _share(self, story: Story) -> float:
        """The fraction of the accuracy lost with uniform weights that the story restores; 0 if little is lost."""
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
