"""Measure a story by replacing attention weights.

The weights of the story's queries are replaced in three ways: with the story's weights, with uniform weights, and, as a
control, with weights on equally many other keys or with shuffled lists. If the story is true and complete, its weights
restore the accuracy that uniform weights lose, and the control does not (`verdicts.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from txcls.data.batches import batches_by_length
from txcls.inference.predictor import Predictor, padded
from txcls.inspection.ablation_on_rows import ChangedRows
from txcls.inspection.stories.kinds import Bools, TextKinds, head_patterns
from txcls.inspection.stories.lists import FittedLists, Floats
from txcls.inspection.stories.story import (
    Story,
    Weights,
    clause_masks,
    spread,
    story_masks,
    uniform,
    uniform_weights,
    weights_of,
)
from txcls.inspection.stories.verdicts import IDLE, Verdict, verdict_of
from txcls.tap import trace

BATCH_TEXTS = 128
"""Maximum number of texts in a batch; batches of long texts are smaller."""
CONTROL_DRAWS = 5
"""Number of shuffles of a story's lists, over which the control is averaged."""
MIN_SHARE_GAIN = 0.05
"""Minimum gain from a clause or list, as a fraction of the accuracy lost with uniform weights."""
RESAMPLES = 1000
"""Number of bootstrap resamples of the texts for the interval of the share."""


def correct_predictions(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    replaced: Mapping[tuple[int, int], Weights] | None = None,
) -> Bools:
    """Which texts are classified correctly, (N,), with the weights of each (layer, head) in `replaced` replaced."""
    is_correct = np.zeros(len(texts), dtype=bool)
    for batch in batches_by_length(map(len, texts), batch_size=BATCH_TEXTS):
        ids = padded([texts[n].ids.tolist() for n in batch])  # B T
        by_layer: dict[int, dict[int, Tensor]] = {}
        for (layer, head), weights in (replaced or {}).items():
            by_layer.setdefault(layer, {})[head] = _stacked([weights(int(n)) for n in batch])
        edit = {f"layers.{layer}.attn.pattern": _Replaced(heads) for layer, heads in by_layer.items()}
        with trace(record=(), edit=edit):
            predicted = classifier.logits(ids).argmax(dim=-1).numpy()  # B
        is_correct[batch] = predicted == np.array([texts[n].label for n in batch])
    return is_correct


def attention_on_keys(classifier: Predictor, texts: Sequence[TextKinds], story: Story) -> list[tuple[float, float]]:
    """For each clause, the weight of the head on the keys that the clause selects, and that of uniform attention.

    Averaged over the queries for which the clause selects a key; NaN if there are none. A story with lists has one
    pair: the overlaps (sums of elementwise minima) of the head's pattern with the lists' pattern and with a uniform
    pattern.
    """
    causal = classifier.checkpoint.config.model.causal
    sums = np.zeros((max(1, len(story.clauses)), 3))  # weight, uniform weight, queries
    for index, patterns in head_patterns(classifier, texts, batch_size=BATCH_TEXTS):
        pattern, text = patterns[story.layer, story.head], texts[index]  # T T
        uniform_pattern = uniform(np.ones(len(text), dtype=bool), causal=causal)
        if story.lists is not None:
            others = (story.weights(text, causal=causal), uniform_pattern)
            sums[0] += *(np.minimum(pattern, other).sum() for other in others), len(text)
            continue
        for row, mask in zip(sums, clause_masks(story.clauses, text, causal=causal), strict=True):
            row += pattern[mask].sum(), uniform_pattern[mask].sum(), mask.any(axis=1).sum()
    return [(float(weight / n), float(chance / n)) if n else (np.nan, np.nan) for weight, chance, n in sums]


class _Replaced:
    """An edit of attention patterns, (B, H, T, T), that replaces rows in some heads with nonzero rows of weights (B, N,
    N).

    The pattern is larger than the weights if the model pads all texts to one length.
    """

    def __init__(self, heads: Mapping[int, Tensor]) -> None:
        self.heads = heads

    def __call__(self, pattern: Tensor) -> Tensor:
        changed = pattern.clone()
        for head, weights in self.heads.items():
            n = weights.shape[-1]
            padded_weights = torch.nn.functional.pad(weights.to(pattern), (0, pattern.shape[-1] - n))  # B N T
            rows = weights.sum(dim=-1, keepdim=True) > 0  # B N 1
            changed[:, head, :n] = torch.where(rows, padded_weights, pattern[:, head, :n])
        return changed


def _stacked(weights: Sequence[Floats]) -> Tensor:
    """The weights of several texts as one tensor (B, T, T), with zeros for padding."""
    length = max(map(len, weights))
    stacked = np.zeros((len(weights), length, length), dtype=np.float32)
    for n, of_text in enumerate(weights):
        stacked[n, : len(of_text), : len(of_text)] = of_text
    return torch.from_numpy(stacked)


