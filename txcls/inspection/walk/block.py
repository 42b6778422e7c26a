"""The order of the steps in a layer, its norms, and the additions to the residual stream."""

from typing import Literal

import numpy as np

from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import layer_norm_entry, total
from txcls.inspection.walk.attention import attention_steps
from txcls.inspection.walk.feed_forward import feed_forward_steps
from txcls.inspection.walk.forward_pass import ForwardPass, to_numpy
from txcls.inspection.walk.questions import Question, ask_largest
from txcls.inspection.walk.source_code import snippet
from txcls.inspection.walk.step import Operand, Step
from txcls.model import Block, LayerNorm

Part = Literal["attn", "ff"]


def block_steps(run: ForwardPass, layer: int, before: Step) -> list[Step]:
    """All steps of a layer, counted from 0, that reads the output of the step before it."""
    return (_pre_norm_block if run.config.norm == "pre" else _post_norm_block)(run, layer, before)


def _pre_norm_block(run: ForwardPass, layer: int, before: Step) -> list[Step]:
    """Each half reads a normalised copy of the residual stream and adds to the stream itself."""
    block = run.block(layer)
    normed = norm_step(run, "norm_attn", "Norm before attention", block.norm_attn, before, layer)
    attention = attention_steps(run, layer, normed)
    middle = _add(run, layer, "attn", before, attention[-1], run.value(f"layers.{layer}.resid_mid"))
    normed_again = norm_step(run, "norm_ff", "Norm before feed-forward", block.norm_ff, middle, layer)
    feed_forward = feed_forward_steps(run, layer, normed_again)
    end = _add(run, layer, "ff", middle, feed_forward[-1], run.value(f"layers.{layer}.resid_post"))
    return [normed, *attention, middle, normed_again, *feed_forward, end]


def _post_norm_block(run: ForwardPass, layer: int, before: Step) -> list[Step]:
    """Each half reads the residual stream, and the stream is normalised after each addition."""
    block = run.block(layer)
    attention = attention_steps(run, layer, before)
    added = _add(run, layer, "attn", before, attention[-1], before.cells() + attention[-1].cells())
    middle = norm_step(run, "norm_attn", "Norm after attention", block.norm_attn, added, layer)
    feed_forward = feed_forward_steps(run, layer, middle)
    added_again = _add(run, layer, "ff", middle, feed_forward[-1], middle.cells() + feed_forward[-1].cells())
    end = norm_step(run, "norm_ff", "Norm after feed-forward", block.norm_ff, added_again, layer)
    return [*attention, added, middle, *feed_forward, added_again, end]


def norm_step(run: ForwardPass, name: str, title: str, norm: LayerNorm, before: Step, layer: int | None) -> Step:
    """A LayerNorm of the output of the step before."""
    given, weight, bias = before.cells(), to_numpy(norm.weight), to_numpy(norm.bias)
    focus = given[run.focus]
    return Step(
        name,
        title,
        "The D numbers of each token are shifted to mean 0 and scaled to variance 1, then scaled by γ and shifted by "
        "β, which are trained, one pair per dimension. Tokens do not interact here.",
        r"y_{i,d} = \frac{x_{i,d} - \mu_i}{\sqrt{\sigma_i^2 + 10^{-5}}} \cdot \gamma_d + \beta_d",
        (snippet(LayerNorm.forward, "centred =", "normed"),),
        symbol="y",
        layer=layer,
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value(f"{'norm' if layer is None else f'layers.{layer}.{name}'}.out")[None],
        reads=(before.title,),
        operands=(Operand(before.means, given[None], "row"),),
        _explain=lambda _, i, d: layer_norm_entry(
            f"y_{{{i + 1},{d}}}", given[i], d, weight=float(weight[d]), bias=float(bias[d])
        ),
        _ask=lambda _: Question(
            "Over which numbers are mean and variance taken?",
            ("Over the D numbers of one token", "Over the T tokens of one dimension", "Over the whole matrix"),
            0,
            "Each row is normalised by itself, so that the result depends on no other token and no other text. For "
            f"{run.who} the mean before was {focus.mean():.4f}, the standard deviation {focus.std():.4f}.",
        ),
    )


def _add(run: ForwardPass, layer: int, part: Part, stream: Step, written: Step, values: FloatArray) -> Step:
    """The residual stream plus the output of attention or feed-forward."""
    old, new = stream.cells(), written.cells()
    norms = [float(np.linalg.norm(one[run.focus])) for one in (old, new)]
    is_pre = run.config.norm == "pre"
    tap = "resid_mid" if part == "attn" else "resid_post"
    return Step(
        f"add_{part}",
        f"Add the output of {'attention' if part == 'attn' else 'feed-forward'}",
        "The output is added to the residual stream element by element: what was in the stream stays there for later "
        "steps to read." + ("" if is_pre else " The next step normalises the sum."),
        rf"x_i \leftarrow {stream.symbol}_i + {written.symbol}_i",
        (snippet(Block.forward, f"x = self.{tap}(x + " if is_pre else f"x = self.{tap}(self.norm"),),
        symbol="x",
        layer=layer,
        rows=run.tokens,
        columns=run.model_dims,
        values=values[None],
        reads=(stream.title, written.title),
        operands=tuple(Operand(one.means, one.cells()[None], "cell") for one in (stream, written)),
        _explain=lambda _, i, d: total(
            f"x_{{{i + 1},{d}}}",
            [f"{one.symbol}_{{{i + 1},{d}}}" for one in (stream, written)],
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
