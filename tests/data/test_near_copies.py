"""A survey counts classes and words, and finds rows that are empty, repeated or similar."""

import random
import time

import pytest

from txcls.data.rows_in_classes import labelled_texts
from txcls.data.survey import same_text_other_label, survey

LONG = "the courier left the parcel with a neighbour who has been away since monday"


def test_classes_lengths_and_empty_rows_are_counted() -> None:
    result = survey(["a b c", "d e", "", None, "f", "g h"], ["x", "y", "x", "y", "", "x"])
    assert result.rows == 6 and result.classes == {"x": 2, "y": 1}
    assert (result.lengths, result.unit) == ((3, 2, 2), "words")
    assert result.no_text == (2, 3) and result.no_label == (4,)
    assert result.small_classes == ("y", "x")


def test_lengths_are_in_characters_if_words_are_not_separated_by_spaces() -> None:
    result = survey(
        ["很快很快很快，好吃好吃好吃", "ส่งเร็วมากอาหารอร่อย", "没有送水没有送水没有送水没有送水"], ["x", "y", "x"]
    )
    assert (result.lengths, result.unit) == ((13, 20, 16), "characters")


def test_duplicates_and_label_conflicts_are_separate() -> None:
    texts = ["Where is it?", "where  is it?", "pay me", "pay me", "pay me", "other words entirely"]
    result = survey(texts, ["a", "a", "b", "c", "b", "a"])
    assert [(group.rows, group.labels) for group in result.duplicates] == [((0, 1), ("a", "a"))]
    assert [(group.rows, group.labels) for group in result.conflicts] == [((2, 3, 4), ("b", "c", "b"))]
    assert (result.n_duplicates, result.n_conflicts, result.n_near) == (1, 2, 0), "rows, without the first of each"


def test_labels_that_differ_only_in_case_and_spaces_are_no_conflict() -> None:
    texts, labels = ["pay me", "Pay  me", "late", "late"], ["Bill", "bill ", "a", "b"]
    result = survey(texts, labels)
    assert [group.rows for group in result.duplicates] == [(0, 1)]
    assert [group.rows for group in result.conflicts] == [(2, 3)]
    assert same_text_other_label(labelled_texts(texts, labels)) == [[2, 3]]


def test_near_duplicates_are_found_with_their_similarity() -> None:
    texts = [LONG, LONG + " morning", "my password does not work any more", LONG.upper() + "!", "ab", "ba"]
    result = survey(texts, ["a", "b", "c", "a", "c", "c"])
    (group,) = result.near
    assert group.rows == (0, 1, 3) and group.labels == ("a", "b", "a")
    words = [set(text.lower().strip("!").split()) for text in texts[:2]]
    pairs = [set(zip(text.split(), text.split()[1:], strict=False)) for text in texts[:2]]
    first, second = (word | pair for word, pair in zip(words, pairs, strict=True))
    assert group.similarity == pytest.approx(len(first & second) / len(first | second), abs=0.02)


def test_near_duplicates_among_many_rows_are_found_in_seconds() -> None:
    rng = random.Random(0)
    texts = [" ".join(f"w{int(20_000 * rng.random() ** 3)}" for _ in range(20)) for _ in range(20_000)]
    for row in range(0, 20_000, 200):
        words = texts[row].split()
        words[7] = "changed"
        texts[row + 9] = " ".join(words)
    start = time.process_time()
    result = survey(texts, ["a", "b"] * 10_000)
    expected = {(row, row + 9) for row in range(0, 20_000, 200)}
    assert len(expected & {group.rows for group in result.near}) >= 98
    assert result.n_near <= 102 and time.process_time() - start < 20


def test_many_copies_of_a_template_do_not_take_quadratic_time() -> None:
    texts = [f"{LONG} order number {row}" for row in range(5_000)]
    start = time.process_time()
    result = survey(texts, ["a"] * 5_000)
    assert len(result.near) == 1 and len(result.near[0].rows) == 5_000
    assert time.process_time() - start < 20
