"""A step of the forward pass: its formula, code, numbers, the arithmetic of each number, and a question."""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

import txcls.errors
from txcls.errors import TraceError
from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import Arithmetic
from txcls.wording import percentage


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of code without their indent: `file` relative to the project's folder, `line` the number of the first."""

    file: str
    line: int
    code: str


@cache
def source_of(thing: ModuleType | type | Callable[..., Any], first: str = "", last: str = "") -> SourceLines:
    """The code of a module, class, function or method as its file has it: what is shown is what runs.

    Args:
        thing: what to show.
        first: show it from the first line that contains this; "" to show all of it.
        last: up to the next line that contains this; "" for one line.

    Raises:
        TraceError: no line contains `first`, or none from there on contains `last`.
    """
    lines, number = inspect.getsourcelines(thing)
    begin = _find(lines, first, 0, thing) if first else 0
    end = _find(lines, last or first, begin, thing) if first else len(lines) - 1
    root = Path(txcls.errors.__file__).resolve().parent.parent
    file = Path(inspect.getfile(thing)).resolve().relative_to(root)
    code = textwrap.dedent("".join(lines[begin : end + 1])).rstrip()
    return SourceLines(file.as_posix(), max(number, 1) + begin, code)  # Python counts the lines of a module from 0


def _find(lines: list[str], wanted: str, begin: int, thing: ModuleType | type | Callable[..., Any]) -> int:
    for place in range(begin, len(lines)):
        if wanted in lines[place]:
            return place
    raise TraceError(f"no line of {thing.__name__} after its first {begin} contains {wanted!r}")


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


Explain = Callable[[int, int, int], Arithmetic]
"""The arithmetic of the number at (head, row, column)."""
Ask = Callable[[int], Question | None]
"""The question for a head."""
Quantity = Literal["value", "weight", "probability"]
Use = Literal["row", "column", "cell"]

SYMBOLS = {
    "id": "token ids",
    r"x^{\mathrm{tok}}": "token vectors",
    r"x^{\mathrm{pos}}": "position vectors",
    "x": "residual stream",
    "y": "normalised residual stream",
    "q": "queries",
    "k": "keys",
    "v": "values",
    "S": "attention scores",
    r"\tilde S": "masked attention scores",
    "A": "attention pattern",
    "z": "weighted sums of values",
    "o": "attention output",
    "h": "hidden activations of the feed-forward network",
    "u": "feed-forward output",
    "a": "pooling scores",
    r"\alpha": "pooling weights",
    "t": "vector of the text",
    r"\ell": "logits",
    "P": "probabilities before calibration",
    r"\ell'": "calibrated logits",
    "P'": "calibrated probabilities",
}
"""What the letters in formulas stand for. Tokens i, j and classes c count from 1, dimensions d, e, f from 0."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Rows or columns of a step's numbers: their shape letter, what one of them is, their names if they have any."""

    letter: str
    what: Literal["token", "dimension", "class", "text"]
    size: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operand:
    """A matrix that goes into a step's numbers.

    Attributes:
        name: what it is.
        values: (H, rows, columns), or (1, rows, columns) if it is the same for every head.
        used: what of it goes into the number at row i and column j: its row i, its column j, or its number there.
    """

    name: str
    values: FloatArray = field(repr=False)
    used: Use

    def cells(self, head: int = 0) -> FloatArray:
        """The numbers (rows, columns) for a head."""
        cells: FloatArray = self.values[head if len(self.values) > 1 else 0]
        return cells


@dataclass(frozen=True)
class WalkStep:
    """A step of the forward pass for one text.

    Attributes:
        name: its name in links; unique together with `layer` (from 0; None outside the layers).
        says: what happens, in a sentence or two.
        formula: LaTeX; empty where there is no arithmetic yet.
        code: the lines that compute it.
        symbol: what its numbers are called in formulas, a key of `SYMBOLS`.
        rows, columns: the axes of `values`.
        values: (H, rows, columns), or (1, rows, columns) for a step without heads; None for text, tokens and ids.
        by_head: whether there is one matrix per head.
        quantity: what the numbers are; weights and probabilities sum to 1 along each row, or along the only column.
        reads: titles of the steps whose numbers go in.
        operands: the matrices that its numbers are computed from; empty if they come from a formula alone.
    """

    name: str
    title: str
    says: str
    formula: str
    code: tuple[SourceLines, ...]
    symbol: str = ""
    layer: int | None = None
    rows: Axis | None = None
    columns: Axis | None = None
    values: FloatArray | None = field(default=None, repr=False)
    by_head: bool = False
    quantity: Quantity = "value"
    reads: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = field(default=(), repr=False)
    _explain: Explain | None = field(default=None, repr=False)
    _ask: Ask | None = field(default=None, repr=False)

    def cells(self, head: int = 0) -> FloatArray:
        """The numbers (rows, columns); `head` is ignored by a step without heads.

        Raises:
            ValueError: the step has no numbers.
        """
        if self.values is None:
            raise ValueError(f"the step {self.name!r} has no numbers; its tokens are in the walk's `traced`")
        cells: FloatArray = self.values[head if self.by_head else 0]
        return cells

    @property
    def means(self) -> str:
        """What its numbers are, in words."""
        return SYMBOLS[self.symbol]

    def explain(self, row: int, column: int, *, head: int = 0) -> Arithmetic:
        """How one number is computed from the numbers that go in.

        Raises:
            IndexError: there is no such row, column or head.
            ValueError: the step has no numbers.
        """
        cells = self.cells(head)
        if not (0 <= row < cells.shape[0] and 0 <= column < cells.shape[1]) or self._explain is None:
            raise IndexError(f"got row {row}, column {column}; {self.name} has {cells.shape[0]} by {cells.shape[1]}")
        return self._explain(head, row, column)

    def question(self, *, head: int = 0) -> Question | None:
        """What to predict before the numbers are shown; None where there is only one possible answer."""
        return self._ask(head) if self._ask is not None else None
