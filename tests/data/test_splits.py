from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txcls.data.splits import hash_split, hold_out, split_hash, stratified_split
from txcls.errors import DataError

two_of_each = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(lambda labels: labels * 2 + [0, 0, 7, 7])
fractions = st.floats(0.01, 0.99)


@given(two_of_each, fractions, st.integers(0, 2**40))
def test_every_row_is_in_one_part_and_every_class_in_both(labels: list[int], fraction: float, seed: int) -> None:
    train, validation = stratified_split(labels, fraction=fraction, seed=seed)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    for part in (train, validation):
        assert {labels[i] for i in part} == set(labels)
        assert list(part) == sorted(part)


def test_split_sizes_follow_the_fraction_and_seeds_differ() -> None:
    labels = [0] * 1000 + [1] * 200
    train, validation = stratified_split(labels, fraction=0.1, seed=0)
    assert Counter(labels[i] for i in validation) == {0: 100, 1: 20} and len(train) == 1080
    assert not np.array_equal(validation, stratified_split(labels, fraction=0.1, seed=1)[1])


def test_splits_are_the_same_in_all_versions() -> None:
    _, validation = stratified_split([0, 1] * 10, fraction=0.2, seed=0)
    assert validation.tolist() == [5, 8, 12, 19]


words = st.sampled_from(["a", "A ", "b", "c", "d  e", "D e", "f", "g", "h", "i"])
labelled = st.lists(st.tuples(words, st.integers(0, 2)), max_size=40).map(
    lambda rows: [*rows, ("own 0", 0), ("own 1", 1), ("own 2", 2), ("also 0", 0), ("also 1", 1), ("also 2", 2)]
)


def texts_and_labels(rows: list[tuple[str, int]]) -> tuple[list[str], list[int]]:
    return [text for text, _ in rows], [label for _, label in rows]


@given(labelled, fractions, st.integers(0, 2**40))
def test_a_hash_split_keeps_equal_texts_together_and_every_class_in_both_parts(
    rows: list[tuple[str, int]], fraction: float, seed: int
) -> None:
    texts, labels = texts_and_labels(rows)
    train, validation = hash_split(texts, labels, fraction=fraction, seed=seed)
    assert sorted([*train, *validation]) == list(range(len(texts)))
    assert list(train) == sorted(train) and list(validation) == sorted(validation)
    parts = [{" ".join(texts[i].lower().split()) for i in part} for part in (train, validation)]
    assert not parts[0] & parts[1]
    assert {labels[i] for i in train} == {labels[i] for i in validation} == {0, 1, 2}


@given(labelled, fractions, fractions, st.integers(0, 100))
def test_a_smaller_hash_split_is_part_of_a_larger_one(
    rows: list[tuple[str, int]], first: float, second: float, seed: int
) -> None:
    texts, labels = texts_and_labels(rows)
    smaller, larger = (
        set(hash_split(texts, labels, fraction=share, seed=seed)[1].tolist()) for share in sorted((first, second))
    )
    assert smaller <= larger


def test_a_hash_split_depends_only_on_the_text_for_large_classes() -> None:
    texts = [f"text {n}" for n in range(4000)]
    _, whole = hash_split(texts, [n % 2 for n in range(4000)], fraction=0.1, seed=3)
    _, part = hash_split(texts[::-1][:2000], [n % 3 for n in range(2000)], fraction=0.1, seed=3)
    assert {texts[i] for i in whole} & set(texts[2000:]) == {texts[::-1][i] for i in part}
    assert 320 < len(whole) < 480
    assert all((split_hash(text, seed=3) < 0.1) == (i in set(whole.tolist())) for i, text in enumerate(texts))
    other = set(hash_split(texts, [n % 2 for n in range(4000)], fraction=0.1, seed=4)[1].tolist())
    assert len(other & set(whole.tolist())) < 80, "another seed, other rows"


# Users' own rows


def test_every_class_is_held_out_in_proportion_and_keeps_a_row() -> None:
    labels = [0] * 1000 + [1] * 100 + [2] * 3 + [3]
    training, held_out = hold_out(labels, n=round(0.2 * len(labels)), seed=0)
    assert sorted([*training, *held_out]) == list(range(len(labels)))
    counts = Counter(np.array(labels)[held_out])
    assert 199 <= counts[0] <= 201 and 19 <= counts[1] <= 21 and counts[3] == 0
    assert set(np.array(labels)[training]) == {0, 1, 2, 3}


@pytest.mark.parametrize("n_classes, n_texts, copies", [(50, 4, 5), (77, 2, 5), (100, 3, 3), (20, 10, 2)])
def test_a_fifth_is_held_out_of_many_classes_if_texts_repeat(n_classes: int, n_texts: int, copies: int) -> None:
    groups = np.repeat(np.arange(n_classes * n_texts), copies) * copies
    labels = groups // (n_texts * copies)
    training, held_out = hold_out(labels.tolist(), n=len(labels) // 5, seed=0, groups=groups)
    assert abs(len(held_out) - len(labels) // 5) <= copies
    assert not set(groups[training]) & set(groups[held_out]) and set(labels[training]) == set(range(n_classes))
    assert len(set(labels[held_out])) >= 0.9 * min(n_classes, len(held_out) // copies)


def test_held_out_rows_are_the_same_in_all_versions_if_no_text_repeats() -> None:
    labels = [0] * 9 + [1] * 7 + [2] * 3 + [3]
    assert hold_out(labels, n=4, seed=0)[1].tolist() == [4, 6, 13, 16]


@pytest.mark.parametrize(
    "texts, labels, problem",
    [
        ([], [], "0 rows of 0 class"),
        (["a", "b"], [1, 1], "2 rows of 1 class"),
        (["a", "b", "c", "C ", "d"], [0, 0, 1, 1, 0], "only one row of class 'b'"),
        (["a", "b", "c", "c", "d"], [0, 0, 1, 0, 1], "only one row of class 'b'"),
    ],
)
def test_a_hash_split_refuses_classes_with_fewer_than_two_unique_texts(
    texts: list[str], labels: list[int], problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        hash_split(texts, labels, fraction=0.1, seed=0, classes="ab")
