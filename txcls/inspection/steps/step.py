"""A step of the forward pass: its formula, code, numbers, and the arithmetic of each number.

`ForwardPass` is the recorded pass of one text, from which the steps are built.
"""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from txcls.inference.predictor import Predictor
from txcls.inspection.steps.arithmetic import Arithmetic, Floats, dot_product, fill_in, total
from txcls.inspection.tracing import FloatArray, TracedText
from txcls.model import Block, TextClassifier


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of code, dedented; `file` is relative to the project folder, and `line` is the number of the first line."""

    file: str
    line: int
    code: str


@cache
def source_of(owner: ModuleType | type | Callable[..., Any], first: str = "", last: str = "") -> SourceLines:
    """Lines from the source of a module, class, function or method: the code shown is the code that runs.

    All lines are returned if one of the two is not found, as in a changed model.py.

    Args:
        first: the excerpt begins with the first line that contains this; "" for all lines.
        last: the excerpt ends with the next line that contains this; "" for a single line.
    """
    lines, number = inspect.getsourcelines(owner)
    begin = next((index for index, line in enumerate(lines) if first in line), len(lines))
    end = next((index for index in range(begin, len(lines)) if first and (last or first) in lines[index]), None)
    if end is None:
        begin, end = 0, len(lines) - 1
    file = Path(inspect.getfile(owner)).resolve().relative_to(Path(__file__).resolve().parents[3])
    code = textwrap.dedent("".join(lines[begin : end + 1])).rstrip()
    return SourceLines(file.as_posix(), max(number, 1) + begin, code)  # Python numbers the lines of a module from 0


Explain = Callable[[int, int, int], Arithmetic]
"""The arithmetic of the number at (head, row, column)."""
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
    "t": "text vector",
    r"\ell": "logits",
    "P": "probabilities before calibration",
    r"\ell'": "calibrated logits",
    "P'": "calibrated probabilities",
}
"""The meaning of the symbols in formulas."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The rows or the columns of a step's matrix: letter in its shape, kind, size, and names (if any)."""

    letter: str
    kind: Literal["token", "dimension", "class", "state", "text"]
    size: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operand:
    """A matrix from which a step's numbers are computed.

    Attributes:
        values: (H, rows, columns), or (1, rows, columns) if it is the same for every head.
        used: which of its numbers determine the result at (i, j): those in row i, those in column j, or the one at (i,
            j).
        source: title of the step that computes it; "" for weights.
    """

    name: str
    values: FloatArray = field(repr=False)
    used: Use
    source: str = ""

    def cells(self, head: int = 0) -> FloatArray:
        """The numbers (rows, columns) of a head."""
        cells: FloatArray = self.values[head if len(self.values) > 1 else 0]
        return cells


@dataclass(frozen=True)
class WalkStep:
    """A step of the forward pass for one text.

    Attributes:
        name: its name in links; unique together with `layer` (from 0; None outside the layers).
        description: what happens, in a sentence or two.
        formula: LaTeX; empty if the step has no arithmetic.
        code: the lines that compute it.
        symbol: symbol of its numbers in formulas, a key of `SYMBOLS`.
        rows, columns: the axes of `values`.
        values: (H, rows, columns), or (1, rows, columns) for a step without heads; None for text, tokens and ids.
        quantity: kind of number; weights and probabilities sum to 1 along each row, or along the only column.
        operands: the matrices from which its numbers are computed; empty if they are computed from a formula.
        follows: title of the step whose output it reads, for a step without operands.
    """

    name: str
    title: str
    description: str
    formula: str
    code: tuple[SourceLines, ...]
    symbol: str = ""
    layer: int | None = None
    rows: Axis | None = None
    columns: Axis | None = None
    values: FloatArray | None = field(default=None, repr=False)
    by_head: bool = False
    quantity: Literal["value", "weight", "probability"] = "value"
    operands: tuple[Operand, ...] = field(default=(), repr=False)
    follows: str = ""
    _explain: Explain | None = field(default=None, repr=False)

    @property
    def input_titles(self) -> tuple[str, ...]:
        """Titles of the steps whose output it reads."""
        return tuple(title for title in (self.follows, *(operand.source for operand in self.operands)) if title)

    @property
    def meaning(self) -> str:
        """The meaning of its numbers."""
        return SYMBOLS[self.symbol]

    def cells(self, head: int = 0) -> FloatArray:
        """The numbers (rows, columns); a step without heads ignores `head`.

        Raises:
            ValueError: the step has no numbers.
        """
        if self.values is None:
            raise ValueError(f"the step {self.name!r} has no numbers; its tokens are in the walk's `traced`")
        cells: FloatArray = self.values[head if self.by_head else 0]
        return cells

    def operand(self, used: Use) -> Operand:
        """The step's numbers as an operand of a later step."""
        assert self.values is not None
        return Operand(self.meaning, self.values, used, self.title)

    def explain(self, row: int, column: int, *, head: int = 0) -> Arithmetic:
        """How one number is computed from the operands.

        Raises:
            IndexError: there is no such row, column or head.
            ValueError: the step has no numbers.
        """
        n_rows, n_columns = self.cells(head).shape
        if not (0 <= row < n_rows and 0 <= column < n_columns) or self._explain is None:
            raise IndexError(f"got row {row}, column {column}; {self.name} has {n_rows} by {n_columns}")
        return self._explain(head if self.by_head else 0, row, column)


