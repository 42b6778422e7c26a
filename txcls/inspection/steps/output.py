"""From the tokens' last states to calibrated probabilities, and the same from earlier states (the class lens)."""

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.probabilities import (
    calibrated_log_probabilities,
    calibrated_probabilities,
    log_softmax,
    temperatures,
)
from txcls.inspection.lens import class_lens
from txcls.inspection.steps.arithmetic import Arithmetic, Floats, fill_in, lookup, number, softmax_entry
from txcls.inspection.steps.step import (
    Axis,
    ForwardPass,
    Operand,
    WalkStep,
    product,
    source_of,
    to_numpy,
)
from txcls.inspection.tracing import FloatArray
from txcls.model import Pooling, TextClassifier
from txcls.text.vocabulary import PAD

CALIBRATED = r"P'_c = \frac{\exp(\ell'_c)}{\sum_m \exp(\ell'_m)}"
"""The formula of a calibrated probability."""


def pooling_steps(run: ForwardPass, previous: WalkStep) -> list[WalkStep]:
    """The steps for pooling, which reads the output of the step `previous`, and for the pooler's hidden layer."""
    steps = _pooling_steps(run, previous)
    return steps if run.config.pooler == "none" else [*steps, _pooler(run, steps[-1])]


def _pooling_steps(run: ForwardPass, previous: WalkStep) -> list[WalkStep]:
    if run.config.reads_one_token:
        return [_first_token(run, previous)]
    pools_padding = run.config.pool_padding or not run.config.mask_padding
    is_pooled = np.array([token_id != PAD or pools_padding for token_id in run.ids])  # T
    if run.config.pooling == "attention":
        scored = _scores(run, previous, is_pooled)
        weights = _weights(run, scored, scored.cells()[:, 0])
        return [scored, weights, _weighted_sum(run, previous, weights)]
    weights = _weights(run, previous, np.where(is_pooled, 0.0, -np.inf).astype(np.float32))
    return [weights, _weighted_sum(run, previous, weights)]


def _first_token(run: ForwardPass, previous: WalkStep) -> WalkStep:
    token = "class token" if run.config.pooling == "class_token" else "first token"
    first = previous.cells()[:1]  # 1 D
    return WalkStep(
        "pooled",
        f"Pooling: the {token}",
        f"The vector of the {token} is used as the vector of the text; through attention, it can contain information "
        "from the other tokens.",
        rf"t = {previous.symbol}_1",
        (source_of(Pooling.pool, "if self.kind in", "return"),),
        **run.numbers("t", "BD", first),
        operands=(Operand(f"state of the {token}", first[None], "cell", previous.title),),
        _explain=lambda _, __, d: lookup(fill_in(rf"t_d &= {previous.symbol}_{{1,d}}", d=d), float(first[0, d])),
    )


def _scores(run: ForwardPass, previous: WalkStep, is_pooled: NDArray[np.bool_]) -> WalkStep:
    vector = to_numpy(run.model.pool.score.weight)[0]  # D
    products = previous.cells().astype(np.float64) @ vector.astype(np.float64)  # T
    scores = np.where(is_pooled, products, -np.inf).astype(np.float32)
    dot_products = product(
        previous.operand("row"),
        Operand("trained vector", vector[None, :, None], "column"),
        "i",
        rf"a_i &= \textstyle\sum_d {previous.symbol}_{{i,d}}\,w_d",
        headers=(previous.symbol, "w"),
    )

    def explain(head: int, i: int, column: int) -> Arithmetic:
        if not is_pooled[i]:
            return Arithmetic((fill_in(r"a_i &= -\infty", i=i),), -math.inf)
        arithmetic: Arithmetic = dot_products["_explain"](head, i, column)
        return arithmetic

    return WalkStep(
        "pool_scores",
        "Pooling: scores",
        "The dot product of each token's vector with a trained vector; the larger, the more weight the token gets.",
        rf"a_i = {previous.symbol}_i \cdot w",
        (source_of(Pooling.pool, "scores = self.score"),),
        **run.numbers("a", "TB", scores),
        operands=dot_products["operands"],
        _explain=explain,
    )


