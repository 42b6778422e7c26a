"""Attention: queries, keys, values, scores, mask, softmax, weighted sum, and the output projection."""

import math
from dataclasses import replace

import numpy as np
from torch import nn

from txcls.inspection.steps.arithmetic import Arithmetic, equation_lines, fill_in, number, softmax_entry
from txcls.inspection.steps.step import (
    ForwardPass,
    Operand,
    WalkStep,
    product,
    source_of,
    weight_and_bias,
)
from txcls.model import Encoder, SelfAttention
from txcls.text.formatting import head_name

PROJECTIONS = {
    "query": (
        "Queries",
        "A trained matrix turns each token's D numbers into its query: what it looks for in other tokens.",
    ),
    "key": ("Keys", "A second matrix turns the same numbers into the token's key, which queries are compared with."),
    "value": (
        "Values",
        "A third matrix turns the same numbers into the token's value: what it passes on to the tokens that attend to "
        "it.",
    ),
}
"""Title and description of each projection's step, keyed by the projection's attribute name."""


def attention_steps(run: ForwardPass, layer: int, previous: WalkStep) -> list[WalkStep]:
    """All steps of a layer's attention, which reads the output of the step `previous`."""
    query, key, value = (_projection(run, layer, previous, name) for name in PROJECTIONS)
    scores = _scores(run, layer, query, key)
    mask = _mask(run, layer, scores)
    pattern = _softmax(run, layer, mask)
    weighted_sum = _weighted_sum(run, layer, pattern, value)
    return [query, key, value, scores, mask, pattern, weighted_sum, _project(run, layer, weighted_sum)]


def _projection(run: ForwardPass, layer: int, previous: WalkStep, name: str) -> WalkStep:
    linear: nn.Linear = getattr(run.block(layer).attn, name)
    weight, bias = weight_and_bias(linear)
    title, description = PROJECTIONS[name]
    symbol = name[0]
    matrix, offset = f"W^{symbol.upper()}", f"b^{symbol.upper()}"
    by_head = weight.reshape(run.config.n_heads, -1, weight.shape[1]).swapaxes(1, 2)  # H D E
    return WalkStep(
        name,
        title,
        f"{description} The result is split into H parts of E numbers, one per head.",
        rf"{symbol}_i = {matrix}\,{previous.symbol}_i" + ("" if bias is None else f" + {offset}"),
        (
            source_of(SelfAttention.forward, f"{symbol} = self.{symbol}("),
            source_of(SelfAttention, "heads: Tensor = x.unflatten", "return"),
        ),
        **run.numbers(symbol, "HTE", run.value(f"layers.{layer}.attn.{symbol}"), layer),
        **product(
            previous.operand("row"),
            Operand(f"weights of the {title.lower()}", by_head, "column"),
            "ie",
            rf"{symbol}_{{i,e}} &= \textstyle\sum_d {previous.symbol}_{{i,d}}\,{matrix}_{{m,d}}"
            + ("" if bias is None else f" + {offset}_m"),
            headers=(previous.symbol, matrix),
            bias=bias,
        ),
    )


def _scores(run: ForwardPass, layer: int, query: WalkStep, key: WalkStep) -> WalkStep:
    queries, keys = query.operand("row"), key.operand("column")
    keys = replace(keys, values=keys.values.swapaxes(1, 2))  # H E T
    root = math.sqrt(run.config.d_head)
    masked = run.value(f"layers.{layer}.attn.scores")  # H T T
    products = queries.values.astype(np.float64) @ keys.values.astype(np.float64) / root
    scores = np.where(np.isneginf(masked), products, masked).astype(np.float32)
    return WalkStep(
        "scores",
        "Scores",
        "Each score is the dot product of a query and a key: it is large if both point in the same direction. "
        "Dividing by √E limits the scores; with large scores, softmax would put nearly all weight on one token.",
        r"S_{i,j} = \frac{q_i \cdot k_j}{\sqrt{E}}",
        (source_of(SelfAttention.forward, "scores = (q / math.sqrt"),),
        **run.numbers("S", "HTT", scores, layer),
        **product(
            queries,
            keys,
            "ij",
            rf"S_{{i,j}} &= \tfrac{{1}}{{\sqrt{{{run.config.d_head}}}}} \textstyle\sum_e q_{{i,e}}\,k_{{j,e}}",
            headers=("q", "k"),
            divisor=root,
        ),
    )


