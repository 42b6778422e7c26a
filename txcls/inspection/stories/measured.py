"""Is it what decides? The weights that a story is about are replaced, and the accuracy is compared.

The weights of the queries that the story is about are replaced three times: all on the keys that the story names,
evenly over all keys, and, as a control, on as many other keys. If the story is true and complete, the first brings back
the accuracy that even weights lose, and the control does not. The limits below were set before anything was measured,
except ATTENDS, which was added after a first look at results.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.stories.kinds import Bools, TextKinds
from txcls.inspection.stories.story import Story, attention_of, even_masks, right_answers, story_masks
from txcls.predictor import Predictor

Verdict = Literal["confirmed", "part of it", "wrong", "idle"]

CONFIRMED = 0.8
"""Least share of the loss that a confirmed story brings back."""
MOST_BY_CONTROL = 0.3
"""Largest share that the control may bring back for a story to be confirmed; the low end of the story's own interval
must lie above it too, so that a few lucky texts confirm nothing."""
PART = 0.3
"""Least share that part of a story brings back; it must also bring back more than the control."""
ATTENDS = 0.5
"""Least weight that the head itself puts on the keys of every clause, mean over its queries, for a confirmed story. All
weight on the winner brings the accuracy back in any head that is read, also in one that does not attend to it."""
IDLE = 0.005
"""Where even weights cost less accuracy than this, the head is idle for these queries."""
RESAMPLES = 1000
"""How many times texts are drawn anew for the interval of the share."""


@dataclass(frozen=True)
class MeasuredStory:
    """The accuracy on n texts with each kind of weights, and how much of the loss the story brings back.

    Attributes:
        story: what was tested.
        n: texts that hold both a query and a key of the story; the accuracies are over these.
        held: their share of all texts.
        accuracy: with the head's own weights.
        even: with even weights for the story's queries.
        told: with all weight on the keys that the story names.
        control: with all weight on as many other keys.
        share: (told - even) / (accuracy - even); nan where nothing is lost.
        interval: 95 % of the shares over texts drawn anew (bootstrap); nan where most draws lose nothing.
        control_share: the same as `share`, of the control.
        attention: for each clause the weight that the head itself puts on the keys it names, mean over its queries.
        chance: for each clause what even weights would put there.
        verdict: by the limits of this module.
    """

    story: Story
    n: int
    held: float
    accuracy: float
    even: float
    told: float
    control: float
    share: float
    interval: tuple[float, float]
    control_share: float
    attention: tuple[float, ...]
    chance: tuple[float, ...]
    verdict: Verdict

    @property
    def brought_back(self) -> float:
        """The accuracy on the n texts that the story's weights have over even ones."""
        return self.told - self.even


