"""Attention: queries, keys, values, scores, mask, softmax, weighted sum, and the output projection."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import nn

from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import Arithmetic, dot_product, equals, number, softmax_entry
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, weight_and_bias
from txcls.inspection.walk.step import SYMBOLS, Operand, Question, WalkStep, ask_largest, ask_number, source_of
from txcls.model import Encoder, SelfAttention


def attention_steps(run: ForwardPass, layer: int, before: WalkStep) -> list[WalkStep]:
    """All steps of a layer's attention, which reads the output of the step before."""
    heads = _Heads.of(run, layer)
    return [
        _queries(run, layer, before),
        _keys(run, layer, before),
        _values(run, layer, before),
        _scores(run, heads),
        _mask(run, heads),
        _softmax(run, heads),
        _weighted_sum(run, heads),
        _output(run, layer),
    ]


@dataclass(frozen=True)
class _Heads:
    """The recorded arrays of one layer's attention."""

    layer: int
    q: FloatArray  # H T E
    k: FloatArray  # H T E
    v: FloatArray  # H T E
    scores: FloatArray  # H T T: before the mask
    masked: FloatArray  # H T T
    pattern: FloatArray  # H T T
    z: FloatArray  # H T E

    @classmethod
    def of(cls, run: ForwardPass, layer: int) -> "_Heads":
        q, k, v, masked, pattern, z = (
            run.value(f"layers.{layer}.attn.{tap}") for tap in ("q", "k", "v", "scores", "pattern", "z")
        )
        products = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / math.sqrt(run.config.d_head)
        scores = np.where(np.isneginf(masked), products, masked).astype(np.float32)
        return cls(layer, q, k, v, scores, masked, pattern, z)


def _queries(run: ForwardPass, layer: int, before: WalkStep) -> WalkStep:
    config = run.config
    return _projection(
        run,
        layer,
        before,
        "query",
        "A trained matrix turns each token's D numbers into its query: what it looks for in other tokens.",
        lambda _: ask_number(
            "How many numbers does the query of one token have in one head?",
            config.d_head,
            (config.d_model, config.n_heads, len(run.names)),
            f"E = D / H = {config.d_model} / {config.n_heads} = {config.d_head}: the heads divide the D numbers.",
        ),
    )


def _keys(run: ForwardPass, layer: int, before: WalkStep) -> WalkStep:
    return _projection(
        run,
        layer,
        before,
        "key",
        "A second matrix turns the same numbers into the token's key, which queries are compared with.",
        lambda _: Question(
            "Queries and keys are computed from the same numbers. Are they the same?",
            ("Yes", "No"),
            1,
            "Each has a matrix of its own, so that the score of i for j can differ from that of j for i.",
        ),
    )


def _values(run: ForwardPass, layer: int, before: WalkStep) -> WalkStep:
    return _projection(
        run,
        layer,
        before,
        "value",
        "A third matrix turns the same numbers into the token's value: what it passes on to the tokens that attend to "
        "it.",
        lambda _: Question(
            "In this step, does a token's value depend on other tokens?",
            ("Yes, on all", "Yes, on those it attends to", "No"),
            2,
            "Each row is computed from the same row before. Tokens are mixed in the weighted sum only.",
        ),
    )


def _projection(
    run: ForwardPass, layer: int, before: WalkStep, name: str, says: str, ask: Callable[[int], Question | None]
) -> WalkStep:
    attn = run.block(layer).attn
    linear: nn.Linear = {"query": attn.query, "key": attn.key, "value": attn.value}[name]
    weight, bias = weight_and_bias(linear)
    symbol, width, read = name[0], run.config.d_head, before.cells()
    matrix, offset = f"W^{symbol.upper()}", f"b^{symbol.upper()}"

    def explain(head: int, i: int, e: int) -> Arithmetic:
        row = head * width + e
        return dot_product(
            f"{symbol}_{{{i + 1},{e}}}",
            rf"\textstyle\sum_d {before.symbol}_{{{i + 1},d}}\,{matrix}_{{{row},d}}"
            + ("" if bias is None else f" + {offset}_{{{row}}}"),
            read[i],
            weight[row],
            headers=(before.symbol, matrix),
            labels=dimensions(run.config.d_model),
            bias=None if bias is None else float(bias[row]),
        )

    return WalkStep(
        name,
        {"query": "Queries", "key": "Keys", "value": "Values"}[name],
        f"{says} The result is split into H pieces of E numbers, one per head.",
        rf"{symbol}_i = {matrix}\,{before.symbol}_i" + ("" if bias is None else f" + {offset}"),
        (
            source_of(SelfAttention.forward, f"{symbol} = self.{symbol}("),
            source_of(SelfAttention, "heads: Tensor = x.unflatten", "return"),
        ),
        symbol=symbol,
        layer=layer,
        rows=run.tokens,
        columns=run.head_dims,
        values=run.value(f"layers.{layer}.attn.{symbol}"),
        by_head=True,
        reads=(before.title,),
        operands=(
            Operand(before.means, read[None], "row"),
            Operand(f"weights of the {SYMBOLS[symbol]}", _by_head(weight, run.config.n_heads), "column"),
        ),
        _explain=explain,
        _ask=ask,
    )


