"""The arithmetic of one number of the forward pass: the formula, the formula with numbers inserted, and the result.

Everything is recomputed in float64 with NumPy, which also checks the model. Lines are LaTeX; tokens i, j, classes c,
heads and layers count from 1, dimensions from 0.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Arithmetic:
    """How one number is computed.

    `lines` are LaTeX, from symbols to numbers to the result. `value` is the result in float64. `terms` is a table of
    the summed terms, with a row per label and a column per header; None if nothing is summed. `note` is a sentence
    about the lines.
    """

    lines: tuple[str, ...]
    value: float
    headers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    terms: NDArray[np.float64] | None = None
    note: str = ""


def fill_in(equation: str, **indices: int) -> str:
    """An equation with numbers for its subscript letters; `indices` count from 0, but i, j and c are shown from 1."""
    numbers = {letter: str(index + (letter in "ijc")) for letter, index in indices.items()}

    def subscript(match: re.Match[str]) -> str:
        return "_{" + re.sub("[a-z]", lambda letter: numbers.get(letter[0], letter[0]), match[1] or match[2]) + "}"

    return re.sub(r"_(?:\{([^{}]*)\}|([a-z]))", subscript, equation)


def number(value: float) -> str:
    """A number as LaTeX: with four decimals, or in scientific notation if these would all be zero."""
    if math.isinf(value):
        return r"-\infty" if value < 0 else r"\infty"
    if value and abs(value) < 0.00005:
        mantissa, exponent = f"{value:.1e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    return f"{value + 0.0:.4f}"  # turns -0.0 into 0.0


def _factor(value: float) -> str:
    return f"({number(value)})" if value < 0 or "cdot" in number(value) else number(value)


def _abbreviated_sum(parts: Sequence[str]) -> str:
    """Terms joined by plus signs; if there are more than two, only the first and the last."""
    return " + ".join(parts if len(parts) <= 2 else (parts[0], r"\dots", parts[-1]))


def equation_lines(equation: str, *steps: str) -> tuple[str, ...]:
    """The lines of an equation that contains `&=`, with a further line `= step` for each step."""
    return (equation, *(f"&= {step}" for step in steps))


def lookup(equation: str, value: float, *, factor: float = 1.0) -> Arithmetic:
    """A number looked up in a table, multiplied by a constant."""
    result = float(value) * factor
    product = [] if factor == 1.0 else [rf"{_factor(value)} \cdot {number(factor)}"]
    return Arithmetic(equation_lines(equation, *product, number(result)), result)


def total(equation: str, values: Sequence[float]) -> Arithmetic:
    """A sum of a few numbers."""
    result = float(np.sum(np.asarray(values, dtype=np.float64)))
    return Arithmetic(equation_lines(equation, " + ".join(map(_factor, map(float, values))), number(result)), result)


def dot_product(
    equation: str,
    left: Floats,
    right: Floats,
    *,
    headers: tuple[str, str],
    labels: Sequence[str] | None = None,
    divisor: float | None = None,
    bias: float | None = None,
    function: tuple[str, Callable[[float], float]] | None = None,
) -> Arithmetic:
    """A dot product of two vectors (n,), optionally divided, then with a bias added, then passed through a function.

    `headers` name the two vectors, and `labels` the n terms (0, 1, … by default); `function` is a LaTeX name and the
    function.
    """
    factors = np.stack([left, right], axis=1).astype(np.float64)  # n 2
    terms = np.column_stack([factors, factors.prod(axis=1)])  # n 3
    result = float(terms[:, 2].sum())
    expression = _abbreviated_sum([rf"{_factor(a)} \cdot {_factor(b)}" for a, b in factors])
    steps = [number(result)]
    if divisor is not None:
        expression = rf"\frac{{{expression}}}{{{number(divisor)}}}"
        steps = [rf"\frac{{{number(result)}}}{{{number(divisor)}}}", number(result / divisor)]
        result /= divisor
    if bias is not None:
        expression += f" + {_factor(bias)}"
        steps = [*steps[:-1], f"{steps[-1]} + {_factor(bias)}", number(result + bias)]
        result += bias
    if function is not None:
        name, compute = function
        expression = rf"{name}\left({expression}\right)"
        steps = [*(rf"{name}({step})" for step in steps), number(compute(result))]
        result = compute(result)
    names = tuple(labels or map(str, range(len(terms))))
    return Arithmetic(equation_lines(equation, expression, *steps), result, (*headers, "product"), names, terms)


def softmax_entry(
    equation: str, scores: Floats, index: int, *, labels: Sequence[str], headers: tuple[str, str] = ("score", "weight")
) -> Arithmetic:
    """One entry of a softmax over n scores, named by `labels`; `headers` name the scores and the results.

    The maximum is first subtracted from all scores, which does not change the result and prevents overflow.
    """
    exact = np.asarray(scores, dtype=np.float64)
    largest = float(exact.max())
    powers = np.exp(exact - largest)
    summed = float(powers.sum())
    value = float(powers[index] / summed)
    steps = (
        rf"\frac{{{_exp(f'{number(float(exact[index]))} - {_factor(largest)}')}}}"
        rf"{{{_abbreviated_sum([_exp(number(score - largest)) for score in exact])}}}",
        rf"\frac{{{number(float(powers[index]))}}}{{{number(summed)}}}",
        number(value),
    )
    terms = np.stack([exact, powers, powers / summed], axis=1)
    columns = (headers[0], f"exp({headers[0]} − max)", headers[1])
    note = f"Subtracting the largest {headers[0]} from all changes no {headers[1]}."
    return Arithmetic(equation_lines(equation, *steps), value, columns, tuple(labels), terms, note)


def _exp(exponent: str) -> str:
    return rf"\mathrm{{e}}^{{{exponent}}}"


def in_latex(epsilon: float) -> str:
    """A small number as LaTeX; a power of ten is written as one: 10^{-5}."""
    exponent = math.log10(epsilon)
    return f"10^{{{exponent:.0f}}}" if exponent.is_integer() else f"{epsilon:g}"


def layer_norm_entry(
    equation: str, row: Floats, index: int, *, weight: float, bias: float, epsilon: float
) -> Arithmetic:
    """One entry of a LayerNorm over a row of D numbers (Ba et al. 2016, equations 3 and 4)."""
    x = np.asarray(row, dtype=np.float64)
    mean = float(x.mean())
    centred = x - mean
    variance = float(np.square(centred).mean())
    value = float(centred[index]) / math.sqrt(variance + epsilon) * weight + bias
    expression = (
        rf"\frac{{{number(float(x[index]))} - {_factor(mean)}}}{{\sqrt{{{number(variance)} + {in_latex(epsilon)}}}}} "
        rf"\cdot {_factor(weight)} + {_factor(bias)}"
    )
    lines = (
        rf"\mu &= \tfrac{{1}}{{{len(x)}}} \textstyle\sum_d x_d = {number(mean)}",
        rf"\sigma^2 &= \tfrac{{1}}{{{len(x)}}} \textstyle\sum_d (x_d - \mu)^2 = {number(variance)}",
        *equation_lines(equation, expression, number(value)),
    )
    table = np.stack([x, centred, np.square(centred)], axis=1)
    return Arithmetic(lines, value, ("x", "x − μ", "(x − μ)²"), tuple(map(str, range(len(x)))), table)
