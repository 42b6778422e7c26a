"""Word and distance lists: fitted, found where they were planted, and refuted where queries matter."""

from dataclasses import replace

import numpy as np
import pytest

from tests.inspection.stories.planted import LENGTH, kinds_of, planted, random_texts
from txcls.data.batches import TokenisedTexts
from txcls.inference.predictor import Predictor
from txcls.inspection.stories import (
    ANY,
    Clause,
    FittedLists,
    Lists,
    Story,
    TextKinds,
    Verdict,
    find_stories,
    fit_lists,
    measure_all_heads,
    measure_story,
    necessary_part,
)
from txcls.inspection.stories.lists import MAX_DISTANCE

WORD_WEIGHTS = {"gain": 3.0, "dip": 3.0, "rise": -2.0, "fall": -2.0}
"""The head reads the weak words; with uniform weights, the strong words would dominate."""
DISTANCE_WEIGHTS = {2: 4.0, 3: 2.0}


def fitted(classifier: Predictor, *, n: int = 300, seed: int = 20) -> list[FittedLists]:
    texts = kinds_of(classifier, random_texts(n, seed=seed))
    offsets = np.arange(n + 1) * LENGTH
    ids = np.concatenate([text.ids for text in texts]).astype(np.int32)
    return fit_lists(classifier, TokenisedTexts(ids, offsets, np.zeros(n, dtype=np.int64)))


def counts(classifier: Predictor) -> np.ndarray:
    return np.full(classifier.tokenizer.vocab_size, 100)


@pytest.mark.parametrize("causal", [False, True])
def test_list_weights_are_the_softmax_of_word_and_distance(causal: bool) -> None:
    words, distances = np.array([0.0, 1.0, -0.5]), np.linspace(-1, 1, 2 * MAX_DISTANCE + 1)
    ids = np.random.default_rng(0).integers(0, 3, size=40)  # longer than MAX_DISTANCE
    weights = Lists(words, distances).weights(ids, causal=causal)
    for query in range(40):
        keys = range(query + 1 if causal else 40)
        scores = [
            words[ids[key]] + distances[min(max(key - query, -MAX_DISTANCE), MAX_DISTANCE) + MAX_DISTANCE]
            for key in keys
        ]
        expected = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(weights[query], [*expected, *[0.0] * (40 - len(keys))], atol=1e-12)
    np.testing.assert_allclose(Lists(None, None).weights(ids), 1 / 40)


def test_the_planted_weights_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txcls.inspection.stories.lists.PRIOR", 1e-6)
    classifier = planted({}, {}, words=WORD_WEIGHTS, distances=DISTANCE_WEIGHTS)
    both = fitted(classifier)[0].both
    assert both.words is not None and both.distances is not None
    ids = {word: classifier.tokenizer.encode(word).ids[0] for word in WORD_WEIGHTS}
    for word, weight in WORD_WEIGHTS.items():
        assert both.words[ids[word]] - both.words[ids["rise"]] == pytest.approx(weight + 2.0, abs=0.15)
    for distance, weight in DISTANCE_WEIGHTS.items():
        assert both.distances[MAX_DISTANCE + distance] - both.distances[MAX_DISTANCE + 1] == pytest.approx(
            weight, abs=0.3
        )


@pytest.mark.parametrize(
    "words, distances, expected",
    [
        (WORD_WEIGHTS, None, "word list"),
        (None, {2: 6.0}, "distance"),
        ({"gain": 3.0, "dip": 3.0}, {1: 3.0, 2: 3.0}, "word list and distance"),
    ],
)
def test_planted_lists_are_chosen_and_confirmed_on_other_texts(
    words: dict[str, float] | None, distances: dict[int, float] | None, expected: str
) -> None:
    classifier = planted({}, {3: 1.0}, words=words, distances=distances)
    chosen_on, measured_on = (kinds_of(classifier, random_texts(150, seed=seed)) for seed in (21, 22))
    lists = fitted(classifier)
    reads, idle = find_stories(classifier, chosen_on, lists=lists)
    assert str(reads) == expected
    assert idle.lists is None, "its story only describes its attention"
    assert str(necessary_part(classifier, measured_on, reads, lists[0])) == expected
    measured = measure_story(classifier, measured_on, reads, counts=counts(classifier), seed=1)
    assert measured.verdict == "confirmed" and measured.share > 0.9 and measured.n == 150
    assert measured.attention[0] > 0.9 > measured.chance[0]
    assert measured.control_range is not None, "several shuffles"
    assert measured.control_range[0] < measured.control < measured.control_range[1]
    low, high = map(measured.share_of, measured.control_range)
    assert low < measured.control_share < high