def product(
    left: Operand, right: Operand, letters: str, equation: str, *, bias: FloatArray | None = None, **settings: Any
) -> dict[str, Any]:
    """The operands and the arithmetic of a step whose numbers are rows of `left` times columns of `right`.

    Args:
        letters: subscripts in `equation` for the row and, if there are several columns, the column; m is the column
            counted over all heads.
        bias: one number per column, counted over all heads, or (rows, 1).
        settings: further arguments of `dot_product`.
    """

    def explain(head: int, row: int, column: int) -> Arithmetic:
        column_over_heads = head * right.values.shape[2] + column
        indices = {**dict(zip(letters, (row, column), strict=False)), "m": column_over_heads}
        added = None if bias is None else float(bias[row, 0] if bias.ndim == 2 else bias[column_over_heads])
        factors = left.cells(head)[row], right.cells(head)[:, column]
        return dot_product(fill_in(equation, **indices), *factors, bias=added, **settings)

    return {"operands": (left, right), "_explain": explain}


def addition(parts: Sequence[WalkStep], *, sign: str = "=") -> dict[str, Any]:
    """The operands and the arithmetic of a step that adds up the numbers of other steps in the residual stream."""
    equation = rf"x_{{i,d}} &{sign} " + " + ".join(f"{part.symbol}_{{i,d}}" for part in parts)
    return {
        "operands": tuple(part.operand("cell") for part in parts),
        "_explain": lambda _, i, d: total(fill_in(equation, i=i, d=d), [float(part.cells()[i, d]) for part in parts]),
    }


class ForwardPass:
    """The forward pass of one text: values at the taps, weights, axes, and the token that is shown first.

    Attributes:
        names: the T tokens as text.
        ids: their T ids.
        axes: matrix axes, keyed by shape letter.
        focus: index of the token that is shown first: the word with the largest pooling weight, or the middle
            word if the model does not pool by attention.
    """

    def __init__(self, classifier: Predictor, traced: TracedText) -> None:
        model = classifier.checkpoint.model
        assert isinstance(model, TextClassifier)
        self.classifier, self.traced, self.model = classifier, traced, model
        self.config = config = classifier.checkpoint.config.model
        self.names = tuple(token.label for token in traced.tokens)
        self.ids = [token.id for token in traced.tokens]
        sizes = {"D": config.d_model, "E": config.d_head, "F": config.d_ff}
        self.axes = {letter: Axis(letter, "dimension", size) for letter, size in sizes.items()} | {
            "T": Axis("T", "token", len(self.names), self.names),
            "C": Axis("C", "class", len(classifier.classes), classifier.classes),
            "B": Axis("B", "text", 1, ("the text",)),
        }
        words = [n for n, token in enumerate(traced.tokens) if not token.is_special]
        if traced.pooling is None or config.pooling == "mean":
            self.focus = words[len(words) // 2]
        else:
            self.focus = words[int(traced.pooling[words].argmax())]

    def value(self, tap: str) -> FloatArray:
        """The value recorded at a tap, without the batch axis; TraceError if there is none."""
        return self.traced[tap]

    def numbers(self, symbol: str, letters: str, values: Floats, layer: int | None = None) -> dict[str, Any]:
        """The fields of a step that hold its numbers; `letters` names the axes of `values`, H first if there are
        heads."""
        rows, columns = (self.axes[letter] for letter in letters[-2:])
        return {
            "symbol": symbol,
            "layer": layer,
            "rows": rows,
            "columns": columns,
            "values": values.astype(np.float32).reshape(-1, rows.size, columns.size),
            "by_head": letters[0] == "H",
        }

    def block(self, layer: int) -> Block:
        """The block of a layer (from 0)."""
        block = self.model.layers[layer]
        assert isinstance(block, Block)
        return block

    def token_labels(self) -> tuple[str, ...]:
        """The tokens with their numbers."""
        return tuple(f"{n} · {name}" for n, name in enumerate(self.names, start=1))


def to_numpy(parameter: Tensor) -> FloatArray:
    """A parameter as a NumPy array."""
    values: FloatArray = parameter.detach().float().numpy()
    return values


def weight_and_bias(linear: nn.Linear) -> tuple[FloatArray, FloatArray | None]:
    """The weight and the bias (or None) of a linear map."""
    bias = dict(linear.named_parameters()).get("bias")
    return to_numpy(linear.weight), None if bias is None else to_numpy(bias)
