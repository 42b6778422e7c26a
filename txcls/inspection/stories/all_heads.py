"""Replace the attention weights of all heads together: how much accuracy requires attention that depends on queries?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from txcls.inference.predictor import Predictor
from txcls.inspection.stories.kinds import PREDICTION_ROLES, Bools, TextKinds
from txcls.inspection.stories.lists import Lists
from txcls.inspection.stories.measure_story import CONTROL_DRAWS, MeasuredStory, Shares, correct_predictions
from txcls.inspection.stories.story import Story, weights_of


@dataclass(frozen=True)
class AllHeads:
    """The accuracy on n texts with the weights of all heads replaced together.

    Attributes:
        n: number of texts.
        accuracy: with the heads' own weights.
        uniform: with uniform weights.
        lists: with every head's word list and distance list, that is, independently of queries.
        control: with these lists shuffled, the mean over `CONTROL_DRAWS` draws.
        stories: with every head's story; queries outside a story get uniform weights, and idle heads get their lists.
            None if a story refers to the model's prediction, since its weights would leak the prediction.
        share: fraction of the accuracy lost with uniform weights that the lists restore; NaN if nothing is lost.
        interval: 95 % bootstrap interval of `share` over texts.
        control_share: fraction that the control restores.
        control_range: the lowest and the highest accuracy over the draws of the control; None for one draw.
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
    control_range: tuple[float, float] | None = None


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
        stories, lists: for every head, in the same order.
        counts: (V,) number of occurrences of each id in the training texts.
        seed: seed for the control and the bootstrap.
    """
    causal = classifier.checkpoint.config.model.causal
    random = np.random.default_rng(seed)
    by_lists = [
        Story(measured.story.layer, measured.story.head, lists=of_head)
        for measured, of_head in zip(stories, lists, strict=True)
    ]

    def correct_with(replacements: Iterable[Story]) -> Bools:
        weights = {
            (story.layer, story.head): weights_of(story, texts, causal=causal, uniform_for=all_queries)
            for story, all_queries in zip(replacements, by_lists, strict=True)
        }
        return correct_predictions(classifier, texts, weights)

    restored = correct_with(by_lists)
    shuffled = [
        [replace(story, lists=of_head.shuffled(counts, random)) for story, of_head in zip(by_lists, lists, strict=True)]
        for _ in range(CONTROL_DRAWS)
    ]
    shares = Shares.of(
        correct_predictions(classifier, texts),
        correct_with(replace(story, lists=Lists(None, None)) for story in by_lists),
        restored,
        [correct_with(of_draw) for of_draw in shuffled],
        random,
    )
    by_stories = [
        of_lists if measured.verdict == "idle" else measured.story
        for measured, of_lists in zip(stories, by_lists, strict=True)
    ]
    leaks_prediction = any(
        PREDICTION_ROLES & {clause.query, clause.key} for story in by_stories for clause in story.clauses
    )
    return AllHeads(
        n=len(texts),
        accuracy=shares.unmodified,
        uniform=shares.uniform,
        lists=float(restored.mean()),
        control=shares.control,
        stories=None if leaks_prediction else float(correct_with(by_stories).mean()),
        share=shares.share,
        interval=shares.interval,
        control_share=shares.control_share,
        control_range=shares.control_range,
    )
