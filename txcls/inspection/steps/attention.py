"""Attention: queries, keys, values, scores, mask, softmax, weighted sum, and the output projection."""

import math
from dataclasses import replace

import numpy as np
from torch import nn

from txcls.inspection.steps.arithmetic import Arithmetic, equation_lines, fill_in, number, softmax_entry
from txcls.inspection.steps.step import (
    ForwardPass,
    Operand,
    StepQuestion,
    WalkStep,
    ask_largest,
    ask_number,
    product,
    source_of,
    weight_and_bias,
)
from txcls.inspection.tracing import FloatArray
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
        _ask=lambda _: _ask_about_projection(run, name),
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


def _ask_about_projection(run: ForwardPass, name: str) -> StepQuestion | None:
    config = run.config
    if name == "query":
        return ask_number(
            "How many numbers does the query of one token have in one head?",
            config.d_head,
            (config.d_model, config.n_heads, len(run.names)),
            f"E = D / H = {config.d_model} / {config.n_heads} = {config.d_head}: the heads divide the D numbers.",
        )
    if name == "key":
        return StepQuestion(
            "Queries and keys are computed from the same numbers. Are they the same?",
            ("Yes", "No"),
            1,
            "Each has its own matrix, so the score of i for j can differ from the score of j for i.",
        )
    return StepQuestion(
        "In this step, does a token's value depend on other tokens?",
        ("Yes, on all", "Yes, on those it attends to", "No"),
        2,
        "Each row is computed from the same row of the input. Tokens interact only later, in the scores and in the "
        "weighted sum.",
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
        _ask=lambda head: run.ask_token(
            f"Which key has the highest score for the query of {run.focus_name}?",
            scores[head, run.focus].tolist(),
            lambda n: f"Its score is {scores[head, run.focus, n]:.4f}, the highest in row {run.focus + 1}.",
            lambda n: (run.focus, n),
        ),
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
    n, n_masked = len(run.names), int(np.isneginf(masked[0]).sum())
    reason = _mask_reason(run, n_masked)
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
        _ask=lambda _: ask_number(
            f"How many of the {n} × {n} scores are masked?", n_masked, (0, n, n * (n - 1) // 2, n**2 // 2), reason
        ),
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
        _ask=lambda head: run.ask_weight(
            pattern[head, run.focus],
            f"How much of the attention of {run.focus_name} goes to {{}}?",
            lambda n: (run.focus, n),
        ),
    )


def _weighted_sum(run: ForwardPass, layer: int, pattern: WalkStep, value: WalkStep) -> WalkStep:
    weights, values = pattern.operand("row"), value.operand("column")
    focus_weights, norms = weights.values[:, run.focus], np.linalg.norm(values.values, axis=2)  # H T, H T
    return WalkStep(
        "weighted_sum",
        "Weighted sum of values",
        "In each head, a token gets the sum of all values, weighted by its row of the attention pattern. Within a "
        "layer, only this step moves information between tokens.",
        r"z_i = \sum_j A_{i,j}\,v_j",
        (source_of(SelfAttention.forward, "z = self.z"),),
        **run.numbers("z", "HTE", run.value(f"layers.{layer}.attn.z"), layer),
        _ask=lambda head: run.ask_token(
            f"Which token adds the vector with the largest norm to the sum of {run.focus_name}?",
            (focus_weights[head] * norms[head]).tolist(),
            lambda n: f"Its weight, {focus_weights[head, n]:.4f}, times the norm of its value, {norms[head, n]:.4f}.",
        ),
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
        _ask=lambda _: _ask_largest_head(run, layer, z.values, weight),
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


def _ask_largest_head(run: ForwardPass, layer: int, z: FloatArray, weight: FloatArray) -> StepQuestion | None:
    by_head = np.split(weight, len(z), axis=1)  # D E each
    norms = [float(np.linalg.norm(part @ head_z[run.focus])) for part, head_z in zip(by_head, z, strict=True)]
    names = [head_name(layer, head) for head in range(len(z))]
    return ask_largest(
        f"Which head adds the vector with the largest norm to the output of {run.focus_name}?",
        names,
        norms,
        lambda _: "Norms: " + ", ".join(f"{name} {norm:.4f}" for name, norm in zip(names, norms, strict=True)) + ".",
    )
