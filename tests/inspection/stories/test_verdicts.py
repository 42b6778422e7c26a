"""Verdicts on stories of heads with hand-set weights, for which the true stories are known."""

from dataclasses import replace

import numpy as np
import pytest

from tests.inspection.stories.planted import kinds_of, planted, random_texts
from txcls.inspection.stories import ANY, Clause, Story, find_stories, measure_story
from txcls.inspection.stories.kinds import NAMED
from txcls.inspection.stories.measure_story import _bootstrap, _control_keys
from txcls.inspection.stories.story import story_masks
from txcls.inspection.stories.verdicts import ATTENDS, CONFIRMED, IDLE, MAX_BY_CONTROL, PART, verdict_of

NEXT = (Clause("first token", "next token"),)
SEMICOLON = (Clause("first token", "punctuation"),)


def test_a_true_and_complete_story_is_confirmed() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    texts = kinds_of(classifier, random_texts(400, seed=1))
    assert 150 < sum(text.label for text in texts) < 250
    measured = measure_story(classifier, texts, Story(0, 0, NEXT))
    assert (measured.verdict, measured.n, measured.coverage) == ("confirmed", 400, 1.0)
    assert measured.accuracy == measured.restored == 1.0 and measured.share == 1.0
    assert measured.uniform < 0.8 and measured.control_share < MAX_BY_CONTROL < measured.interval[0]
    assert measured.attention == (pytest.approx(1.0, abs=1e-4),) and measured.chance == (pytest.approx(1 / 8),)


def test_an_incomplete_story_is_part_of_it() -> None:
    classifier = planted({1: 0.55, 2: 0.45}, {2: 1.0})
    texts = kinds_of(classifier, random_texts(400, seed=2))
    measured = measure_story(classifier, texts, Story(0, 0, NEXT))
    assert measured.verdict == "partly confirmed" and PART < measured.share < CONFIRMED
    assert measured.interval[0] < measured.share < measured.interval[1]


def test_a_story_of_clear_attention_that_does_not_matter_is_refuted() -> None:
    """90 % of the weight is on a mark whose value is zero; the other 10 % determine the class."""
    classifier = planted({3: 0.9, 1: 0.1}, {2: 1.0})
    texts = kinds_of(classifier, random_texts(400, seed=3, semicolon_at=[3]))
    measured = measure_story(classifier, texts, Story(0, 0, SEMICOLON))
    assert measured.attention[0] > 0.89 and measured.accuracy - measured.uniform > 0.1
    assert measured.verdict == "refuted" and measured.share < PART
    next_token = measure_story(classifier, texts, Story(0, 0, NEXT))
    assert next_token.share == 1.0 and next_token.verdict == "partly confirmed", "it has only 10 % of the weight"
    assert next_token.attention[0] < ATTENDS


def test_the_same_share_is_undecided_on_few_texts_and_part_of_it_on_many() -> None:
    classifier = planted({1: 0.55, 2: 0.45}, {2: 1.0})
    texts = kinds_of(classifier, random_texts(400, seed=2))
    few = measure_story(classifier, texts[:20], Story(0, 0, NEXT))
    assert few.accuracy - few.uniform >= IDLE and few.share < CONFIRMED
    assert few.interval[0] <= max(0, few.control_share) and few.verdict == "undecided"
    assert measure_story(classifier, texts, Story(0, 0, NEXT)).verdict == "partly confirmed"


def test_a_query_never_depends_on_the_prediction() -> None:
    """The first token is the team that is named, so its queries match two kinds, of which only one is allowed."""
    classifier = planted({1: 1.0}, {2: 1.0})
    texts = [
        replace(text, kinds={NAMED: text.kinds["first token"], **text.kinds})
        for text in kinds_of(classifier, random_texts(150, seed=5))
    ]
    stories = find_stories(classifier, texts)
    assert stories[0].clauses == NEXT and not any(story.has_leak for story in stories)
    leaking = measure_story(classifier, texts, Story(0, 0, (Clause(NAMED, "next token"),)))
    assert leaking.share == 1.0 and leaking.verdict == "undecided"


def test_a_head_with_an_unused_output_is_idle() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    texts = kinds_of(classifier, random_texts(200, seed=4, semicolon_at=[2]))
    measured = measure_story(classifier, texts, Story(0, 1, SEMICOLON))
    assert measured.attention[0] > 0.99
    assert measured.verdict == "idle" and measured.accuracy == measured.uniform == 1.0
    assert measured.restored == measured.control == 1.0
    assert np.isnan(measured.share) and np.isnan(measured.interval).all()


