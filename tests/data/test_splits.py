from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from txcls.data.splits import stratified_split
from txcls.errors import DataError

two_of_each = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(lambda labels: labels * 2 + [0, 0, 7, 7])
fractions = st.floats(0.01, 0.99)


@settings(deadline=None)
@given(two_of_each, fractions, st.integers(0, 2**40))
def test_every_row_is_on_one_side_and_every_class_on_both(labels: list[int], fraction: float, seed: int) -> None:
    train, validation = stratified_split(labels, fraction=fraction, seed=seed)
    assert sorted([*train, *validation]) == list(range(len(labels)))
    for side in (train, validation):
        assert {labels[i] for i in side} == set(labels)
        assert list(side) == sorted(side)


@settings(deadline=None)
@given(two_of_each, fractions, st.integers(0, 100))
def test_the_same_seed_gives_the_same_split(labels: list[int], fraction: float, seed: int) -> None:
    one, other = (stratified_split(labels, fraction=fraction, seed=seed) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_shares_are_those_asked_for_and_seeds_differ() -> None:
    labels = [0] * 1000 + [1] * 200
    train, validation = stratified_split(labels, fraction=0.1, seed=0)
    assert Counter(labels[i] for i in validation) == {0: 100, 1: 20} and len(train) == 1080
    assert not np.array_equal(validation, stratified_split(labels, fraction=0.1, seed=1)[1])


def test_a_split_never_moves_between_versions() -> None:
    _, validation = stratified_split([0, 1] * 10, fraction=0.2, seed=0)
    assert validation.tolist() == [5, 8, 12, 19]


@pytest.mark.parametrize(
    "labels, problem",
    [
        ([], "0 rows of 0 class"),
        ([1, 1, 1], "3 rows of 1 class"),
        ([0, 0, 1], "only one row of class 'b'"),
        (list(range(9)), "only one row of class 'a', 'b', 'c', 'd', 'e', …"),
    ],
)
def test_rows_that_cannot_be_split_are_refused_with_the_class_named(labels: list[int], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        stratified_split(labels, fraction=0.1, seed=0, classes="abcdefghi")


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, float("nan")])
def test_fraction_out_of_range_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        stratified_split([0, 0, 1, 1], fraction=fraction, seed=0)