def _scores(run: ForwardPass, heads: _Heads) -> WalkStep:
    width, focus = run.config.d_head, run.focus
    return WalkStep(
        "scores",
        "Scores",
        "Each query is multiplied by each key: the dot product is large where both point in the same direction. "
        "Dividing by √E keeps the scores small; large ones would make softmax put nearly all weight on one token.",
        r"S_{ij} = \frac{q_i \cdot k_j}{\sqrt{E}}",
        (source_of(SelfAttention.forward, "scores = (q / math.sqrt"),),
        symbol="S",
        layer=heads.layer,
        rows=run.tokens,
        columns=run.tokens,
        values=heads.scores,
        by_head=True,
        reads=("Queries", "Keys"),
        operands=(Operand("queries", heads.q, "row"), Operand("keys", heads.k.swapaxes(1, 2), "column")),
        _explain=lambda head, i, j: dot_product(
            f"S_{{{i + 1},{j + 1}}}",
            rf"\tfrac{{1}}{{\sqrt{{{width}}}}} \textstyle\sum_e q_{{{i + 1},e}}\,k_{{{j + 1},e}}",
            heads.q[head, i],
            heads.k[head, j],
            headers=("q", "k"),
            labels=dimensions(width),
            divisor=math.sqrt(width),
        ),
        _ask=lambda head: run.ask_token(
            f"Which key has the highest score for the query of {run.who}?",
            heads.scores[head, focus].tolist(),
            lambda n: f"Their score is {heads.scores[head, focus, n]:.4f}, the highest in row {focus + 1}.",
            lambda n: (focus, n),
        ),
    )


