"""The classification head: logits, softmax, calibrated probabilities."""

import numpy as np
import torch
from numpy.typing import NDArray

from txcls.checkpoint.probabilities import calibrated_log_probabilities, calibrated_probabilities, log_softmax
from txcls.inspection.walk.arithmetic import Arithmetic, dot_product, number, softmax_entry
from txcls.inspection.walk.forward_pass import ForwardPass, dimensions, to_numpy
from txcls.inspection.walk.questions import Question, ask_largest, ask_percentage
from txcls.inspection.walk.source_code import snippet
from txcls.inspection.walk.step import Operand, Step
from txcls.model import TextClassifier
from txcls.wording import percentage

Floats = NDArray[np.floating]


def head_steps(run: ForwardPass, before: Step) -> list[Step]:
    """From the text's vector, which is the output of the step before, to calibrated probabilities."""
    surprisal = np.maximum(-log_softmax(run.value("logits")[None])[0], 0.0)  # C
    return [_logits(run, before), _softmax(run, np.exp(-surprisal)), _calibrated(run, surprisal)]


def _logits(run: ForwardPass, before: Step) -> Step:
    head, logits, pooled = run.model.head, run.value("logits"), before.cells()[0]
    weight, bias = to_numpy(head.weight), to_numpy(head.bias)
    return Step(
        "logits",
        "Logits",
        "Each class has a trained vector. Its dot product with the vector of the text, plus a bias, is the logit of "
        "the class: any number from minus to plus infinity.",
        r"\ell_c = W_c \cdot t + b_c",
        (snippet(TextClassifier.forward, "self.logits(self.head"),),
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


def _softmax(run: ForwardPass, probabilities: Floats) -> Step:
    logits, classes = run.value("logits"), run.classes.names
    best = int(np.argmax(logits))
    return Step(
        "class_softmax",
        "Softmax: probabilities",
        "Softmax turns the logits into probabilities that sum to 1 over all classes, still uncalibrated.",
        r"P_c = \frac{\mathrm{e}^{\ell_c}}{\sum_m \mathrm{e}^{\ell_m}}",
        (snippet(log_softmax, "shifted =", "return"),),
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
            one=rf"\ell_{{{c + 1}}}",
            each=r"\ell_m",
            labels=classes,
            score="logit",
            result="probability",
        ),
        _ask=lambda _: ask_percentage(
            f"How probable is {classes[best]} before calibration?", float(probabilities[best]), (best, 0)
        ),
    )


def _calibrated(run: ForwardPass, surprisal: Floats) -> Step:
    calibration = run.classifier.checkpoint.calibration
    temperature, power = calibration.temperature, calibration.power
    logits = -((surprisal / temperature) ** power)  # C: calibrated ones
    probabilities = run.classifier.calibrated(torch.from_numpy(run.value("logits"))[None])[0].numpy()  # C

    def explain(_: int, c: int, __: int) -> Arithmetic:
        softmax = softmax_entry(
            f"P'_{{{c + 1}}}",
            logits,
            c,
            one=rf"\ell'_{{{c + 1}}}",
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

    return Step(
        "calibrated",
        "Calibrated probabilities",
        "The surprisal of each class, −ln P, is divided by a temperature τ and raised to a power κ; softmax of the "
        "negative results gives the final probabilities. τ and κ were fitted on validation texts, so that about 90 % "
        "of the answers given with 90 % are right. The ranking of the classes does not change.",
        r"\ell'_c = -\left(\frac{-\ln P_c}{\tau}\right)^{\kappa}, \quad "
        r"P'_c = \frac{\mathrm{e}^{\ell'_c}}{\sum_m \mathrm{e}^{\ell'_m}}",
        (
            snippet(calibrated_log_probabilities, "surprisal =", "return"),
            snippet(calibrated_probabilities, "probabilities:"),
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
