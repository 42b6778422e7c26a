"""Replacing the attention weights of all heads at once: how much accuracy needs attention that depends on the query?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.stories.kinds import NAMED, NOT_NAMED, Bools, TextKinds
from txcls.inspection.stories.lists import Lists
from txcls.inspection.stories.story import MeasuredStory, Shares, Story, right_answers, weights_of
from txcls.predictor import Predictor


@dataclass(frozen=True)
class AllHeads:
    """The accuracy on n texts with the weights of all heads replaced together.

    Attributes:
        n: number of texts.
        accuracy: with the heads' own weights.
        uniform: with uniform weights.
        lists: with every head's word list and distance list, that is, without queries.
        control: with these lists shuffled.
        stories: with every head's story; queries outside a story get uniform weights, and heads whose weights make no
            difference by themselves get their lists. None if a story refers to the model's prediction, since its
            weights would then give the prediction away.
        share: fraction of the accuracy lost with uniform weights that the lists restore; NaN if nothing is lost.
        interval: 95 % bootstrap interval of `share` over texts.
        control_share: fraction that the control restores.
    """

    n: int
    accuracy: float
    uniform: float
    lists: float
    control: float
    stories: float | None
    share: float
    interval: tuple[float, float]
    control_share: float


def measure_all_heads(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    stories: Sequence[MeasuredStory],
    lists: Sequence[Lists],
    *,
    counts: NDArray[np.int64],
    seed: int = 0,
) -> AllHeads:
    """Replace the weights of all heads together.

    Args:
        texts: labelled texts that were not used to choose the stories.
        stories: one for every head.
        lists: one for every head, in the same order.
        counts: (V,) number of occurrences of each id in the training texts.
        seed: seed for the control and the bootstrap.
    """
    causal = classifier.checkpoint.config.model.causal
    random = np.random.default_rng(seed)
    by_lists = [Story(one.story.layer, one.story.head, lists=own) for one, own in zip(stories, lists, strict=True)]
    pairs = zip(by_lists, lists, strict=True)

    def right(replaced: Iterable[Story]) -> Bools:
        weights = {
            (story.layer, story.head): weights_of(story, texts, causal=causal, among=own)
            for story, own in zip(replaced, by_lists, strict=True)
        }
        return right_answers(classifier, texts, weights)

    answers = {
        "own": right_answers(classifier, texts),
        "even": right(replace(story, lists=Lists(None, None)) for story in by_lists),
        "restored": right(by_lists),
        "control": right(replace(story, lists=own.shuffled(counts, random)) for story, own in pairs),
    }
    shares = Shares.of(answers, random)
    own_stories = [own if one.verdict == "idle" else one.story for one, own in zip(stories, by_lists, strict=True)]
    names_answer = any(clause.key in (NAMED, NOT_NAMED) for story in own_stories for clause in story.clauses)
    return AllHeads(
        n=len(texts),
        accuracy=shares.own,
        uniform=shares.even,
        lists=float(answers["restored"].mean()),
        control=float(answers["control"].mean()),
        stories=None if names_answer else float(right(own_stories).mean()),
        share=shares.share,
        interval=shares.interval,
        control_share=shares.control_share,
    )
