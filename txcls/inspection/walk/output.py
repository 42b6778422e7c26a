"""From the tokens' last states to calibrated probabilities: pooling, logits, softmax, calibration."""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.probabilities import calibrated_log_probabilities, calibrated_probabilities, log_softmax
from txcls.inspection.tracing import FloatArray
from txcls.inspection.walk.arithmetic import Arithmetic, dot_product, equals, lookup, number, softmax_entry
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.step import Operand, Question, WalkStep, ask_largest, ask_number, ask_percentage, source_of
from txcls.model import Pooling, TextClassifier
from txcls.text.vocabulary import PAD
from txcls.wording import percentage


def pooling_steps(run: ForwardPass, before: WalkStep) -> list[WalkStep]:
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


def _first_token(run: ForwardPass, before: WalkStep) -> WalkStep:
    which = "class token" if run.config.pooling == "class_token" else "first token"
    states = before.cells()
    return WalkStep(
        "pooled",
        f"Pooling: the {which}",
        f"The vector of the {which} stands for the whole text; attention has let it collect information from the "
        "others.",
        rf"t = {before.symbol}_1",
        (source_of(Pooling.forward, "if self.kind in", "return"),),
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


def _scores(run: ForwardPass, before: WalkStep) -> WalkStep:
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

    return WalkStep(
        "pool_scores",
        "Pooling: scores",
        "The dot product of each token's vector with a trained vector: how much the token should count.",
        rf"a_i = w \cdot {before.symbol}_i",
        (source_of(Pooling.forward, "scores = self.score"),),
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


def _weights(run: ForwardPass, before: WalkStep, scores: FloatArray) -> WalkStep:
    weights, is_learned = run.value("pool.pattern"), run.config.pooling == "attention"
    return WalkStep(
        "pool_weights",
        "Pooling: weights",
        "Softmax turns the scores into weights that sum to 1: how much each token counts in the vector of the text."
        if is_learned
        else "All tokens have the same weight: softmax of equal scores gives the mean.",
        r"\alpha_i = \frac{\mathrm{e}^{a_i}}{\sum_m \mathrm{e}^{a_m}}"
        if is_learned
        else r"\alpha_i = \frac{\mathrm{e}^0}{\sum_m \mathrm{e}^0} = \frac{1}{n}",
        (source_of(Pooling.forward, "if real is not None", "pattern = "),),
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
            entry=f"a_{{{i + 1}}}",
            each="a_m",
            labels=run.token_labels(),
        ),
        _ask=lambda _: (
            run.ask_weight(weights, "How much weight does {} have?", lambda n: (n, 0)) if is_learned else None
        ),
    )


def _weighted_sum(run: ForwardPass, before: WalkStep, pattern: WalkStep) -> WalkStep:
    states, weights, d_model = before.cells(), run.value("pool.pattern"), run.config.d_model
    return WalkStep(
        "pooled",
        "Pooling: one vector for the text",
        "The tokens' vectors are added up with these weights: T vectors become one, whatever the length of the text.",
        rf"t = \sum_i \alpha_i\,{before.symbol}_i",
        (source_of(Pooling.forward, "pooled: Tensor"),),
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


Floats = NDArray[np.floating]


def head_steps(run: ForwardPass, before: WalkStep) -> list[WalkStep]:
    """From the text's vector, which is the output of the step before, to calibrated probabilities."""
    surprisal = np.maximum(-log_softmax(run.value("logits")[None])[0], 0.0)  # C
    return [_logits(run, before), _softmax(run, np.exp(-surprisal)), _calibrated(run, surprisal)]


def _logits(run: ForwardPass, before: WalkStep) -> WalkStep:
    head, logits, pooled = run.model.head, run.value("logits"), before.cells()[0]
    weight, bias = to_numpy(head.weight), to_numpy(head.bias)
    return WalkStep(
        "logits",
        "Logits",
        "Each class has a trained vector. Its dot product with the vector of the text, plus a bias, is the logit of "
        "the class: any number from minus to plus infinity.",
        r"\ell_c = W_c \cdot t + b_c",
        (source_of(TextClassifier.forward, "self.logits(self.head"),),
        symbol=r"\ell",
        rows=run.classes,
        columns=run.text,
        values=logits[None, :, None],
        reads=(before.title,),
        operands=(
            Operand("weights of the classes", weight[None], "row"),
            Operand("vector of the text", pooled[None, :, None], "column"),
        ),
        _explain=lambda _, c, __: dot_product(
            rf"\ell_{{{c + 1}}}",
            rf"\textstyle\sum_d W_{{{c + 1},d}}\,t_d + b_{{{c + 1}}}",
            weight[c],
            pooled,
            headers=("W", "t"),
            labels=dimensions(run.config.d_model),
            bias=float(bias[c]),
        ),
        _ask=lambda _: ask_largest(
            "Which class has the highest logit?",
            run.classes.names,
            logits.tolist(),
            lambda n: f"Its logit is {logits[n]:.4f}.",
            lambda n: (n, 0),
        ),
    )


def _softmax(run: ForwardPass, probabilities: Floats) -> WalkStep:
    logits, classes = run.value("logits"), run.classes.names
    best = int(np.argmax(logits))
    return WalkStep(
        "class_softmax",
        "Softmax: probabilities",
        "Softmax turns the logits into probabilities that sum to 1 over all classes, still uncalibrated.",
        r"P_c = \frac{\mathrm{e}^{\ell_c}}{\sum_m \mathrm{e}^{\ell_m}}",
        (source_of(log_softmax, "shifted =", "return"),),
        symbol="P",
        rows=run.classes,
        columns=run.text,
        values=probabilities.astype(np.float32)[None, :, None],
        quantity="probability",
        reads=("Logits",),
        operands=(Operand("logits", logits[None, :, None], "column"),),
        _explain=lambda _, c, __: softmax_entry(
            f"P_{{{c + 1}}}",
            logits,
            c,
            entry=rf"\ell_{{{c + 1}}}",
            each=r"\ell_m",
            labels=classes,
            score="logit",
            result="probability",
        ),
        _ask=lambda _: ask_percentage(
            f"How probable is {classes[best]} before calibration?", float(probabilities[best]), (best, 0)
        ),
    )


def _calibrated(run: ForwardPass, surprisal: Floats) -> WalkStep:
    calibration = run.classifier.checkpoint.calibration
    temperature, power = calibration.temperature, calibration.power
    logits = -((surprisal / temperature) ** power)  # C: calibrated ones
    probabilities = run.classifier.calibrated(torch.from_numpy(run.value("logits"))[None])[0].numpy()  # C

    def explain(_: int, c: int, __: int) -> Arithmetic:
        softmax = softmax_entry(
            f"P'_{{{c + 1}}}",
            logits,
            c,
            entry=rf"\ell'_{{{c + 1}}}",
            each=r"\ell'_m",
            labels=run.classes.names,
            score="calibrated logit",
            result="probability",
        )
        base = rf"{number(surprisal[c])} / {temperature:.4f}"
        lines = (
            rf"-\ln P_{{{c + 1}}} &= {number(surprisal[c])}",
            rf"\ell'_{{{c + 1}}} &= -({base})^{{{power:.4f}}} = {number(logits[c])}",
            *softmax.lines,
        )
        return Arithmetic(lines, softmax.value, softmax.headers, softmax.labels, softmax.terms)

    return WalkStep(
        "calibrated",
        "Calibrated probabilities",
        "The surprisal of each class, −ln P, is divided by a temperature τ and raised to a power κ; softmax of the "
        "negative results gives the final probabilities. τ and κ were fitted on validation texts, so that about 90 % "
        "of the answers given with 90 % are right. The ranking of the classes does not change.",
        r"\ell'_c = -\left(\frac{-\ln P_c}{\tau}\right)^{\kappa}, \quad "
        r"P'_c = \frac{\mathrm{e}^{\ell'_c}}{\sum_m \mathrm{e}^{\ell'_m}}",
        (
            source_of(calibrated_log_probabilities, "surprisal =", "return"),
            source_of(calibrated_probabilities, "probabilities:"),
        ),
        symbol="P'",
        rows=run.classes,
        columns=run.text,
        values=probabilities.astype(np.float32)[None, :, None],
        quantity="probability",
        reads=("Softmax: probabilities",),
        operands=(Operand("probabilities before calibration", np.exp(-surprisal)[None, :, None], "column"),),
        _explain=explain,
        _ask=lambda _: _ask_change(run, np.exp(-surprisal), probabilities),
    )


def _ask_change(run: ForwardPass, before: Floats, after: Floats) -> Question:
    """What does calibration do to the winning class?"""
    calibration = run.classifier.checkpoint.calibration
    best = int(np.argmax(before))
    return Question(
        f"With τ = {calibration.temperature:.2f} and κ = {calibration.power:.2f}: what happens to the "
        f"{percentage(before[best])} of {run.classes.names[best]}?",
        ("It rises", "It falls", "It stays the same"),
        0 if after[best] > before[best] else 1 if after[best] < before[best] else 2,
        f"It becomes {percentage(after[best])}.",
        (best, 0),
    )