def measure_story(classifier: Predictor, texts: Sequence[TextKinds], story: Story, *, seed: int = 0) -> MeasuredStory:
    """Replace the weights that a story is about, and measure what that costs.

    The control puts each query's weight on as many keys that the story does not name. For each key that it names, one
    is drawn among those whose token is about as frequent in training texts (at most twice or half as frequent), or
    among all others where there is none. So a story about a team name is compared with other teams' names.

    Args:
        classifier: nothing in it is changed.
        texts: with labels, none of which the story was chosen on; those without a query and a key of the story are
            left out.
        story: of one head.
        seed: of the control's keys and of the bootstrap.

    Raises:
        ValueError: no text holds a query and a key of the story, or there is no such head.
    """
    config = classifier.checkpoint.config.model
    if not (0 <= story.layer < config.n_layers and 0 <= story.head < config.n_heads):
        raise ValueError(
            f"got layer {story.layer}, head {story.head}; the model has {config.n_layers} layers of {config.n_heads}"
        )
    masks = [story_masks(story.clauses, text, causal=config.causal) for text in texts]
    about = [(text, named) for text, named in zip(texts, masks, strict=True) if named.any()]
    if not about:
        raise ValueError(f"no text holds what the story is about: {story}")
    random = np.random.default_rng(seed)
    weights: dict[str, list[Bools] | None] = {
        "own": None,
        "even": [even_masks(named, causal=config.causal) for _, named in about],
        "told": [named for _, named in about],
        "control": [_like_these(named, text, random, causal=config.causal) for text, named in about],
    }
    right = {
        kind: right_answers(classifier, [text for text, _ in about], layer=story.layer, head=story.head, masks=of)
        for kind, of in weights.items()
    }
    own, even, told, control = (float(right[kind].mean()) for kind in ("own", "even", "told", "control"))
    share, by_control = _share(own, even, told), _share(own, even, control)
    interval = _bootstrap(right, random)
    attention, chance = zip(*attention_of(classifier, [text for text, _ in about], story), strict=True)
    return MeasuredStory(
        story=story,
        n=len(about),
        held=len(about) / len(texts),
        accuracy=own,
        even=even,
        told=told,
        control=control,
        share=share,
        interval=interval,
        control_share=by_control,
        attention=attention,
        chance=chance,
        verdict=verdict_of(
            own - even, share=share, low=interval[0], control_share=by_control, attention=float(np.min(attention))
        ),
    )


def verdict_of(lost: float, *, share: float, low: float, control_share: float, attention: float) -> Verdict:
    """The verdict.

    Args:
        lost: the accuracy that even weights cost.
        share: how much of it the story brings back.
        low: the low end of the interval of `share`.
        control_share: how much the control brings back.
        attention: the weight that the head itself puts on the keys of the clause that gets least.
    """
    if lost < IDLE:
        return "idle"
    if share >= CONFIRMED and control_share <= MOST_BY_CONTROL < low and attention >= ATTENDS:
        return "confirmed"
    return "part of it" if share >= PART and share > control_share else "wrong"


def _like_these(named: Bools, text: TextKinds, random: np.random.Generator, *, causal: bool) -> Bools:
    """For each query of the story as many keys that it does not name, like them in frequency where possible, (T, T)."""
    n = len(named)
    frequency = np.log2(text.counts + 1)  # T
    unlike = np.abs(frequency[:, None] - frequency) > 1  # T T
    seen = np.tril(np.ones((n, n), dtype=bool)) if causal else np.ones((n, n), dtype=bool)
    left = seen & ~named
    left = np.where(left.any(axis=1, keepdims=True), left, seen)  # T T: the keys to draw from
    drawn = np.zeros_like(named)
    number = np.where(named, named.cumsum(axis=1), 0)  # T T: 1 for the first key of a row, 2 for the second, …
    for nth in range(1, int(number.max()) + 1):
        rows = np.flatnonzero((number == nth).any(axis=1) & left.any(axis=1))
        keys = (number[rows] == nth).argmax(axis=1)
        # The smallest number wins: unlike keys after those alike, and keys that cannot be drawn after these.
        chosen = (random.random((len(rows), n)) + unlike[keys] + 2 * ~left[rows]).argmin(axis=1)
        drawn[rows, chosen], left[rows, chosen] = True, False
    return drawn


def _share(own: float, even: float, other: float) -> float:
    """How much of what even weights lose is brought back."""
    return (other - even) / (own - even) if own > even else float("nan")


def _bootstrap(right: Mapping[str, NDArray[np.bool_]], random: np.random.Generator) -> tuple[float, float]:
    """95 % of the story's shares over texts drawn anew with replacement; nan where most draws lose nothing."""
    own, even, told = (right[kind].astype(int) for kind in ("own", "even", "told"))
    n = len(own)
    counts = random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # R N
    lost, back = counts @ (own - even), counts @ (told - even)  # R: whole texts, so that none lost is exactly 0
    shares = back[lost > 0] / lost[lost > 0]
    if len(shares) < RESAMPLES / 2:
        return float("nan"), float("nan")
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)
