"""Questions to answer before the numbers of a step are shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from txcls.wording import percentage


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict: the options, the index of the right one, and why it is right.

    `cell` is the (row, column) of the number that the question is about, where it is about one.
    """

    text: str
    options: tuple[str, ...]
    answer: int
    because: str
    cell: tuple[int, int] | None = None


def ask_largest(
    text: str,
    names: Sequence[str],
    values: Sequence[float],
    because: Callable[[int], str],
    cell: Callable[[int], tuple[int, int]] | None = None,
) -> Question | None:
    """Which of these has the largest value? None where all have the same.

    `because` and `cell` are called with the right one's index.
    Up to six are all offered; of more, the right one, the runner-up, a middle one and the last.
    """
    ranked = sorted(range(len(names)), key=lambda n: -values[n])
    ranked = [n for n in ranked if n == ranked[0] or values[n] < values[ranked[0]]]
    last = len(ranked) - 1
    if last < 1:
        return None
    offered = sorted({ranked[place] for place in (range(last + 1) if last < 6 else (0, 1, last // 2, last))})
    best = ranked[0]
    options = tuple(names[n] for n in offered)
    return Question(text, options, offered.index(best), because(best), None if cell is None else cell(best))


def ask_number(text: str, right: int, others: Sequence[int], because: str) -> Question | None:
    """Which of these numbers is right? None where all are the same."""
    options = sorted({right, *others})
    if len(options) < 2:
        return None
    return Question(text, tuple(f"{option:,}" for option in options), options.index(right), because)


def ask_percentage(text: str, share: float, cell: tuple[int, int]) -> Question:
    """In which of five ranges does this share, the number in a cell, lie?"""
    options = ("less than 10 %", "10 to 30 %", "30 to 60 %", "60 to 90 %", "more than 90 %")
    answer = int(np.searchsorted([0.1, 0.3, 0.6, 0.9], share, side="right"))
    return Question(text, options, answer, f"{percentage(share)}.", cell)