def _mask(run: ForwardPass, layer: int, scores: WalkStep) -> WalkStep:
    masked = run.value(f"layers.{layer}.attn.scores")  # H T T
    reason = _mask_reason(run, int(np.isneginf(masked[0]).sum()))
    code = [source_of(Encoder.attention_mask, "real = self.real(ids) if start == 0", "mask = None if real is None")]
    if run.config.causal:
        code.append(source_of(Encoder.attention_mask, "if self.config.causal", "mask = earlier"))

    def explain(head: int, i: int, j: int) -> Arithmetic:
        if np.isneginf(masked[head, i, j]):
            return Arithmetic((fill_in(r"\tilde S_{i,j} &= -\infty", i=i, j=j),), -math.inf)
        score = float(scores.cells(head)[i, j])
        return Arithmetic(equation_lines(fill_in(r"\tilde S_{i,j} &= S_{i,j}", i=i, j=j), number(score)), score)

    return WalkStep(
        "mask",
        "Mask",
        f"Masked scores are set to minus infinity, which softmax turns into a weight of exactly 0. {reason}",
        r"\tilde S_{i,j} = \begin{cases} S_{i,j} & \text{if query } i \text{ may attend to key } j \\ -\infty & "
        r"\text{if masked} \end{cases}",
        (*code, source_of(SelfAttention.forward, "if mask is not None", "masked_fill")),
        **run.numbers(r"\tilde S", "HTT", masked, layer),
        operands=(scores.operand("cell"),),
        _explain=explain,
    )


def _mask_reason(run: ForwardPass, n_masked: int) -> str:
    reasons = []
    if run.config.causal:
        reasons.append("a token attends only to itself and to earlier tokens")
    if run.config.fixed_length and run.config.mask_padding:
        reasons.append("no token attends to padding")
    if n_masked:
        return f"Here {n_masked:,} scores are masked: {' and '.join(reasons)}."
    if not run.config.mask_padding:
        return "This model masks no scores, not even those of padding."
    return "Here no score is masked: only padding would be masked, and a single text has none."


def _softmax(run: ForwardPass, layer: int, mask: WalkStep) -> WalkStep:
    pattern = run.value(f"layers.{layer}.attn.pattern")  # H T T
    formula = r"A_{i,j} = \frac{\exp(\tilde S_{i,j})}{\sum_m \exp(\tilde S_{i,m})}"
    return WalkStep(
        "softmax",
        "Softmax: the attention pattern",
        "Each row sums to 1; yellow is most.",
        formula,
        (source_of(SelfAttention.forward, "pattern = self.pattern"),),
        **run.numbers("A", "HTT", pattern, layer),
        quantity="weight",
        operands=(mask.operand("row"),),
        _explain=lambda head, i, j: softmax_entry(
            fill_in(formula.replace("=", "&=", 1), i=i, j=j), mask.cells(head)[i], j, labels=run.token_labels()
        ),
    )


def _weighted_sum(run: ForwardPass, layer: int, pattern: WalkStep, value: WalkStep) -> WalkStep:
    weights, values = pattern.operand("row"), value.operand("column")
    return WalkStep(
        "weighted_sum",
        "Weighted sum of values",
        "In each head, a token gets the sum of all values, weighted by its row of the attention pattern. Within a "
        "layer, only this step moves information between tokens.",
        r"z_i = \sum_j A_{i,j}\,v_j",
        (source_of(SelfAttention.forward, "z = self.z"),),
        **run.numbers("z", "HTE", run.value(f"layers.{layer}.attn.z"), layer),
        **product(
            weights,
            values,
            "ie",
            r"z_{i,e} &= \textstyle\sum_j A_{i,j}\,v_{j,e}",
            headers=("A", "v"),
            labels=run.token_labels(),
        ),
    )


def _project(run: ForwardPass, layer: int, weighted_sum: WalkStep) -> WalkStep:
    weight, bias = weight_and_bias(run.block(layer).attn.output)
    z = weighted_sum.operand("row")  # H T E
    n_heads, n_tokens, width = z.values.shape
    concatenated = z.values.transpose(1, 0, 2).reshape(1, n_tokens, -1)  # 1 T D
    return WalkStep(
        "project",
        "Concatenate and project",
        "The outputs of all heads are concatenated to D numbers; a matrix maps these to the output of attention.",
        r"o_i = W^O\,[z^1_i; \dots; z^H_i]" + ("" if bias is None else " + b^O"),
        (source_of(SelfAttention.forward, "concatenated =", "output: Tensor"),),
        **run.numbers("o", "TD", run.value(f"layers.{layer}.attn_out"), layer),
        **product(
            replace(z, name="weighted sums of all heads", values=concatenated),
            Operand("output weights", weight.T[None], "column"),
            "id",
            r"o_{i,d} &= \textstyle\sum_n z_{i,n}\,W^O_{d,n}" + ("" if bias is None else " + b^O_d"),
            headers=("z", "W^O"),
            labels=[f"{head_name(layer, head)}, {e}" for head in range(n_heads) for e in range(width)],
            bias=bias,
        ),
    )