def test_resamples_without_a_loss_are_excluded_from_the_interval() -> None:
    """Uniform weights lose one of 2,963 texts and gain another, so a third of the resamples lose nothing."""
    unmodified = np.ones(2963, dtype=bool)
    uniform, restored = unmodified.copy(), unmodified.copy()
    unmodified[1], uniform[:2] = False, (False, True)
    low, high = _bootstrap(unmodified, uniform, restored, np.random.default_rng(0))
    assert np.isnan([low, high]).all()
    uniform[2:4] = False
    low, high = _bootstrap(unmodified, uniform, restored, np.random.default_rng(0))
    assert 0 < low < high <= 9, "the loss in a resample is at least one text"


def test_the_true_stories_are_chosen_and_measured_on_different_texts() -> None:
    classifier = planted({1: 1.0}, {3: 1.0})
    chosen_on, measured_on = (kinds_of(classifier, random_texts(150, seed=seed, semicolon_at=[3])) for seed in (5, 6))
    progress: list[tuple[int, int]] = []
    reads, idle = find_stories(classifier, chosen_on, on_head=lambda done, total: progress.append((done, total)))
    assert progress == [(1, 2), (2, 2)]
    assert (reads.layer, reads.head, idle.layer, idle.head) == (0, 0, 0, 1)
    assert reads.clauses == NEXT
    assert idle.clauses == (Clause(ANY, "punctuation"),), "its story only describes its attention"
    assert measure_story(classifier, measured_on, reads).verdict == "confirmed"
    assert measure_story(classifier, measured_on, idle).verdict == "idle"


def test_a_head_without_a_true_story_gets_one_about_queries_that_matter() -> None:
    """Two positions count equally: neither restores enough by itself, and a query cannot follow two clauses."""
    classifier = planted({1: 0.5, 6: 0.5}, {3: 1.0})
    [story, _] = find_stories(classifier, kinds_of(classifier, random_texts(150, seed=7)))
    measured = measure_story(classifier, kinds_of(classifier, random_texts(300, seed=8)), story)
    assert measured.accuracy - measured.uniform > 0.1 and measured.verdict != "confirmed"


def test_the_control_draws_equally_many_other_keys_of_similar_frequency() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    [text] = kinds_of(classifier, random_texts(1, seed=9))
    counts = np.array([100, 100, 5, 5, 6, 100, 1000, 90])
    text = type(text)(text.ids, text.label, {**text.kinds, "rare": np.array([0, 0, 1, 1, 0, 0, 0, 0], bool)}, counts)
    drawn_keys = {1: set(), 2: set()}
    for seed in range(60):
        random = np.random.default_rng(seed)
        one_key = _control_keys(story_masks([Clause("first token", "next token")], text), text, random, causal=False)
        assert one_key.sum() == 1 and not one_key[1:].any()
        drawn_keys[1] |= set(np.flatnonzero(one_key[0]))
        two_keys = _control_keys(story_masks([Clause("first token", "rare")], text), text, random, causal=False)
        assert two_keys.sum() == 2 and not two_keys[0, [2, 3]].any() and two_keys[0, 4]
        drawn_keys[2] |= set(np.flatnonzero(two_keys[0]))
    assert drawn_keys[1] == {0, 5, 7}, "of similar frequency"
    assert drawn_keys[2] == {0, 1, 4, 5, 6, 7}, "only one other token is as rare, so the second can be any other"
    causal = _control_keys(story_masks([Clause(ANY, "itself")], text, causal=True), text, random, causal=True)
    assert not np.triu(causal, k=1).any()
    np.testing.assert_array_equal(causal[0], [1, 0, 0, 0, 0, 0, 0, 0], "there is no other key to draw")


def test_thresholds_of_the_verdicts() -> None:
    clear = {"share": 1.0, "interval": (0.9, 1.0), "control_share": 0.0, "attention": 1.0}
    assert verdict_of(IDLE, **clear) == "confirmed"
    assert verdict_of(IDLE * 0.99, **clear) == "idle"
    for worse in (
        {"share": 0.79},
        {"interval": (MAX_BY_CONTROL, 1.0)},
        {"control_share": 0.31},
        {"attention": 0.49},
        {"attention": float("nan")},
    ):
        assert verdict_of(0.5, **{**clear, **worse}) == "partly confirmed", worse
    nan = float("nan")
    for interval, control_share, expected in (
        ((0.01, 0.9), 0.0, "partly confirmed"),
        ((-0.57, 1.06), 0.21, "undecided"),
        ((0.03, 1.18), 0.19, "undecided"),
        ((-0.1, 0.9), -0.3, "undecided"),
        ((-4.6, 0.31), 0.0, "undecided"),
        ((-4.6, 0.29), 0.0, "refuted"),
        ((nan, nan), 0.0, "undecided"),
    ):
        values = {"share": 0.5, "interval": interval, "control_share": control_share, "attention": 1.0}
        assert verdict_of(0.5, **values) == expected, values
    assert verdict_of(0.5, share=0.29, interval=(0.2, 0.4), control_share=0.0, attention=1.0) == "undecided"
