"""A step of the forward pass: its formula, its code, its numbers, the arithmetic of each number, and a question."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import Arithmetic
from txcls.inspection.walk.questions import Question
from txcls.inspection.walk.source_code import Source

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
class Step:
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
    code: tuple[Source, ...]
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
