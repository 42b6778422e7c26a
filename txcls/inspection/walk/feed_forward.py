"""The feed-forward network: expand, activation, contract."""

import math

import numpy as np

from txcls.inspection.walk.arithmetic import Arithmetic, dot_product
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.questions import Question
from txcls.inspection.walk.source_code import snippet
from txcls.inspection.walk.step import Axis, Operand, Step
from txcls.model import FeedForward
from txcls.wording import percentage


def feed_forward_steps(run: ForwardPass, layer: int, before: Step) -> list[Step]:
    """The two steps of a layer's feed-forward network, which reads the output of the step before."""
    hidden = _expand(run, layer, before)
    return [hidden, _contract(run, layer, hidden)]


def _expand(run: ForwardPass, layer: int, before: Step) -> Step:
    linear, kind = run.block(layer).ff.expand, run.config.activation
    weight, bias, read = to_numpy(linear.weight), to_numpy(linear.bias), before.cells()
    function = r"\mathrm{ReLU}" if kind == "relu" else r"\mathrm{GELU}"
    effect = "ReLU sets the negative ones to 0" if kind == "relu" else "GELU pushes the negative ones towards 0"
    hidden = run.value(f"layers.{layer}.ff.hidden")  # T F

    def explain(_: int, i: int, f: int) -> Arithmetic:
        summed = float(read[i].astype(np.float64) @ weight[f].astype(np.float64)) + float(bias[f])
        symbol = before.symbol
        return dot_product(
            f"h_{{{i + 1},{f}}}",
            rf"{function}\left(\textstyle\sum_d {symbol}_{{{i + 1},d}}\,W^1_{{{f},d}} + b^1_{{{f}}}\right)",
            read[i],
            weight[f],
            headers=(symbol, "W¹"),
            labels=dimensions(run.config.d_model),
            bias=float(bias[f]),
            after=(function, _activation(summed, kind)),
        )

    return Step(
        "expand",
        "Feed-forward: expand",
        f"For each token separately, a matrix turns the D numbers into F hidden activations. {effect}.",
        rf"h_i = {function}(W^1 {before.symbol}_i + b^1)",
        (snippet(FeedForward.forward, "expanded = self.expand", "hidden = "),),
        symbol="h",
        layer=layer,
        rows=run.tokens,
        columns=Axis("F", "dimension", run.config.d_ff),
        values=hidden[None],
        reads=(before.title,),
        operands=(
            Operand(before.means, read[None], "row"),
            Operand("weights of the hidden activations", weight.T[None], "column"),
        ),
        _explain=explain,
        _ask=lambda _: _ask_inactive(run, float((hidden[run.focus] <= 0).mean())),
    )


def _ask_inactive(run: ForwardPass, share: float) -> Question:
    return Question(
        f"What share of the {run.config.d_ff} hidden activations of {run.who} is 0 or negative?",
        ("less than a quarter", "a quarter to a half", "a half to three quarters", "more than three quarters"),
        min(int(share * 4), 3),
        f"{percentage(share)} of them.",
    )


def _contract(run: ForwardPass, layer: int, before: Step) -> Step:
    linear, hidden = run.block(layer).ff.contract, before.cells()
    weight, bias = to_numpy(linear.weight), to_numpy(linear.bias)
    return Step(
        "contract",
        "Feed-forward: contract",
        "A second matrix turns the F activations back into D numbers: the sum of its columns, weighted by the "
        "activations.",
        r"u_i = W^2 h_i + b^2",
        (snippet(FeedForward.forward, "output: Tensor"),),
        symbol="u",
        layer=layer,
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value(f"layers.{layer}.ff_out")[None],
        reads=(before.title,),
        operands=(
            Operand("hidden activations", hidden[None], "row"),
            Operand("output weights", weight.T[None], "column"),
        ),
        _explain=lambda _, i, d: dot_product(
            f"u_{{{i + 1},{d}}}",
            rf"\textstyle\sum_f h_{{{i + 1},f}}\,W^2_{{{d},f}} + b^2_{{{d}}}",
            hidden[i],
            weight[d],
            headers=("h", "W²"),
            labels=dimensions(run.config.d_ff),
            bias=float(bias[d]),
        ),
        _ask=lambda _: Question(
            "Does the feed-forward network move information from one token to another?",
            ("Yes", "No"),
            1,
            "Its two matrices work on one row at a time. Only attention moves information between rows.",
        ),
    )


def _activation(value: float, kind: str) -> float:
    """ReLU; GELU (Hendrycks & Gimpel 2016), exact or by its tanh approximation."""
    if kind == "relu":
        return max(value, 0.0)
    if kind == "gelu":
        return 0.5 * value * (1.0 + math.erf(value / math.sqrt(2.0)))
    return 0.5 * value * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (value + 0.044715 * value**3)))
