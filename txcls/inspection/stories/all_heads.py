"""The weights of all heads of a model replaced together: how much of its accuracy needs queries at all?"""

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
        n: texts.
        accuracy: with the heads' own weights.
        uniform: with uniform weights.
        lists: with every head's word list and distances: without queries.
        control: with these lists shuffled.
        stories: with every head's story; uniform weights for queries that it is not about, and the lists of heads whose
            weights make no difference alone. None where a story names the model's answer, which it would then give.
        share: how much of what uniform weights lose the lists bring back; nan where nothing is lost.
        interval: 95 % of the shares over texts drawn anew.
        control_share: how much the control brings back.
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
        classifier: nothing in it is changed.
        texts: with labels, none of which the stories were chosen on.
        stories: of every head.
        lists: of every head, in the same order.
        counts: (V,) how often training texts hold each id.
        seed: of the control and of the bootstrap.
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
