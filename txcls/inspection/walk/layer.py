"""A layer: the order of its steps, norms, additions to the residual stream, and the feed-forward network."""

import math
from typing import Literal

import numpy as np

from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import Arithmetic, dot_product, layer_norm_entry, total
from txcls.inspection.walk.attention import attention_steps
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.step import Axis, Operand, Question, WalkStep, ask_largest, source_of
from txcls.model import Block, FeedForward, LayerNorm
from txcls.wording import percentage

Part = Literal["attn", "ff"]


def block_steps(run: ForwardPass, layer: int, before: WalkStep) -> list[WalkStep]:
    """All steps of a layer, counted from 0, that reads the output of the step before it."""
    return (_pre_norm_block if run.config.norm == "pre" else _post_norm_block)(run, layer, before)


def _pre_norm_block(run: ForwardPass, layer: int, before: WalkStep) -> list[WalkStep]:
    """Each half reads a normalised copy of the residual stream and adds to the stream itself."""
    block = run.block(layer)
    normed = norm_step(run, "norm_attn", "Norm before attention", block.norm_attn, before, layer)
    attention = attention_steps(run, layer, normed)
    middle = _add(run, layer, "attn", before, attention[-1], run.value(f"layers.{layer}.resid_mid"))
    normed_again = norm_step(run, "norm_ff", "Norm before feed-forward", block.norm_ff, middle, layer)
    feed_forward = feed_forward_steps(run, layer, normed_again)
    end = _add(run, layer, "ff", middle, feed_forward[-1], run.value(f"layers.{layer}.resid_post"))
    return [normed, *attention, middle, normed_again, *feed_forward, end]


def _post_norm_block(run: ForwardPass, layer: int, before: WalkStep) -> list[WalkStep]:
    """Each half reads the residual stream, and the stream is normalised after each addition."""
    block = run.block(layer)
    attention = attention_steps(run, layer, before)
    added = _add(run, layer, "attn", before, attention[-1], before.cells() + attention[-1].cells())
    middle = norm_step(run, "norm_attn", "Norm after attention", block.norm_attn, added, layer)
    feed_forward = feed_forward_steps(run, layer, middle)
    added_again = _add(run, layer, "ff", middle, feed_forward[-1], middle.cells() + feed_forward[-1].cells())
    end = norm_step(run, "norm_ff", "Norm after feed-forward", block.norm_ff, added_again, layer)
    return [*attention, added, middle, *feed_forward, added_again, end]


def norm_step(
    run: ForwardPass, name: str, title: str, norm: LayerNorm, before: WalkStep, layer: int | None
) -> WalkStep:
    """A LayerNorm of the output of the step before."""
    stream, weight, bias = before.cells(), to_numpy(norm.weight), to_numpy(norm.bias)
    focus = stream[run.focus]
    return WalkStep(
        name,
        title,
        "The D numbers of each token are shifted to mean 0 and scaled to variance 1, then scaled by γ and shifted by "
        "β, which are trained, one pair per dimension. Tokens do not interact here.",
        r"y_{i,d} = \frac{x_{i,d} - \mu_i}{\sqrt{\sigma_i^2 + 10^{-5}}} \cdot \gamma_d + \beta_d",
        (source_of(LayerNorm.forward, "centred =", "normed"),),
        symbol="y",
        layer=layer,
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value(f"{'norm' if layer is None else f'layers.{layer}.{name}'}.out")[None],
        reads=(before.title,),
        operands=(Operand(before.means, stream[None], "row"),),
        _explain=lambda _, i, d: layer_norm_entry(
            f"y_{{{i + 1},{d}}}", stream[i], d, weight=float(weight[d]), bias=float(bias[d])
        ),
        _ask=lambda _: Question(
            "Over which numbers are mean and variance taken?",
            ("Over the D numbers of one token", "Over the T tokens of one dimension", "Over the whole matrix"),
            0,
            "Each row is normalised by itself, so that the result depends on no other token and no other text. For "
            f"{run.who} the mean before was {focus.mean():.4f}, the standard deviation {focus.std():.4f}.",
        ),
    )


def _add(run: ForwardPass, layer: int, part: Part, stream: WalkStep, written: WalkStep, values: FloatArray) -> WalkStep:
    """The residual stream plus the output of attention or feed-forward."""
    old, new = stream.cells(), written.cells()
    norms = [float(np.linalg.norm(vectors[run.focus])) for vectors in (old, new)]
    is_pre = run.config.norm == "pre"
    tap = "resid_mid" if part == "attn" else "resid_post"
    return WalkStep(
        f"add_{part}",
        f"Add the output of {'attention' if part == 'attn' else 'feed-forward'}",
        "The output is added to the residual stream element by element: what was in the stream stays there for later "
        "steps to read." + ("" if is_pre else " The next step normalises the sum."),
        rf"x_i \leftarrow {stream.symbol}_i + {written.symbol}_i",
        (source_of(Block.forward, f"x = self.{tap}(x + " if is_pre else f"x = self.{tap}(self.norm"),),
        symbol="x",
        layer=layer,
        rows=run.tokens,
        columns=run.model_dims,
        values=values[None],
        reads=(stream.title, written.title),
        operands=tuple(Operand(step.means, step.cells()[None], "cell") for step in (stream, written)),
        _explain=lambda _, i, d: total(
            f"x_{{{i + 1},{d}}}",
            [f"{step.symbol}_{{{i + 1},{d}}}" for step in (stream, written)],
            [float(old[i, d]), float(new[i, d])],
            sign=r"\leftarrow",
        ),
        _ask=lambda _: ask_largest(
            f"Which vector of {run.who} has the larger norm?",
            ["the residual stream before", "the output that is added"],
            norms,
            lambda _: f"Residual stream before: {norms[0]:.4f}; output added: {norms[1]:.4f}.",
        ),
    )


def feed_forward_steps(run: ForwardPass, layer: int, before: WalkStep) -> list[WalkStep]:
    """The two steps of a layer's feed-forward network, which reads the output of the step before."""
    hidden = _expand(run, layer, before)
    return [hidden, _contract(run, layer, hidden)]


def _expand(run: ForwardPass, layer: int, before: WalkStep) -> WalkStep:
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

    return WalkStep(
        "expand",
        "Feed-forward: expand",
        f"For each token separately, a matrix turns the D numbers into F hidden activations. {effect}.",
        rf"h_i = {function}(W^1 {before.symbol}_i + b^1)",
        (source_of(FeedForward.forward, "expanded = self.expand", "hidden = "),),
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


def _contract(run: ForwardPass, layer: int, before: WalkStep) -> WalkStep:
    linear, hidden = run.block(layer).ff.contract, before.cells()
    weight, bias = to_numpy(linear.weight), to_numpy(linear.bias)
    return WalkStep(
        "contract",
        "Feed-forward: contract",
        "A second matrix turns the F activations back into D numbers: the sum of its columns, weighted by the "
        "activations.",
        r"u_i = W^2 h_i + b^2",
        (source_of(FeedForward.forward, "output: Tensor"),),
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