def _weights(run: ForwardPass, previous: WalkStep, scores: FloatArray) -> WalkStep:
    weights, is_learned = run.value("pool.pattern"), run.config.pooling == "attention"
    formula = r"\alpha_i = \frac{\exp(a_i)}{\sum_m \exp(a_m)}"
    return WalkStep(
        "pool_weights",
        "Pooling: weights",
        "Softmax turns the scores into weights that sum to 1: the weight of each token's vector in the text vector."
        if is_learned
        else "All tokens have the same weight: softmax of equal scores gives the mean.",
        formula if is_learned else r"\alpha_i = \frac{\exp(0)}{\sum_m \exp(0)} = \frac{1}{n}",
        (source_of(Pooling.pool, "if real is not None", "pattern = "),),
        **run.numbers(r"\alpha", "TB", weights),
        quantity="weight",
        operands=(Operand("pooling scores", scores[None, :, None], "column", previous.title),),
        _explain=lambda _, i, __: softmax_entry(
            fill_in(formula.replace("=", "&=", 1), i=i), scores, i, labels=run.token_labels()
        ),
    )


def _weighted_sum(run: ForwardPass, previous: WalkStep, weights: WalkStep) -> WalkStep:
    row = weights.operand("row")
    return WalkStep(
        "pooled",
        "Pooling: the text vector",
        "The weighted sum of the tokens' vectors is the text vector: one vector, whatever the length of the text.",
        rf"t = \sum_i \alpha_i\,{previous.symbol}_i",
        (source_of(Pooling.pool, "pooled: Tensor"),),
        **run.numbers("t", "BD", weights.cells()[:, 0] @ previous.cells()),
        **product(
            replace(row, values=row.values.swapaxes(1, 2)),
            previous.operand("column"),
            "_d",
            rf"t_d &= \textstyle\sum_i \alpha_i\,{previous.symbol}_{{i,d}}",
            headers=("α", previous.symbol),
            labels=run.token_labels(),
        ),
    )


def _pooler(run: ForwardPass, previous: WalkStep) -> WalkStep:
    """The step of the hidden layer between the text vector (the output of `previous`) and the class head."""
    dense, is_tanh = run.model.pool.dense, run.config.pooler == "tanh"
    function = (r"\tanh", math.tanh) if is_tanh else (r"\mathrm{ReLU}", lambda value: max(0.0, value))
    return WalkStep(
        "pooler",
        "Pooler: a hidden layer",
        "A trained matrix and a non-linearity change the text vector before the class head reads it.",
        rf"t_d \leftarrow {function[0]}(W_d \cdot t + b_d)",
        (source_of(Pooling.forward, "hidden =", "return torch.tanh"),),
        **run.numbers("t", "BD", run.value("pooled")),
        **product(
            previous.operand("row"),
            Operand("weights of the pooler", to_numpy(dense.weight).T[None], "column"),
            "_d",
            rf"t_d &\leftarrow {function[0]}\left(\textstyle\sum_e W_{{d,e}}\,t_e + b_d\right)",
            headers=("t", "W"),
            bias=to_numpy(dense.bias),
            function=function,
        ),
    )


def head_steps(run: ForwardPass, previous: WalkStep) -> list[WalkStep]:
    """The steps from the text vector, which is the output of the step `previous`, to calibrated probabilities."""
    surprisal = np.maximum(-log_softmax(run.value("logits")[None])[0], 0.0)  # C
    logits = _logits_step(run, previous)
    softmax = _softmax(run, logits, np.exp(-surprisal))
    return [logits, softmax, _calibrated(run, softmax, surprisal)]


def _logits_step(run: ForwardPass, previous: WalkStep) -> WalkStep:
    head, logits = run.model.head, run.value("logits")
    text = previous.operand("column")
    return WalkStep(
        "logits",
        "Logits",
        "Each class has a trained vector. Its dot product with the text vector, plus a bias, is the logit of the "
        "class, which can be any number.",
        r"\ell_c = W_c \cdot t + b_c",
        (source_of(TextClassifier.forward, "self.logits(self.head"),),
        **run.numbers(r"\ell", "CB", logits),
        **product(
            Operand("weights of the classes", to_numpy(head.weight)[None], "row"),
            replace(text, values=text.values.swapaxes(1, 2)),
            "c",
            r"\ell_c &= \textstyle\sum_d W_{c,d}\,t_d + b_c",
            headers=("W", "t"),
            bias=to_numpy(head.bias)[:, None],
        ),
    )


