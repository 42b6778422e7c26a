"""Pooling: from one vector per token to one vector for the text."""

import math

import numpy as np
from numpy.typing import NDArray

from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import Arithmetic, dot_product, equals, lookup, softmax_entry
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.questions import ask_number
from txcls.inspection.walk.source_code import snippet
from txcls.inspection.walk.step import Operand, Step
from txcls.model import Pooling
from txcls.text.vocabulary import PAD


def pooling_steps(run: ForwardPass, before: Step) -> list[Step]:
    """The steps of the model's kind of pooling, which reads the output of the step before."""
    if run.config.pooling in ("first", "class_token"):
        return [_first_token(run, before)]
    if run.config.pooling == "attention":
        scored = _scores(run, before)
        weights = _weights(run, scored, scored.cells()[:, 0])
        return [scored, weights, _weighted_sum(run, before, weights)]
    weights = _weights(run, before, np.where(_is_pooled(run), 0.0, -np.inf).astype(np.float32))
    return [weights, _weighted_sum(run, before, weights)]


def _is_pooled(run: ForwardPass) -> NDArray[np.bool_]:
    """True for the tokens that take part, (T,): all, or all but padding."""
    masks = run.config.mask_padding and not run.config.pool_padding
    return np.array([index != PAD or not masks for index in run.ids])


def _first_token(run: ForwardPass, before: Step) -> Step:
    which = "class token" if run.config.pooling == "class_token" else "first token"
    states = before.cells()
    return Step(
        "pooled",
        f"Pooling: the {which}",
        f"The vector of the {which} stands for the whole text; attention has let it collect information from the "
        "others.",
        rf"t = {before.symbol}_1",
        (snippet(Pooling.forward, "if self.kind in", "return"),),
        symbol="t",
        rows=run.text,
        columns=run.model_dims,
        values=run.value("pooled")[None, None],
        reads=(before.title,),
        operands=(Operand(f"state of the {which}", states[None, :1], "cell"),),
        _explain=lambda _, __, d: lookup(f"t_{{{d}}}", f"{before.symbol}_{{1,{d}}}", float(states[0, d])),
        _ask=lambda _: run.ask_token(
            "Which token's vector stands for the text?",
            [1.0, *[0.0] * (len(run.names) - 1)],
            lambda _: "The first one, whatever it is.",
        ),
    )


def _scores(run: ForwardPass, before: Step) -> Step:
    states, is_pooled = before.cells(), _is_pooled(run)
    vector = to_numpy(run.model.pool.score.weight)[0]  # D
    scores = (states.astype(np.float64) @ vector.astype(np.float64)).astype(np.float32)  # T
    scores = np.where(is_pooled, scores, -np.inf).astype(np.float32)

    def explain(_: int, i: int, __: int) -> Arithmetic:
        symbol = f"a_{{{i + 1}}}"
        if not is_pooled[i]:
            return Arithmetic(equals(symbol, r"-\infty"), -math.inf)
        return dot_product(
            symbol,
            rf"\textstyle\sum_d w_d\,{before.symbol}_{{{i + 1},d}}",
            vector,
            states[i],
            headers=("w", before.symbol),
            labels=dimensions(run.config.d_model),
        )

    return Step(
        "pool_scores",
        "Pooling: scores",
        "The dot product of each token's vector with a trained vector: how much the token should count.",
        rf"a_i = w \cdot {before.symbol}_i",
        (snippet(Pooling.forward, "scores = self.score"),),
        symbol="a",
        rows=run.tokens,
        columns=run.text,
        values=scores[None, :, None],
        reads=(before.title,),
        operands=(
            Operand(before.means, states[None], "row"),
            Operand("trained vector", vector[None, :, None], "column"),
        ),
        _explain=explain,
        _ask=lambda _: run.ask_token(
            "Which token has the highest score?",
            scores.tolist(),
            lambda n: f"Its score is {scores[n]:.4f}.",
            lambda n: (n, 0),
        ),
    )


def _weights(run: ForwardPass, before: Step, scores: FloatArray) -> Step:
    weights, is_learned = run.value("pool.pattern"), run.config.pooling == "attention"
    return Step(
        "pool_weights",
        "Pooling: weights",
        "Softmax turns the scores into weights that sum to 1: how much each token counts in the vector of the text."
        if is_learned
        else "All tokens have the same weight: softmax of equal scores gives the mean.",
        r"\alpha_i = \frac{\mathrm{e}^{a_i}}{\sum_m \mathrm{e}^{a_m}}"
        if is_learned
        else r"\alpha_i = \frac{\mathrm{e}^0}{\sum_m \mathrm{e}^0} = \frac{1}{n}",
        (snippet(Pooling.forward, "if real is not None", "pattern = "),),
        symbol=r"\alpha",
        rows=run.tokens,
        columns=run.text,
        values=weights[None, :, None],
        quantity="weight",
        reads=(before.title,),
        operands=(Operand("pooling scores", np.asarray(scores)[None, :, None], "column"),),
        _explain=lambda _, i, __: softmax_entry(
            rf"\alpha_{{{i + 1}}}",
            scores,
            i,
            one=f"a_{{{i + 1}}}",
            each="a_m",
            labels=run.token_labels(),
        ),
        _ask=lambda _: (
            run.ask_weight(weights, "How much weight does {} have?", lambda n: (n, 0)) if is_learned else None
        ),
    )


def _weighted_sum(run: ForwardPass, before: Step, pattern: Step) -> Step:
    states, weights, d_model = before.cells(), run.value("pool.pattern"), run.config.d_model
    return Step(
        "pooled",
        "Pooling: one vector for the text",
        "The tokens' vectors are added up with these weights: T vectors become one, whatever the length of the text.",
        rf"t = \sum_i \alpha_i\,{before.symbol}_i",
        (snippet(Pooling.forward, "pooled: Tensor"),),
        symbol="t",
        rows=run.text,
        columns=run.model_dims,
        values=run.value("pooled")[None, None],
        reads=(before.title, pattern.title),
        operands=(
            Operand("pooling weights", weights[None, None], "row"),
            Operand(before.means, states[None], "column"),
        ),
        _explain=lambda _, __, d: dot_product(
            f"t_{{{d}}}",
            rf"\textstyle\sum_i \alpha_i\,{before.symbol}_{{i,{d}}}",
            weights,
            states[:, d],
            headers=("α", before.symbol),
            labels=run.token_labels(),
        ),
        _ask=lambda _: ask_number(
            "How many numbers does the vector of the text have?",
            d_model,
            (len(run.names) * d_model, len(run.names), run.classes.size),
            f"D = {d_model}, for a text of any length.",
        ),
    )
