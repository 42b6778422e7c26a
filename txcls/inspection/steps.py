"""What a step of the forward pass is: formula, code, numbers, the arithmetic of each number, a question to ask.

`txcls.inspection.walk` makes the steps of a text. Symbols: i, j tokens and c classes, counted from 1; d, e, f
dimensions, counted from 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from txcls.classifier import Classifier
from txcls.inspection.arithmetic import Arithmetic
from txcls.inspection.source import Source, source_of
from txcls.inspection.tracing import FloatArray, TracedText

Explain = Callable[[int, int, int], Arithmetic]
Ask = Callable[[int], "Question | None"]


@dataclass(frozen=True, slots=True)
class Axis:
    """Rows or columns of a step's numbers: the letter of their number, what one of them is, their names if any."""

    letter: str
    what: Literal["token", "dimension", "class", "text"]
    size: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """Something to predict: the options, which of them is right, and why."""

    text: str
    options: tuple[str, ...]
    answer: int
    because: str


@dataclass(frozen=True)
class Step:
    """A step of the forward pass for one text.

    Attributes:
        name: what it is called in links; with `layer` (from 0, None outside the layers) it is the only one so called.
        says: what happens, in a sentence or two.
        formula: LaTeX; empty where there is no arithmetic yet.
        code: the lines that do it.
        rows, columns: the axes of `values`.
        values: (H, rows, columns), or (1, rows, columns) where heads play no part; None for text, tokens and ids.
        by_head: whether there is one matrix per head.
        share: whether the numbers are shares that add up to 1, in each row, or in the one column there is.
        reads: titles of the steps whose numbers go in.
    """

    name: str
    title: str
    says: str
    formula: str
    code: tuple[Source, ...]
    layer: int | None = None
    rows: Axis | None = None
    columns: Axis | None = None
    values: FloatArray | None = field(default=None, repr=False)
    by_head: bool = False
    share: bool = False
    reads: tuple[str, ...] = ()
    _explain: Explain | None = field(default=None, repr=False)
    _ask: Ask | None = field(default=None, repr=False)

    def cells(self, head: int = 0) -> FloatArray:
        """The numbers (rows, columns) of a head, which counts only in a step that has heads.

        Raises:
            ValueError: the step has no numbers.
        """
        if self.values is None:
            raise ValueError(f"the step {self.name!r} has no numbers; its tokens are in the walk's `traced`")
        cells: FloatArray = self.values[head if self.by_head else 0]
        return cells

    def explain(self, row: int, column: int, *, head: int = 0) -> Arithmetic:
        """How one number came about, from the numbers that went in.

        Raises:
            IndexError: there is no such row, column or head.
            ValueError: the step has no numbers.
        """
        cells = self.cells(head)
        if not (0 <= row < cells.shape[0] and 0 <= column < cells.shape[1]) or self._explain is None:
            raise IndexError(f"got row {row}, column {column}; {self.name} has {cells.shape[0]} by {cells.shape[1]}")
        return self._explain(head, row, column)

    def question(self, *, head: int = 0) -> Question | None:
        """What to predict before the numbers are shown; None where there is nothing to choose from."""
        return self._ask(head) if self._ask is not None else None


@cache
def snippet(of: Callable[..., Any], first: str, last: str = "") -> Source:
    """The lines of a function's source from the first that holds `first` to the next that holds `last`, or that one
    alone; TraceError where there is no such line (any more)."""
    return source_of(of, first=first, last=last or first)


class Reading:
    """One traced text, and what the makers of steps share: axes, names, the token that questions are about."""

    def __init__(self, classifier: Classifier, traced: TracedText) -> None:
        self.classifier, self.traced = classifier, traced
        self.model: Any = classifier.checkpoint.model
        self.config = classifier.checkpoint.config.model
        self.names = tuple(token.text for token in traced.tokens)
        self.ids = [token.id for token in traced.tokens]
        config = self.config
        self.tokens = Axis("T", "token", len(self.names), self.names)
        self.wide = Axis("D", "dimension", config.d_model)
        self.narrow = Axis("E", "dimension", config.d_head)
        self.classes = Axis("C", "class", len(classifier.classes), classifier.classes)
        self.text = Axis("B", "text", 1, ("the text",))
        self.focus = self._focus()
        self.who = f"“{self.names[self.focus]}” (token {self.focus + 1})"

    def value(self, name: str) -> FloatArray:
        """What was recorded at a tap."""
        return self.traced.values[name]

    def _focus(self) -> int:
        real = [n for n, token in enumerate(self.traced.tokens) if not token.is_special]
        weights = self.traced.pooling
        if weights is None or self.config.pooling == "mean":
            return real[len(real) // 2]
        return max(real, key=lambda n: float(weights[n]))

    def token_labels(self) -> tuple[str, ...]:
        """The tokens with their numbers."""
        return tuple(f"{n} · {name}" for n, name in enumerate(self.names, start=1))

    def which_token(self, text: str, values: Sequence[float], because: Callable[[int], str]) -> "Question | None":
        """A question for the token with the largest value."""
        return which(text, self.token_labels(), values, because)

    def share_question(self, shares: FloatArray, *, whole: bool = False) -> "Question | None":
        """How large the largest of T shares is: of the attention of the focus, or of the vector of the whole text."""
        if len(self.names) < 2:
            return None
        best = int(np.argmax(shares))
        name = f"“{self.names[best]}” (token {best + 1})"
        text = (
            f"How much of the text's vector comes from {name}?"
            if whole
            else f"How much of the attention of {self.who} goes to {name}?"
        )
        return of_bins(text, float(shares[best]))


def array(parameter: Any) -> FloatArray:
    """A parameter's numbers."""
    values: FloatArray = parameter.detach().float().numpy()
    return values


@cache
def dimensions(n: int) -> tuple[str, ...]:
    """Names of n dimensions: 0, 1, …"""
    return tuple(map(str, range(n)))


def which(text: str, names: Sequence[str], values: Sequence[float], because: Callable[[int], str]) -> Question | None:
    """A question for the largest value: all names where they are few, else the right one and some spread over the
    ranking. None where there is nothing to choose from."""
    ranked = sorted(range(len(names)), key=lambda n: -values[n])
    ranked = [n for n in ranked if n == ranked[0] or values[n] < values[ranked[0]]]
    last = len(ranked) - 1
    if last < 1:
        return None
    offered = sorted({ranked[place] for place in (range(last + 1) if last < 6 else (0, 1, last // 2, last))})
    return Question(text, tuple(names[n] for n in offered), offered.index(ranked[0]), because(ranked[0]))


def of_numbers(text: str, right: int, others: Sequence[int], because: str) -> Question | None:
    """A question for a number among a few others; None where all are the same."""
    options = sorted({right, *others})
    if len(options) < 2:
        return None
    return Question(text, tuple(f"{option:,}" for option in options), options.index(right), because)


def of_bins(text: str, share: float) -> Question:
    """A question for a share, to be guessed to within a band."""
    options = ("less than 10 %", "10 to 30 %", "30 to 60 %", "60 to 90 %", "more than 90 %")
    answer = int(np.searchsorted([0.1, 0.3, 0.6, 0.9], share, side="right"))
    return Question(text, options, answer, f"{share:.1%}.".replace("%", " %"))