def _softmax(run: ForwardPass, logits: WalkStep, probabilities: Floats) -> WalkStep:
    scores, classes = logits.cells()[:, 0], run.classifier.classes
    formula = r"P_c = \frac{\exp(\ell_c)}{\sum_m \exp(\ell_m)}"
    return WalkStep(
        "class_softmax",
        "Softmax: probabilities",
        "Softmax turns the logits into uncalibrated probabilities that sum to 1 over all classes.",
        formula,
        (source_of(log_softmax, "shifted =", "return"),),
        **run.numbers("P", "CB", probabilities),
        quantity="probability",
        operands=(logits.operand("column"),),
        _explain=lambda _, c, __: softmax_entry(
            fill_in(formula.replace("=", "&=", 1), c=c),
            scores,
            c,
            labels=classes,
            headers=("logit", "probability"),
        ),
    )


def _calibrated(run: ForwardPass, softmax: WalkStep, surprisal: Floats) -> WalkStep:
    n_tokens, logits = len(run.traced.prediction.tokens), torch.from_numpy(run.value("logits"))
    probabilities: Floats = run.classifier.calibrate(logits[None], n_tokens=n_tokens)[0].numpy()  # C
    return WalkStep(
        "calibrated",
        "Calibrated probabilities",
        "The surprisal of each class, −ln P, is divided by a temperature τ and raised to a power κ; the softmax of "
        "the negated values gives the final probabilities. "
        + (
            "This model was imported without a calibration: τ = κ = 1 change nothing."
            if run.classifier.checkpoint.config.imported
            else "τ and κ were fitted on validation texts, so that about 90 % of predictions with a probability of "
            "90 % are correct. The ranking of the classes does not change."
        ),
        rf"\ell'_c = -\left(\frac{{-\ln P_c}}{{\tau}}\right)^{{\kappa}}, \quad {CALIBRATED}",
        (
            source_of(calibrated_log_probabilities, "surprisal =", "return"),
            source_of(calibrated_probabilities, "probabilities:"),
        ),
        **run.numbers("P'", "CB", probabilities),
        quantity="probability",
        operands=(softmax.operand("column"),),
        _explain=lambda _, c, __: _calibrated_entry(run, surprisal, c),
    )


def _calibrated_entry(run: ForwardPass, surprisal: Floats, c: int) -> Arithmetic:
    """The calibrated probability of class c, from the surprisal (C,) of all classes."""
    calibration = run.classifier.checkpoint.calibration
    [temperature], power = temperatures(calibration, len(run.traced.prediction.tokens)), calibration.power
    logits = -((surprisal / temperature) ** power)  # C: calibrated
    entry = softmax_entry(
        fill_in(CALIBRATED.replace("=", "&=", 1), c=c),
        logits,
        c,
        labels=run.classifier.classes,
        headers=("calibrated logit", "probability"),
    )
    base = rf"{number(surprisal[c])} / {temperature:.4f}"
    lines = (
        rf"-\ln P_{{{c + 1}}} &= {number(surprisal[c])}",
        rf"\ell'_{{{c + 1}}} &= -({base})^{{{power:.4f}}} = {number(logits[c])}",
    )
    in_numbers = rf"P'_{{{c + 1}}} {entry.lines[1]}"  # the first line would repeat the step's formula
    return replace(entry, lines=(*lines, in_numbers, *entry.lines[2:]))


def lens_step(run: ForwardPass) -> WalkStep:
    """The class lens: what the class head reads in the residual stream after each block."""
    lens = class_lens(run.classifier, run.traced)
    surprisal = np.maximum(-log_softmax(lens.logits), 0.0)  # S C
    states = Axis("S", "state", len(lens.states), lens.states)
    return WalkStep(
        "lens",
        "Class lens: the answer after each block",
        "The last steps (final norm, if there is one, pooling and class head), applied to the residual stream after "
        "each block as if it were the "
        "last one. Only the last row is the model's answer: the head was not trained on the other states, so they show "
        "what it can read there, not what the model “thinks”.",
        CALIBRATED,
        (source_of(class_lens, "logits = model.head"),),
        symbol="P'",
        rows=states,
        columns=run.axes["C"],
        values=lens.probabilities.astype(np.float32)[None],
        quantity="probability",
        follows="Start of the residual stream",
        _explain=lambda _, s, c: _calibrated_entry(run, surprisal[s], c),
    )
