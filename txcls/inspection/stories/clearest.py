"""The text that shows a head's story best."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.data.batches import batches_by_length
from txcls.data.types import Roles
from txcls.inspection.stories.kinds import TextKinds, kinds_of_text
from txcls.inspection.stories.story import BATCH, Story, clause_masks
from txcls.predictor import Predictor, padded
from txcls.tap import trace


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
    encoded = [classifier.encoder.encode(text) for text in texts]
    places = [place for place, one in enumerate(encoded) if one.has_words]
    if not places:
        raise ValueError(f"none of {len(texts)} texts has a token")
    counts = np.zeros(classifier.encoder.vocab_size, dtype=np.int64)
    kinds = [
        kinds_of_text(encoded[place], 0, counts=counts, roles=None if roles is None else roles[place])
        for place in places
    ]
    config = classifier.checkpoint.config.model
    marks = np.zeros((len(stories), len(kinds), 3))  # clauses held, weight on them, sharpness
    names = [f"layers.{layer}.attn.pattern" for layer in range(config.n_layers)]
    for batch in batches_by_length(map(len, kinds), batch_size=BATCH):
        with trace(record=names) as opened:
            classifier.logits(padded([kinds[n].ids.tolist() for n in batch]))
        patterns = torch.stack([opened[name] for name in names], dim=1).numpy()  # B L H T T
        for pattern, n in zip(patterns, batch, strict=True):
            size = len(kinds[n])
            for s, story in enumerate(stories):
                own = pattern[story.layer, story.head, :size, :size]  # T T
                marks[s, n] = *_followed(own, story, kinds[n], causal=config.causal), own.max(axis=1).mean()
    return [places[max(range(len(kinds)), key=lambda n: tuple(of_story[n]))] for of_story in marks]


def _followed(pattern: NDArray[np.float32], story: Story, text: TextKinds, *, causal: bool) -> tuple[float, float]:
    """How many clauses the text holds, and the weight on the keys that they name, mean over these clauses."""
    masks = [named for named in clause_masks(story.clauses, text, causal=causal) if named.any()]
    weights = [pattern[named].sum() / named.any(axis=1).sum() for named in masks]
    return float(len(masks)), float(np.mean(weights)) if weights else 0.0