@dataclass(frozen=True)
class MeasuredStory:
    """The accuracy on n texts with each set of weights, and how much of the lost accuracy the story restores.

    Attributes:
        story: the story tested.
        n: number of texts that have a query and a key of the story; the accuracies are over these texts.
        coverage: their fraction of all texts.
        accuracy: with the head's own weights.
        uniform: with uniform weights for the story's queries.
        restored: with the story's weights.
        control: with the control's weights.
        share: (restored - uniform) / (accuracy - uniform); NaN if nothing is lost.
        interval: 95 % bootstrap interval of `share` over texts; NaN if most resamples lose nothing.
        control_share: the same as `share`, for the control.
        attention, chance: for each clause, the weight of the head, and of uniform attention, on the keys of the clause
            (`attention_on_keys`).
        control_range: for lists, the lowest and the highest accuracy over the draws of the control; None for one draw.
        is_minimal: whether each clause or list was shown to matter (`necessary_part`); False in older records.
    """

    story: Story
    n: int
    coverage: float
    accuracy: float
    uniform: float
    restored: float
    control: float
    share: float
    interval: tuple[float, float]
    control_share: float
    attention: tuple[float, ...]
    chance: tuple[float, ...]
    control_range: tuple[float, float] | None = None
    is_minimal: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict on the story (`verdict_of`); undecided if it has a leak and is not idle."""
        verdict = verdict_of(
            self.accuracy - self.uniform,
            share=self.share,
            interval=self.interval,
            control_share=self.control_share,
            attention=float(np.min(self.attention)),
        )
        return "undecided" if self.story.has_leak and verdict != "idle" else verdict

    def share_of(self, accuracy: float) -> float:
        """The fraction of the accuracy lost with uniform weights that is restored at this accuracy."""
        return (accuracy - self.uniform) / (self.accuracy - self.uniform)


def measure_story(
    classifier: Predictor,
    texts: Sequence[TextKinds],
    story: Story,
    *,
    counts: NDArray[np.int64] | None = None,
    seed: int = 0,
) -> MeasuredStory:
    """Replace the weights of the queries that a story covers, and measure the effect on accuracy.

    The control for clauses puts each query's weight on equally many keys that the story does not select. For each
    selected key, a key is drawn at random from those with a similar frequency in the training texts (from half to twice
    the frequency), or from all other keys if there are none. For example, the control for a team name is usually
    the name of another team. The control for lists is the mean over `CONTROL_DRAWS` draws of `Lists.shuffled`.

    Args:
        texts: labelled texts that were not used to choose the story; texts to which it does not apply are skipped.
        story: the story of one head.
        counts: (V,) number of occurrences of each id in the training texts; required for a story with lists.
        seed: seed for the control and the bootstrap.

    Raises:
        ValueError: the story applies to no text, there is no such head, or `counts` is missing.
    """
    config = classifier.checkpoint.config.model
    if not (0 <= story.layer < config.n_layers and 0 <= story.head < config.n_heads):
        raise ValueError(
            f"got layer {story.layer}, head {story.head}; the model has {config.n_layers} layers "
            f"of {config.n_heads} heads"
        )
    covered = [text for text in texts if story.queries(text, causal=config.causal).any()]
    if not covered:
        raise ValueError(f"the story {story} applies to none of {len(texts)} texts")
    if story.lists is not None and counts is None:
        raise ValueError("got no counts; the control of a story with lists needs them")
    random = np.random.default_rng(seed)

    def correct_with(weights: Weights) -> Bools:
        return correct_predictions(classifier, covered, {(story.layer, story.head): weights})

    unmodified = correct_predictions(classifier, covered)
    uniform = correct_with(uniform_weights(story, covered, causal=config.causal))
    restored = correct_with(weights_of(story, covered, causal=config.causal))
    if story.lists is None or counts is None:
        masks = [story_masks(story.clauses, text, causal=config.causal) for text in covered]
        control_masks = [
            _control_keys(mask, text, random, causal=config.causal) for mask, text in zip(masks, covered, strict=True)
        ]
        controls = [correct_with(lambda n: spread(control_masks[n]))]
    else:
        is_idle = unmodified.mean() - uniform.mean() < IDLE  # then nothing depends on the control
        shuffled = [
            replace(story, lists=story.lists.shuffled(counts, random)) for _ in range(1 if is_idle else CONTROL_DRAWS)
        ]
        controls = [correct_with(weights_of(of_draw, covered, causal=config.causal)) for of_draw in shuffled]
    shares = Shares.of(unmodified, uniform, restored, controls, random)
    attention, chance = zip(*attention_on_keys(classifier, covered, story), strict=True)
    return MeasuredStory(
        story=story,
        n=len(covered),
        coverage=len(covered) / len(texts),
        accuracy=shares.unmodified,
        uniform=shares.uniform,
        restored=float(restored.mean()),
        control=shares.control,
        share=shares.share,
        interval=shares.interval,
        control_share=shares.control_share,
        control_range=shares.control_range,
        attention=attention,
        chance=chance,
    )


def necessary_part(
    classifier: Predictor, texts: Sequence[TextKinds], story: Story, fitted: FittedLists | None = None
) -> Story:
    """The story without clauses that add nothing, or with only one of its two lists if the other adds nothing.

    Clauses are removed one by one, which gives their queries uniform weights. A clause or list is kept only if removing
    it costs at least `MIN_SHARE_GAIN` of the accuracy lost with uniform weights for the whole story, and if the 95 %
    interval of this cost, paired over texts, is above 0. `fitted` are the head's lists, for a story with both.
    """
    causal = classifier.checkpoint.config.model.causal
    simpler = [
        replace(story, clauses=(*story.clauses[:n], *story.clauses[n + 1 :]))
        for n in range(len(story.clauses))
        if len(story.clauses) > 1
    ]
    if fitted is not None and story.lists is fitted.both:
        simpler = [replace(story, lists=lists) for lists in (fitted.words, fitted.distances)]
    if not simpler:
        return story

    def correct_with(weights: Weights) -> Bools:
        return correct_predictions(classifier, texts, {(story.layer, story.head): weights})

    uniform = correct_with(uniform_weights(story, texts, causal=causal))
    lost = float(correct_predictions(classifier, texts).mean() - uniform.mean())
    restored, *restored_by_simpler = (
        correct_with(weights_of(variant, texts, causal=causal, uniform_for=story)) for variant in (story, *simpler)
    )
    best = int(np.argmax([rows.mean() for rows in restored_by_simpler]))
    without = restored_by_simpler[best]
    costs_enough = restored.mean() - without.mean() >= MIN_SHARE_GAIN * lost
    if costs_enough and ChangedRows.of(restored, without).low > 0:
        return story
    return necessary_part(classifier, texts, simpler[best])


@dataclass(frozen=True)
class Shares:
    """The accuracy with unmodified, uniform and control weights, and the fractions of the lost accuracy that the tested
    weights and the control restore (`MeasuredStory`)."""

    unmodified: float
    uniform: float
    control: float
    control_range: tuple[float, float] | None
    share: float
    interval: tuple[float, float]
    control_share: float

    @classmethod
    def of(
        cls, unmodified: Bools, uniform: Bools, restored: Bools, controls: Sequence[Bools], random: np.random.Generator
    ) -> "Shares":
        """From which texts, (N,), are classified correctly with each set of weights, and with each control."""
        with_unmodified, with_uniform, with_story = (float(rows.mean()) for rows in (unmodified, uniform, restored))
        with_control = [float(rows.mean()) for rows in controls]
        control = float(np.mean(with_control))
        lost = with_unmodified - with_uniform if with_unmodified > with_uniform else float("nan")
        return cls(
            unmodified=with_unmodified,
            uniform=with_uniform,
            control=control,
            control_range=(min(with_control), max(with_control)) if len(controls) > 1 else None,
            share=(with_story - with_uniform) / lost,
            interval=_bootstrap(unmodified, uniform, restored, random),
            control_share=(control - with_uniform) / lost,
        )


def _control_keys(mask: Bools, text: TextKinds, random: np.random.Generator, *, causal: bool) -> Bools:
    """For each query, as many keys outside the story's `mask` as in it, of similar frequency if possible, (T, T)."""
    n = len(mask)
    frequency = np.log2(text.counts + 1)  # T
    is_dissimilar = np.abs(frequency[:, None] - frequency) > 1  # T T
    unmasked = np.tril(np.ones((n, n), dtype=bool)) if causal else np.ones((n, n), dtype=bool)
    available = unmasked & ~mask
    available = np.where(available.any(axis=1, keepdims=True), available, unmasked)  # T T: the keys to draw from
    drawn = np.zeros_like(mask)
    rank = np.where(mask, mask.cumsum(axis=1), 0)  # T T: 1 for the first key of a row, 2 for the second, …
    for nth in range(1, int(rank.max()) + 1):
        rows = np.flatnonzero((rank == nth).any(axis=1) & available.any(axis=1))
        keys = (rank[rows] == nth).argmax(axis=1)
        # argmin prefers keys of similar frequency, then other available keys.
        chosen = (random.random((len(rows), n)) + is_dissimilar[keys] + 2 * ~available[rows]).argmin(axis=1)
        drawn[rows, chosen], available[rows, chosen] = True, False
    return drawn


def _bootstrap(unmodified: Bools, uniform: Bools, restored: Bools, random: np.random.Generator) -> tuple[float, float]:
    """95 % bootstrap interval, over texts, of the share of lost accuracy restored; NaN if most resamples lost none.

    Resamples that lose nothing are dropped, so the interval is conditional on a loss.
    """
    n = len(unmodified)
    counts = random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)  # R N
    lost, gained = (counts @ (rows.astype(int) - uniform) for rows in (unmodified, restored))  # R: integers
    shares = gained[lost > 0] / lost[lost > 0]
    if len(shares) < RESAMPLES / 2:
        return float("nan"), float("nan")
    low, high = np.quantile(shares, (0.025, 0.975))
    return float(low), float(high)
