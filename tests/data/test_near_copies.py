import random
import time

import numpy as np

from txcls.data.splits import first_copies, near_copies, same_text_other_label
from txcls.data.types import labelled_texts

LONG = "the courier left the parcel with a neighbour who has been away since monday"


def firsts(texts: list[str]) -> list[int]:
    """The first row with nearly the same text, for each row."""
    return near_copies(texts, first_copies(texts)).tolist()


def test_labels_that_differ_only_in_case_and_spaces_are_no_conflict() -> None:
    texts, labels = ["pay me", "Pay  me", "late", "late"], ["Bill", "bill ", "a", "b"]
    assert same_text_other_label(labelled_texts(texts, labels)) == [[2, 3]]


def test_near_duplicates_are_found() -> None:
    texts = [LONG, LONG + " morning", "my password does not work any more", LONG.upper() + "!", "ab", "ba"]
    assert firsts(texts) == [0, 0, 2, 0, 4, 5]


def test_near_duplicates_among_many_rows_are_found_in_seconds() -> None:
    rng = random.Random(0)
    texts = [" ".join(f"w{int(20_000 * rng.random() ** 3)}" for _ in range(20)) for _ in range(20_000)]
    for row in range(0, 20_000, 200):
        words = texts[row].split()
        words[7] = "changed"
        texts[row + 9] = " ".join(words)
    start = time.process_time()
    found = np.array(firsts(texts))
    assert (found[9::200] == np.arange(0, 20_000, 200)).sum() >= 98
    assert (found != np.arange(20_000)).sum() <= 102 and time.process_time() - start < 20


def test_many_copies_of_a_template_do_not_take_quadratic_time() -> None:
    start = time.process_time()
    assert firsts([f"{LONG} order number {row}" for row in range(5_000)]) == [0] * 5_000
    assert time.process_time() - start < 20