def _mask(run: ForwardPass, heads: _Heads) -> WalkStep:
    n, n_masked = len(run.names), int(np.isneginf(heads.masked[0]).sum())
    why = _why_masked(run, n_masked)
    code = [source_of(Encoder.attention_mask, "real = self.real(ids) if start == 0", "mask = None if real is None")]
    if run.config.causal:
        code.append(source_of(Encoder.attention_mask, "if self.config.causal", "mask = earlier"))

    def explain(head: int, i: int, j: int) -> Arithmetic:
        symbol, score = rf"\tilde S_{{{i + 1},{j + 1}}}", float(heads.scores[head, i, j])
        if np.isneginf(heads.masked[head, i, j]):
            return Arithmetic(equals(symbol, r"-\infty"), -math.inf)
        return Arithmetic(equals(symbol, f"S_{{{i + 1},{j + 1}}}", number(score)), score)

    return WalkStep(
        "mask",
        "Mask",
        f"Masked scores are set to minus infinity, which softmax turns into a weight of exactly 0. {why}",
        r"\tilde S_{ij} = \begin{cases} S_{ij} & \text{if query } i \text{ may attend to key } j \\ -\infty & "
        r"\text{if masked} \end{cases}",
        (*code, source_of(SelfAttention.forward, "if mask is not None", "masked_fill")),
        symbol=r"\tilde S",
        layer=heads.layer,
        rows=run.tokens,
        columns=run.tokens,
        values=heads.masked,
        by_head=True,
        reads=("Scores",),
        operands=(Operand("attention scores", heads.scores, "cell"),),
        _explain=explain,
        _ask=lambda _: ask_number(
            f"How many of the {n} × {n} scores are masked?", n_masked, (0, n, n * (n - 1) // 2, n**2 // 2), why
        ),
    )


def _why_masked(run: ForwardPass, n_masked: int) -> str:
    reasons = []
    if run.config.causal:
        reasons.append("a token attends only to itself and to earlier ones")
    if run.config.fixed_length and run.config.mask_padding:
        reasons.append("no token attends to padding")
    if n_masked:
        return f"Here {n_masked:,} scores are masked: {' and '.join(reasons)}."
    if not run.config.mask_padding:
        return "This model masks nothing, not even padding."
    return "Here none is masked: only padding would be, and a single text has none."


def _softmax(run: ForwardPass, heads: _Heads) -> WalkStep:
    return WalkStep(
        "softmax",
        "Softmax: the attention pattern",
        "Each row is a query; its weights over the keys (columns) sum to 1. A score that is higher by 1 gets 2.7 times "
        "the weight.",
        r"A_{ij} = \frac{\mathrm{e}^{\tilde S_{ij}}}{\sum_m \mathrm{e}^{\tilde S_{im}}}",
        (source_of(SelfAttention.forward, "pattern = self.pattern"),),
        symbol="A",
        layer=heads.layer,
        rows=run.tokens,
        columns=run.tokens,
        values=heads.pattern,
        by_head=True,
        quantity="weight",
        reads=("Mask",),
        operands=(Operand("masked attention scores", heads.masked, "row"),),
        _explain=lambda head, i, j: softmax_entry(
            f"A_{{{i + 1},{j + 1}}}",
            heads.masked[head, i],
            j,
            entry=rf"\tilde S_{{{i + 1},{j + 1}}}",
            each=rf"\tilde S_{{{i + 1},m}}",
            labels=run.token_labels(),
        ),
        _ask=lambda head: run.ask_weight(
            heads.pattern[head, run.focus],
            f"How much of the attention of {run.who} goes to {{}}?",
            lambda n: (run.focus, n),
        ),
    )


def _weighted_sum(run: ForwardPass, heads: _Heads) -> WalkStep:
    weights, norms = heads.pattern[:, run.focus], np.linalg.norm(heads.v, axis=2)  # H T, H T
    return WalkStep(
        "weighted_sum",
        "Weighted sum of values",
        "In each head, a token gets the sum of all values, weighted by its row of the attention pattern. Only here "
        "does information move between tokens.",
        r"z_i = \sum_j A_{ij}\,v_j",
        (source_of(SelfAttention.forward, "z = self.z"),),
        symbol="z",
        layer=heads.layer,
        rows=run.tokens,
        columns=run.head_dims,
        values=heads.z,
        by_head=True,
        reads=("Softmax: the attention pattern", "Values"),
        operands=(Operand("attention pattern", heads.pattern, "row"), Operand("values", heads.v, "column")),
        _explain=lambda head, i, e: dot_product(
            f"z_{{{i + 1},{e}}}",
            rf"\textstyle\sum_j A_{{{i + 1},j}}\,v_{{j,{e}}}",
            heads.pattern[head, i],
            heads.v[head, :, e],
            headers=("A", "v"),
            labels=run.token_labels(),
        ),
        _ask=lambda head: run.ask_token(
            f"Which token adds the vector with the largest norm to the sum of {run.who}?",
            (weights[head] * norms[head]).tolist(),
            lambda n: f"Its weight, {weights[head, n]:.4f}, times the norm of its value, {norms[head, n]:.4f}.",
        ),
    )


def _output(run: ForwardPass, layer: int) -> WalkStep:
    output, z = run.block(layer).attn.output, run.value(f"layers.{layer}.attn.z")  # H T E
    weight, bias = weight_and_bias(output)
    concatenated = z.transpose(1, 0, 2).reshape(z.shape[1], -1)  # T D
    labels = tuple(f"head {head + 1}, {e}" for head in range(len(z)) for e in range(z.shape[2]))
    return WalkStep(
        "project",
        "Concatenate and project",
        "The heads' results are concatenated to D numbers, and a matrix mixes them: this is the output of attention.",
        r"o_i = W^O\,[z^1_i; \dots; z^H_i]" + ("" if bias is None else " + b^O"),
        (source_of(SelfAttention.forward, "concatenated =", "output: Tensor"),),
        symbol="o",
        layer=layer,
        rows=run.tokens,
        columns=run.model_dims,
        values=run.value(f"layers.{layer}.attn_out")[None],
        reads=("Weighted sum of values",),
        operands=(
            Operand("weighted sums of all heads", concatenated[None], "row"),
            Operand("output weights", weight.T[None], "column"),
        ),
        _explain=lambda _, i, d: dot_product(
            f"o_{{{i + 1},{d}}}",
            rf"\textstyle\sum_m z_{{{i + 1},m}}\,W^O_{{{d},m}}" + ("" if bias is None else f" + b^O_{{{d}}}"),
            concatenated[i],
            weight[d],
            headers=("z", "W^O"),
            labels=labels,
            bias=None if bias is None else float(bias[d]),
        ),
        _ask=lambda _: _ask_longest_output(run, z, weight),
    )


def _by_head(weight: FloatArray, n_heads: int) -> FloatArray:
    """The rows of a projection's weight (D, D) split by head and transposed: (H, D, E)."""
    return weight.reshape(n_heads, -1, weight.shape[1]).swapaxes(1, 2)


def _ask_longest_output(run: ForwardPass, z: FloatArray, weight: FloatArray) -> Question | None:
    """Which head adds the most to the output for one token?"""
    n_heads, width = z.shape[0], z.shape[2]
    norms = [
        float(np.linalg.norm(weight[:, head * width : (head + 1) * width] @ z[head, run.focus]))
        for head in range(n_heads)
    ]
    return ask_largest(
        f"Which head adds the vector with the largest norm to the output of {run.who}?",
        [f"head {head + 1}" for head in range(n_heads)],
        norms,
        lambda _: "Norms: " + ", ".join(f"head {head + 1} {norm:.4f}" for head, norm in enumerate(norms)) + ".",
    )