def test_lists_restore_the_accuracy_of_heads_that_ignore_queries() -> None:
    classifier = planted({}, {3: 1.0}, words=WORD_WEIGHTS)
    texts, lists = kinds_of(classifier, random_texts(300, seed=23)), fitted(classifier)
    stories = find_stories(classifier, texts, lists=lists)
    measured = [measure_story(classifier, texts, story, counts=counts(classifier)) for story in stories]
    both = [of_head.both for of_head in lists]
    together = measure_all_heads(classifier, texts, measured, both, counts=counts(classifier), seed=1)
    assert together.accuracy == 1.0 and together.uniform < 0.8 and together.n == 300
    assert together.lists > 0.98 and together.stories > 0.98 and together.share > 0.9
    assert together.control < 0.9 and together.interval[0] > 0.8
    assert together.control_range is not None and together.control_range[0] < together.control_range[1]


def test_lists_are_not_confirmed_for_heads_that_depend_on_queries() -> None:
    """Every query attends to position 1, whatever its word, at a distance that depends on the query."""
    classifier = planted({1: 1.0}, {2: 1.0})
    texts, lists = kinds_of(classifier, random_texts(300, seed=24)), fitted(classifier)
    verdicts: dict[str, Verdict] = {
        kind: measure_story(classifier, texts, Story(0, 0, lists=variant), counts=counts(classifier)).verdict
        for kind, variant in (("words", lists[0].words), ("distances", lists[0].distances))
    }
    assert set(verdicts.values()) <= {"refuted", "partly confirmed", "undecided"}


def test_the_control_permutes_weights_among_words_of_similar_frequency() -> None:
    words = np.arange(8.0)
    counts_of_words = np.array([1, 1, 1, 1, 500, 500, 500, 500])
    shuffled = Lists(words, None).shuffled(counts_of_words, np.random.default_rng(3))
    assert shuffled.words is not None and shuffled.distances is None
    assert sorted(shuffled.words[:4]) == [0, 1, 2, 3] and sorted(shuffled.words[4:]) == [4, 5, 6, 7]
    assert not np.array_equal(shuffled.words, words)


def test_a_second_list_is_kept_only_if_its_gain_is_above_zero_for_sure() -> None:
    """On 12 texts, a second list gains 2 of them, which is more than the minimum but could be chance."""
    classifier = planted({}, {3: 1.0}, words={"gain": 3.0, "dip": 3.0}, distances={1: 3.0, 2: 3.0})
    lists = fitted(classifier)[0]
    story = Story(0, 0, lists=lists.both)
    texts = kinds_of(classifier, random_texts(300, seed=26))
    assert str(necessary_part(classifier, texts, story, lists)) == "word list and distance"
    assert str(necessary_part(classifier, texts[:12], story, lists)) in ("word list", "distance")


def test_clauses_that_add_nothing_are_removed() -> None:
    classifier = planted({1: 1.0}, {2: 1.0})
    texts: list[TextKinds] = kinds_of(classifier, random_texts(200, seed=25))
    reads = Clause("first token", "next token")
    story = Story(0, 0, (Clause("last token", "itself"), reads, Clause(ANY, "itself")))
    assert necessary_part(classifier, texts, story).clauses == (reads,)
    assert necessary_part(classifier, texts, replace(story, clauses=(reads,))).clauses == (reads,)
