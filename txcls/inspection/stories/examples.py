"""The text in which a head's attention matches its story best."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.data.types import Roles
from txcls.inference.predictor import Predictor
from txcls.inspection.stories.kinds import TextKinds, head_patterns, kinds_of_text, roles_by_prediction
from txcls.inspection.stories.measure_story import BATCH_TEXTS
from txcls.inspection.stories.story import Story, clause_masks


def clearest_texts(
    classifier: Predictor, stories: Sequence[Story], texts: Sequence[str], *, roles: Sequence[Roles] | None = None
) -> list[int]:
    """For each story, the index of the text in which its head's attention matches it best.

    For clauses, this is the text with the most matching clauses; ties are broken by the weight on the keys of these
    clauses. For lists, it is the text in which the head's pattern overlaps most with that of the lists. If no text has
    a matching clause, it is the text with the sharpest attention. Typical and rare words are not known here, so clauses
    about them never match.

    Raises:
        ValueError: no text contains a word.
    """
    with_words = [n for n, text in enumerate(texts) if classifier.encode(text).has_words]
    if not with_words:
        raise ValueError(f"got {len(texts)} texts without words; expected at least one text with a word")
    kinds = _kinds(
        classifier, [texts[n] for n in with_words], None if roles is None else [roles[n] for n in with_words]
    )
    causal = classifier.checkpoint.config.model.causal
    scores = np.zeros((len(stories), len(kinds), 3))  # number of matching clauses, weight on their keys, sharpness
    for n, patterns in head_patterns(classifier, kinds, batch_size=BATCH_TEXTS):
        for of_story, story in zip(scores, stories, strict=True):
            pattern = patterns[story.layer, story.head]  # T T
            of_story[n] = *_match(pattern, story, kinds[n], causal=causal), pattern.max(axis=1).mean()
    return [with_words[max(range(len(kinds)), key=lambda n: tuple(of_story[n]))] for of_story in scores]


def clearest_pair(
    classifier: Predictor, story: Story, text: str, *, roles: Roles | None = None
) -> tuple[int, int] | None:
    """The query and the key of the story's first matching clause with the most weight; None if no clause matches."""
    [kinds] = _kinds(classifier, [text], None if roles is None else [roles])
    masks = clause_masks(story.clauses, kinds, causal=classifier.checkpoint.config.model.causal)
    mask = next((mask for mask in masks if mask.any()), None)
    if mask is None:
        return None
    [(_, patterns)] = head_patterns(classifier, [kinds], batch_size=1)
    query, key = np.unravel_index(np.argmax(patterns[story.layer, story.head] * mask), mask.shape)
    return int(query), int(key)


def _kinds(classifier: Predictor, texts: Sequence[str], roles: Sequence[Roles] | None) -> list[TextKinds]:
    counts = np.zeros(classifier.tokenizer.vocab_size, dtype=np.int64)
    of_texts = [None] * len(texts) if roles is None else roles_by_prediction(classifier, texts, roles)
    return [
        kinds_of_text(classifier.encode(text), 0, counts=counts, roles=of_text)
        for text, of_text in zip(texts, of_texts, strict=True)
    ]


def _match(pattern: NDArray[np.float32], story: Story, text: TextKinds, *, causal: bool) -> tuple[float, float]:
    """The number of clauses that match the text, and the weight on their keys, averaged over these clauses.

    For a story with lists: 1, and the overlap of the two patterns, averaged over queries.
    """
    if story.lists is not None:
        return 1.0, float(np.minimum(pattern, story.weights(text, causal=causal)).sum(axis=1).mean())
    masks = [mask for mask in clause_masks(story.clauses, text, causal=causal) if mask.any()]
    weights = [pattern[mask].sum() / mask.any(axis=1).sum() for mask in masks]
    return float(len(masks)), float(np.mean(weights)) if weights else 0.0
