"""The text in which a head follows its story most closely."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from txcls.data.types import Roles
from txcls.inspection.stories.kinds import TextKinds, head_patterns, kinds_of_text, roles_by_answer
from txcls.inspection.stories.story import BATCH, Story, clause_masks
from txcls.predictor import Predictor


def clearest_texts(
    classifier: Predictor, stories: Sequence[Story], texts: Sequence[str], *, roles: Sequence[Roles] | None = None
) -> list[int]:
    """For each story, the index of the text in which its head follows it most closely.

    For clauses, this is the text that matches the most clauses of the story; ties are broken by the weight on the keys
    that the clauses name, averaged over clauses. For lists, it is the text whose pattern overlaps most with theirs. If
    no text matches any clause, it is the text with the sharpest attention.

    Args:
        stories: one for each head of interest.
        texts: at least one with a token.
        roles: the roles in each text. Typical and rare words are not known here, so clauses about them never match.

    Raises:
        ValueError: no text has a token.
    """
    encodings = [classifier.encoder.encode(text) for text in texts]
    places = [place for place, encoding in enumerate(encodings) if encoding.has_words]
    if not places:
        raise ValueError(f"none of {len(texts)} texts has a token")
    counts = np.zeros(classifier.encoder.vocab_size, dtype=np.int64)
    by_answer = None if roles is None else roles_by_answer(classifier, texts, roles)
    kinds = [
        kinds_of_text(encodings[place], 0, counts=counts, roles=None if by_answer is None else by_answer[place])
        for place in places
    ]
    causal = classifier.checkpoint.config.model.causal
    marks = np.zeros((len(stories), len(kinds), 3))  # number of matching clauses, weight on their keys, sharpness
    for n, patterns in head_patterns(classifier, kinds, batch_size=BATCH):
        for number, story in enumerate(stories):
            pattern = patterns[story.layer, story.head]  # T T
            marks[number, n] = *_followed(pattern, story, kinds[n], causal=causal), pattern.max(axis=1).mean()
    return [places[max(range(len(kinds)), key=lambda n: tuple(of_story[n]))] for of_story in marks]


def _followed(pattern: NDArray[np.float32], story: Story, text: TextKinds, *, causal: bool) -> tuple[float, float]:
    """The number of clauses that match the text, and the weight on the keys they name, averaged over these clauses."""
    if story.lists is not None:
        return 1.0, float(np.minimum(pattern, story.weights(text, causal=causal)).sum(axis=1).mean())
    masks = [named for named in clause_masks(story.clauses, text, causal=causal) if named.any()]
    weights = [pattern[named].sum() / named.any(axis=1).sum() for named in masks]
    return float(len(masks)), float(np.mean(weights)) if weights else 0.0
