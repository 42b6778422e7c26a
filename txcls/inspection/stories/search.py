"""The search for each head's story, on validation texts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from txcls.inference.predictor import Predictor
from txcls.inspection.stories.kinds import ANY, PREDICTION_ROLES, TOKEN_KINDS, KindsTable, TextKinds, measure_kinds
from txcls.inspection.stories.lists import FittedLists
from txcls.inspection.stories.measure_story import MIN_SHARE_GAIN, attention_on_keys, correct_predictions
from txcls.inspection.stories.story import Clause, Story, Weights, uniform_weights, weights_of
from txcls.inspection.stories.verdicts import ATTENDS, CONFIRMED, IDLE

MAX_CLAUSES = 3
"""Maximum number of clauses in a story."""
MAX_TRIED = 24
"""Maximum number of clauses tried in each round: those with the highest attention above chance."""
MIN_COVERAGE = 0.05
"""Minimum fraction of the texts that must match a clause."""


def find_stories(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    *,
    lists: Sequence[FittedLists] | None = None,
    on_head: Callable[[int, int], None] | None = None,
) -> list[Story]:
    """A story for every head, layer by layer: a hypothesis for `measure_story` to test on other texts.

    If uniform weights cost less than `IDLE`, a head is idle; its story is the clause with the highest attention above
    chance. For other heads, the simplest hypothesis is tried first: that the query does not matter (`lists`). If the
    lists restore too little accuracy or overlap too little with the head's weights to be confirmed, or if the data set
    gives the roles of words (which say more), clauses are chosen as well, and the better of the two stories is
    returned. A greedy search chooses clauses that maximise the accuracy restored minus the accuracy still lost: first
    among the clauses that describe most of the attention, then, if these restore too little, among all pairs of kinds
    with attention above chance.

    Args:
        texts: validation texts; each head that is not idle takes up to 150 passes over them.
        lists: for every head, fitted on training texts; None to try only clauses.
        on_head: called with the number of heads done and their total.

    Raises:
        ValueError: there are no texts.
    """
    config = classifier.checkpoint.config.model
    table = measure_kinds(classifier, texts)
    accuracy = float(correct_predictions(classifier, texts).mean())
    stories: list[Story] = []
    for layer, head in np.ndindex(config.n_layers, config.n_heads):
        search = _Search(classifier, texts, accuracy, layer, head)
        stories.append(search.best(*_candidates(table, layer, head), None if lists is None else lists[len(stories)]))
        if on_head is not None:
            on_head(len(stories), config.n_layers * config.n_heads)
    return stories


def _candidates(table: KindsTable, layer: int, head: int) -> tuple[list[Clause], list[Clause]]:
    """The clauses with attention above chance, highest first, but at least one; and those of them that describe most
    of their queries' attention, as a confirmed story must. Queries do not depend on the prediction."""
    attention = table.attention[layer, head]  # Q K
    is_allowed = np.array([query not in PREDICTION_ROLES for query in table.queries])[:, None]  # Q 1
    above_chance = np.where(is_allowed & (table.coverage >= MIN_COVERAGE), attention - table.chance, -np.inf)
    order = [n for n in np.argsort(-above_chance, axis=None, kind="stable") if above_chance.flat[n] > 0]
    order = order or [int(above_chance.argmax())]
    clauses = [
        (Clause(table.queries[n // len(table.keys)], table.keys[n % len(table.keys)]), attention.flat[n]) for n in order
    ]
    clear = [clause for clause, weight in clauses if weight >= ATTENDS]
    return [clause for clause, _ in clauses[:MAX_TRIED]], clear[:MAX_TRIED]


class _Search:
    """The search for one head's story."""

    def __init__(
        self, classifier: Predictor, texts: Sequence[TextKinds], accuracy: float, layer: int, head: int
    ) -> None:
        self.classifier, self.texts, self.accuracy, self.layer, self.head = classifier, texts, accuracy, layer, head
        self.has_roles = any(kind not in TOKEN_KINDS for kind in texts[0].kinds)
        self.causal = classifier.checkpoint.config.model.causal
        self.uniform_accuracies: dict[bytes, float] = {}
        """Cached accuracy with uniform weights, keyed by the set of queries that get them."""

    def best(self, candidates: Sequence[Clause], clear: Sequence[Clause], lists: FittedLists | None) -> Story:
        """The simplest story that restores enough accuracy, or else the story with the best score."""
        all_queries = Story(self.layer, self.head, (Clause(ANY, "itself"),))
        if self._lost(all_queries) < IDLE:
            return replace(all_queries, clauses=tuple(candidates[:1]))
        without_queries = [] if lists is None else [self._best_lists(lists)]
        for story in without_queries:
            [(overlap, _)] = attention_on_keys(self.classifier, self.texts, story)
            if not self.has_roles and overlap >= ATTENDS and self._share(story) >= CONFIRMED:
                return story
        by_clauses = self._chosen(clear)
        if not by_clauses.clauses or self._share(by_clauses) < CONFIRMED:
            by_clauses = self._chosen(candidates)
        return max(*without_queries, by_clauses, key=self._score) if without_queries else by_clauses

    def _best_lists(self, lists: FittedLists) -> Story:
        """The story with the word list or the distance list, or with both if that scores clearly higher."""
        words, distances, both = (
            Story(self.layer, self.head, lists=variant) for variant in (lists.words, lists.distances, lists.both)
        )
        single = max(words, distances, key=self._score)
        return both if self._score(both) >= self._score(single) + MIN_SHARE_GAIN * self._lost(both) else single

    def _chosen(self, candidates: Sequence[Clause]) -> Story:
        """Clauses chosen greedily; none if there are no candidates."""
        chosen = Story(self.layer, self.head)
        best, lost = -np.inf, self._lost(replace(chosen, clauses=(Clause(ANY, "itself"),)))
        while len(chosen.clauses) < MAX_CLAUSES:
            longer = [
                replace(chosen, clauses=(*chosen.clauses, clause))
                for clause in candidates
                if clause not in chosen.clauses
            ]
            scores = [self._score(story) for story in longer]
            if max(scores, default=-np.inf) < best + MIN_SHARE_GAIN * lost or max(scores, default=-np.inf) == -np.inf:
                break
            chosen, best = longer[int(np.argmax(scores))], max(scores)
        return chosen

    def _score(self, story: Story) -> float:
        """The accuracy that the story restores, minus the accuracy that remains lost; minus infinity if uniform weights
        for the story's queries cost nothing."""
        if not (story.clauses or story.lists) or self._lost(story) < IDLE:
            return -np.inf
        restored = self._restored(story)
        return restored - self._uniform(story) - max(0.0, self.accuracy - restored)

    def _share(self, story: Story) -> float:
        """The fraction of the accuracy lost with uniform weights that the story restores; 0 if little is lost."""
        lost = self._lost(story)
        return (self._restored(story) - self._uniform(story)) / lost if lost >= IDLE else 0.0

    def _lost(self, story: Story) -> float:
        """The accuracy lost with uniform weights for the story's queries."""
        return self.accuracy - self._uniform(story)

    def _restored(self, story: Story) -> float:
        """The accuracy with the story's weights."""
        return self._accuracy_with(weights_of(story, self.texts, causal=self.causal))

    def _uniform(self, story: Story) -> float:
        """The accuracy with uniform weights for the story's queries."""
        queries = np.concatenate([story.queries(text, causal=self.causal) for text in self.texts])
        key = np.packbits(queries).tobytes()
        if key not in self.uniform_accuracies:
            weights = uniform_weights(story, self.texts, causal=self.causal)
            self.uniform_accuracies[key] = self._accuracy_with(weights)
        return self.uniform_accuracies[key]

    def _accuracy_with(self, weights: Weights) -> float:
        replaced = {(self.layer, self.head): weights}
        return float(correct_predictions(self.classifier, self.texts, replaced).mean())
