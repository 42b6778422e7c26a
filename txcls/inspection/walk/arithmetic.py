"""One number of the forward pass written out: the formula, the numbers put in, the result.

Everything is computed again in float64 by NumPy from what goes in, so that it also checks the model. Lines are LaTeX;
tokens, heads, layers and classes count from 1, dimensions from 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
LONGEST_SUM = 2
"""Terms of a sum that are written out; of a longer one the first and the last."""


@dataclass(frozen=True)
class Arithmetic:
    """How one number is computed.

    `lines` are LaTeX, from symbols to numbers to the result. `value` is the result in float64. `terms` is a table of
    the terms that are summed, with a row per label and a column per header; None where nothing is.
    """

    lines: tuple[str, ...]
    value: float
    headers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    terms: NDArray[np.float64] | None = None


def number(value: float) -> str:
    """A number as LaTeX: four decimals, or a power of ten where these would all be zero."""
    if math.isinf(value):
        return r"-\infty" if value < 0 else r"\infty"
    if value and abs(value) < 0.00005:
        mantissa, exponent = f"{value:.1e}".split("e")
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    return f"{value + 0.0:.4f}"  # no minus zero


def _factor(value: float) -> str:
    return f"({number(value)})" if value < 0 or "cdot" in number(value) else number(value)


def _written(parts: Sequence[str]) -> str:
    """Terms joined by plus signs, the middle of a long sum left out."""
    if len(parts) > LONGEST_SUM:
        parts = [parts[0], r"\dots", parts[-1]]
    return " + ".join(parts)


def equals(symbol: str, formula: str, *steps: str, sign: str = "=") -> tuple[str, ...]:
    """`symbol = formula` (or another sign), and below it `= step` for each further step."""
    return (f"{symbol} &{sign} {formula}", *(f"&= {step}" for step in steps))


def lookup(symbol: str, source: str, value: float, *, times: tuple[str, float] | None = None) -> Arithmetic:
    """A number read from a table, optionally times a constant (its symbol and its value)."""
    if times is None:
        return Arithmetic(equals(symbol, source, number(value)), float(value))
    name, factor = times
    result = float(value) * factor
    steps = (rf"{_factor(value)} \cdot {number(factor)}", number(result))
    return Arithmetic(equals(symbol, rf"{source} \cdot {name}", *steps), result)


def total(symbol: str, names: Sequence[str], values: Sequence[float], *, sign: str = "=") -> Arithmetic:
    """The sum of a few named numbers; an arrow as `sign` where `symbol` is among the names."""
    result = float(np.sum(np.asarray(values, dtype=np.float64)))
    written = " + ".join(map(_factor, map(float, values)))
    return Arithmetic(equals(symbol, " + ".join(names), written, number(result), sign=sign), result)


def dot_product(
    symbol: str,
    formula: str,
    left: Floats,
    right: Floats,
    *,
    headers: tuple[str, str],
    labels: Sequence[str],
    bias: float | None = None,
    divisor: float | None = None,
    after: tuple[str, float] | None = None,
) -> Arithmetic:
    """A dot product, optionally divided, plus a bias, or passed through a function.

    Args:
        symbol: the left-hand side.
        formula: the right-hand side in symbols.
        left: n factors.
        right: the n factors they are multiplied by.
        headers: names of the two factors in the table.
        labels: n names of the terms.
        bias: added at the end.
        divisor: the sum is divided by it, before the bias.
        after: a function by its LaTeX name, and its value at the sum.
    """
    terms = np.stack([left, right, np.asarray(left, dtype=np.float64) * np.asarray(right, dtype=np.float64)], axis=1)
    terms = terms.astype(np.float64)
    summed = float(terms[:, 2].sum())
    written = _written([rf"{_factor(a)} \cdot {_factor(b)}" for a, b, _ in terms])
    result, steps = summed, [number(summed)]
    if divisor is not None:
        written = rf"\frac{{{written}}}{{{number(divisor)}}}"
        result = summed / divisor
        steps = [rf"\frac{{{number(summed)}}}{{{number(divisor)}}}", number(result)]
    if bias is not None:
        written += f" + {_factor(bias)}"
        result += bias
        steps = [*steps[:-1], f"{steps[-1]} + {_factor(bias)}", number(result)]
    if after is not None:
        name, value = after
        written = rf"{name}\left({written}\right)"
        steps = [*(rf"{name}({step})" for step in steps), number(value)]
        result = value
    return Arithmetic(
        equals(symbol, formula, written, *steps), float(result), (*headers, "product"), tuple(labels), terms
    )


def softmax_entry(
    symbol: str,
    scores: Floats,
    place: int,
    *,
    entry: str,
    each: str,
    labels: Sequence[str],
    score: str = "score",
    result: str = "weight",
) -> Arithmetic:
    """One entry of a softmax over n scores.

    The largest score is subtracted from all of them first, which changes no result and keeps exponentials in range.

    Args:
        symbol: the left-hand side.
        scores: n numbers.
        place: index of the entry.
        entry, each: symbols of that score, and of score m, in the formula.
        labels: n names of the scores.
        score, result: headers of the table.
    """
    exact = np.asarray(scores, dtype=np.float64)
    largest = float(exact.max())
    powers = np.exp(exact - largest)
    summed = float(powers.sum())
    value = float(powers[place] / summed)
    written = _written([_exp(number(value - largest)) for value in exact])
    steps = (
        rf"\frac{{{_exp(f'{number(float(exact[place]))} - {_factor(largest)}')}}}{{{written}}}",
        rf"\frac{{{number(float(powers[place]))}}}{{{number(summed)}}}",
        number(value),
    )
    terms = np.stack([exact, powers, powers / summed], axis=1)
    headers = (score, f"exp({score} − max)", result)
    formula = rf"\frac{{{_exp(entry)}}}{{\sum_m {_exp(each)}}}"
    return Arithmetic(equals(symbol, formula, *steps), value, headers, tuple(labels), terms)


def _exp(exponent: str) -> str:
    return rf"\mathrm{{e}}^{{{exponent}}}"


def layer_norm_entry(symbol: str, row: Floats, place: int, *, weight: float, bias: float) -> Arithmetic:
    """One entry of a LayerNorm over a row of D numbers (Ba et al. 2016, equations 3 and 4)."""
    x = np.asarray(row, dtype=np.float64)
    mean = float(x.mean())
    centred = x - mean
    variance = float(np.square(centred).mean())
    value = float(centred[place]) / math.sqrt(variance + 1e-5) * weight + bias
    lines = (
        rf"\mu &= \tfrac{{1}}{{{len(x)}}} \textstyle\sum_d x_d = {number(mean)}",
        rf"\sigma^2 &= \tfrac{{1}}{{{len(x)}}} \textstyle\sum_d (x_d - \mu)^2 = {number(variance)}",
        *equals(
            symbol,
            r"\frac{x - \mu}{\sqrt{\sigma^2 + 10^{-5}}} \cdot \gamma + \beta",
            rf"\frac{{{number(float(x[place]))} - {_factor(mean)}}}{{\sqrt{{{number(variance)} + 10^{{-5}}}}}} "
            rf"\cdot {_factor(weight)} + {_factor(bias)}",
            number(value),
        ),
    )
    table = np.stack([x, centred, np.square(centred)], axis=1)
    return Arithmetic(lines, value, ("x", "x − μ", "(x − μ)²"), tuple(map(str, range(len(x)))), table)
