"""Parts of one's own rows: in proportion, copies together, no class refused."""

from collections import Counter

import numpy as np

from txcls.data.own_split import copies, hold_out, in_classes
from txcls.data.types import LabelledTexts


def test_every_class_is_held_out_in_proportion_and_keeps_a_row() -> None:
    labels = [0] * 1000 + [1] * 100 + [2] * 3 + [3]
    kept, held = hold_out(labels, n=round(0.2 * len(labels)), seed=0)
    assert sorted([*kept, *held]) == list(range(len(labels)))
    counts = Counter(np.array(labels)[held])
    assert 199 <= counts[0] <= 201 and 19 <= counts[1] <= 21 and counts[3] == 0
    assert set(np.array(labels)[kept]) == {0, 1, 2, 3}


def test_the_same_seed_gives_the_same_rows_and_another_seed_others() -> None:
    labels = [n % 3 for n in range(300)]
    first, again, other = (hold_out(labels, n=60, seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert set(first) != set(other)


def test_many_small_classes_give_as_many_rows_as_asked_for() -> None:
    labels = [n % 150 for n in range(500)]  # three or four rows each
    sizes = [len(hold_out(labels, n=100, seed=seed)[1]) for seed in range(20)]
    assert 85 <= np.mean(sizes) <= 110


def test_copies_of_a_text_stay_together() -> None:
    texts = [f"text {n // 2}" if n % 2 else f"Text  {n // 2} " for n in range(400)]
    groups = copies(texts)
    assert len(np.unique(groups)) == 200
    kept, held = hold_out([n // 2 % 2 for n in range(400)], n=80, seed=0, groups=groups)
    assert not set(groups[kept]) & set(groups[held]) and 70 <= len(held) <= 82


def test_rows_of_unknown_classes_are_left_out() -> None:
    rows = LabelledTexts(["a", "b", "c"], [0, 1, 2], ("x", "new", "z"))
    found, which = in_classes(rows, ("z", "x"))
    assert (found.texts, found.labels, found.classes) == (["a", "c"], [1, 0], ("z", "x")) and list(which) == [0, 2]
