"""A layer: the order of its steps, norms, additions to the residual stream, and the feed-forward network."""

import math
from functools import partial

from txcls.inspection.steps.arithmetic import fill_in, in_latex, layer_norm_entry
from txcls.inspection.steps.attention import attention_steps
from txcls.inspection.steps.step import (
    ForwardPass,
    Operand,
    WalkStep,
    addition,
    product,
    source_of,
    to_numpy,
)
from txcls.inspection.tracing import FloatArray
from txcls.model import Block, FeedForward, LayerNorm


def block_steps(run: ForwardPass, layer: int, previous: WalkStep) -> list[WalkStep]:
    """All steps of a layer (from 0), which reads the output of the step `previous`.

    With pre-norm, attention and feed-forward each read a normalised copy of the residual stream; with post-norm, they
    read the stream itself, which is normalised after each addition.
    """
    block, steps, stream = run.block(layer), list[WalkStep](), previous
    for part, title, norm, steps_of_part in (
        ("attn", "attention", block.norm_attn, attention_steps),
        ("ff", "feed-forward", block.norm_ff, feed_forward_steps),
    ):
        if run.config.norm == "pre":
            steps.append(norm_step(run, f"norm_{part}", f"Norm before {title}", norm, stream, layer))
            steps += steps_of_part(run, layer, steps[-1])
            tap = "resid_mid" if part == "attn" else "resid_post"
            stream = _add(run, layer, part, stream, steps[-1], run.value(f"layers.{layer}.{tap}"))
            steps.append(stream)
        else:
            steps += steps_of_part(run, layer, stream)
            added = _add(run, layer, part, stream, steps[-1], stream.cells() + steps[-1].cells())
            stream = norm_step(run, f"norm_{part}", f"Norm after {title}", norm, added, layer)
            steps += [added, stream]
    return steps


def norm_step(
    run: ForwardPass, name: str, title: str, norm: LayerNorm, previous: WalkStep, layer: int | None
) -> WalkStep:
    """The step of a LayerNorm that reads the step `previous`; `name` is the norm's path in its layer or the model."""
    stream, weight, bias = previous.cells(), to_numpy(norm.weight), to_numpy(norm.bias)
    epsilon = in_latex(norm.epsilon)
    return WalkStep(
        name.replace("embeddings.norm", "norm_embeddings"),
        title,
        "The D numbers of each token are shifted to mean 0 and scaled to variance 1, then scaled by γ and shifted by "
        "β, which are trained, one pair per dimension. Tokens do not interact here.",
        r"y_{i,d} = \frac{x_{i,d} - \mu_i}{\sqrt{\sigma_i^2 + EPSILON}} \cdot \gamma_d + \beta_d".replace(
            "EPSILON", epsilon
        ),
        (source_of(LayerNorm.forward, "centred =", "normed"),),
        **run.numbers("y", "TD", run.value(f"{name if layer is None else f'layers.{layer}.{name}'}.out"), layer),
        operands=(previous.operand("row"),),
        _explain=lambda _, i, d: layer_norm_entry(
            fill_in(
                r"y_{i,d} &= \frac{x - \mu}{\sqrt{\sigma^2 + EPSILON}} \cdot \gamma + \beta".replace(
                    "EPSILON", epsilon
                ),
                i=i,
                d=d,
            ),
            stream[i],
            d,
            weight=float(weight[d]),
            bias=float(bias[d]),
            epsilon=norm.epsilon,
        ),
    )


def _add(run: ForwardPass, layer: int, part: str, stream: WalkStep, output: WalkStep, values: FloatArray) -> WalkStep:
    """The step that adds the output of attention or feed-forward to the residual stream."""
    is_pre = run.config.norm == "pre"
    tap = "resid_mid" if part == "attn" else "resid_post"
    return WalkStep(
        f"add_{part}",
        f"Add the output of {'attention' if part == 'attn' else 'feed-forward'}",
        "The output is added to the residual stream element by element; later steps can still read what was in the "
        "stream before." + ("" if is_pre else " The next step normalises the sum."),
        rf"x_i \leftarrow {stream.symbol}_i + {output.symbol}_i",
        (source_of(Block.forward, f"x = self.{tap}(x + " if is_pre else f"x = self.{tap}(self.norm"),),
        **run.numbers("x", "TD", values, layer),
        **addition((stream, output), sign=r"\leftarrow"),
    )


def feed_forward_steps(run: ForwardPass, layer: int, previous: WalkStep) -> list[WalkStep]:
    """The two steps of a layer's feed-forward network, which reads the output of the step `previous`."""
    hidden = _expand(run, layer, previous)
    return [hidden, _contract(run, layer, hidden)]


def _expand(run: ForwardPass, layer: int, previous: WalkStep) -> WalkStep:
    linear, kind = run.block(layer).ff.expand, run.config.activation
    function = r"\mathrm{ReLU}" if kind == "relu" else r"\mathrm{GELU}"
    effect = "ReLU sets negative values to 0" if kind == "relu" else "GELU moves negative values towards 0"
    hidden = run.value(f"layers.{layer}.ff.hidden")  # T F
    return WalkStep(
        "expand",
        "Feed-forward: expand",
        f"For each token separately, a matrix turns the D numbers into F hidden activations. {effect}.",
        rf"h_i = {function}(W^1 {previous.symbol}_i + b^1)",
        (source_of(FeedForward.forward, "expanded = self.expand", "hidden = "),),
        **run.numbers("h", "TF", hidden, layer),
        **product(
            previous.operand("row"),
            Operand("weights of the hidden activations", to_numpy(linear.weight).T[None], "column"),
            "if",
            rf"h_{{i,f}} &= {function}\left(\textstyle\sum_d {previous.symbol}_{{i,d}}\,W^1_{{f,d}} + b^1_f\right)",
            headers=(previous.symbol, "W¹"),
            bias=to_numpy(linear.bias),
            function=(function, partial(_activation, kind)),
        ),
    )


def _contract(run: ForwardPass, layer: int, previous: WalkStep) -> WalkStep:
    linear = run.block(layer).ff.contract
    return WalkStep(
        "contract",
        "Feed-forward: contract",
        "A second matrix maps the F activations back to D numbers: a sum of its columns, weighted by the activations.",
        r"u_i = W^2 h_i + b^2",
        (source_of(FeedForward.forward, "output: Tensor"),),
        **run.numbers("u", "TD", run.value(f"layers.{layer}.ff_out"), layer),
        **product(
            previous.operand("row"),
            Operand("output weights", to_numpy(linear.weight).T[None], "column"),
            "id",
            r"u_{i,d} &= \textstyle\sum_f h_{i,f}\,W^2_{d,f} + b^2_d",
            headers=("h", "W²"),
            bias=to_numpy(linear.bias),
        ),
    )


def _activation(kind: str, value: float) -> float:
    """ReLU, or GELU (Hendrycks & Gimpel 2016), exact or with the tanh approximation."""
    if kind == "relu":
        return max(value, 0.0)
    if kind == "gelu":
        return 0.5 * value * (1.0 + math.erf(value / math.sqrt(2.0)))
    return 0.5 * value * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (value + 0.044715 * value**3)))
