"""Measure a lesson's answers and facts on the models, and check its claims."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from txcls.errors import TxclsError, sanitize
from txcls.lessons.format import Choice, Claim, Drag, Heads, LessonStep, Number, Question
from txcls.lessons.markup import in_notation
from txcls.lessons.measures import Load, Measurement, Result
from txcls.lessons.page_address import find_unusable
from txcls.lessons.reading import Lesson, LessonError
from txcls.text.formatting import as_markdown

FACT = re.compile(r"\[\[([a-z_][a-z0-9_]*)\]\]")
"""A reference to a measured value in a text."""


@dataclass(frozen=True, slots=True)
class SolvedStep:
    """A step with all measured values.

    Attributes:
        narration, why: the texts with facts filled in; `why` is "" if there is no question.
        answer: the right answer as Markdown; "" if there is no question.
        why_has_answer: whether `why` contains the answer.
        right: the right answer for `is_right`: an option's index, a number, words in groups, or heads.
        offered: options, words in alphabetical order, or the heads of the model.
    """

    step: LessonStep
    narration: str
    why: str
    answer: str
    why_has_answer: bool
    right: Any
    offered: tuple[str, ...]


def solve(step: LessonStep, load: Load, *, language: str = "en") -> SolvedStep:
    """Measure everything that a step needs.

    Raises:
        LessonError: a text refers to an unknown fact, a question has no single right answer, or a measurement fails.
    """
    facts = {
        name: as_markdown(as_text(_measure(measurement, step, load, f"facts.{name}"), language))
        for name, measurement in step.facts.items()
    }
    right: Any = None
    answer = ""
    offered: tuple[str, ...] = ()
    if step.question is not None:
        right, answer, offered = _right_answer(step.question, step, load, language)
        if not isinstance(step.question, Choice):  # an option is already Markdown, written by the author
            answer = as_markdown(answer)
        facts["answer"] = answer
    why = (step.question.why or "") if step.question is not None else ""
    return SolvedStep(
        step=step,
        narration=_fill_in(step.narration, facts, "narration"),
        why=_fill_in(why, facts, "question.why"),
        answer=answer,
        why_has_answer="[[answer]]" in why,
        right=right,
        offered=offered,
    )


def is_right(solved: SolvedStep, answer: Any) -> bool:
    """Whether an answer is right: an option's index, a number, words in groups, or heads."""
    question = solved.step.question
    if isinstance(question, Number):
        return answer is not None and abs(float(answer) - solved.right) <= question.tolerance + 1e-9
    if isinstance(question, Heads):
        return set(answer or ()) == set(solved.right)
    if isinstance(question, Drag):
        return list(map(set, answer)) == list(map(set, solved.right))
    return bool(answer == solved.right)


def check_lesson(lesson: Lesson, load: Load, *, checkpoints: Sequence[str]) -> list[SolvedStep]:
    """Measure every step of a lesson; `checkpoints` are the names that are valid in a URL.

    Raises:
        LessonError: a step has an invalid state, a claim or an expected answer that the model contradicts, a question
            whose right answer is barely ahead of the runner-up, or a quantity that cannot be measured; the message
            gives the file, step and field.
    """
    solutions = []
    for number, step in enumerate(lesson.steps):
        problems = find_unusable(step.params, checkpoints=checkpoints)
        for name, problem in problems.items():
            field = name if name in ("checkpoint", "text") else f"state.{name}"
            raise LessonError(f"{lesson.where(number, field)}: {problem}")
        try:
            solved = solve(step, load, language=lesson.language)
            for index, claim in enumerate(step.claims):
                is_true, value = _check(claim, step, load)
                if not is_true:
                    raise LessonError(f"claims.{index + 1}: {_contradiction(claim, value)}")
            _compare_expected(solved)
            _check_margins(step, load)
        except TxclsError as error:
            raise LessonError(f"{lesson.where(number)}: {error}") from None
        solutions.append(solved)
    return solutions


def as_text(value: Result, language: str = "en") -> str:
    """A measured value as text: whole numbers without decimals, others with one, in the language's notation.

    Values that would round to 0, or to 100 from below, are shown as bounds: < 0.1, > 99.9.
    """
    if isinstance(value, float):
        if 1e-9 < abs(value) < 0.05:
            text = "< 0.1" if value > 0 else "> -0.1"
        elif 99.95 <= value < 100 - 1e-9:
            text = "> 99.9"
        else:
            text = f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"
        return in_notation(text.replace("-", "−"), language)
    if isinstance(value, str):
        return value
    return " · ".join(", ".join(group) if isinstance(group, list) else group for group in value)


def _fill_in(text: str, facts: dict[str, str], field: str) -> str:
    for name in FACT.findall(text):
        if name not in facts:
            raise LessonError(f"{field}: there is no fact [[{name}]]; add it under facts")
    return FACT.sub(lambda match: facts[match[1]], text).replace(" %", "\N{NO-BREAK SPACE}%")


def _measure(measurement: Measurement, step: LessonStep, load: Load, field: str) -> Result:
    try:
        return measurement.result(load, step.checkpoint, step.text)
    except TxclsError as error:
        raise LessonError(f"{field}: {error}") from None


def _right_answer(question: Question, step: LessonStep, load: Load, language: str) -> tuple[Any, str, tuple[str, ...]]:
    """The right answer, the same as text, and the options offered."""
    if isinstance(question, Choice):
        index = _right_option(question, step, load)
        return index, question.options[index].text, tuple(option.text for option in question.options)
    value = _measure(question.answer, step, load, "question.answer")
    if isinstance(question, Number):
        if not isinstance(value, float):
            raise LessonError(f"question.answer: expected a number, but {as_text(value)!r} was measured")
        unit = f" {question.unit}" if question.unit else ""
        return value, as_text(value, language) + unit, ()
    if isinstance(value, str | float) or not value:
        raise LessonError(f"question.answer: expected a list, {as_text(value)!r} was measured; choose another measure")
    if isinstance(question, Heads):
        config = load(step.checkpoint).checkpoint.config.model
        heads = [f"{layer + 1}.{head + 1}" for layer in range(config.n_layers) for head in range(config.n_heads)]
        return value, as_text(value), tuple(heads)
    if not isinstance(value[0], list):
        raise LessonError("question.answer: expected groups of words; choose the measure grouping")
    pairs = zip(question.groups, value, strict=True)
    text = " · ".join(f"{name}: {', '.join(group) or '–'}" for name, group in pairs)
    return value, text, tuple(sorted((word for group in value for word in group), key=str.casefold))


def _right_option(question: Choice, step: LessonStep, load: Load) -> int:
    if question.answer is None:
        matches = [
            index
            for index, option in enumerate(question.options)
            if all(_check(claim, step, load)[0] for claim in option.claim)
        ]
        if len(matches) != 1:
            texts = [question.options[index].text for index in matches]
            raise LessonError(f"question.options: exactly one claim must be true, but {len(matches)} are: {texts}")
        return matches[0]
    value = _measure(question.answer, step, load, "question.answer")
    stated = [option.text if option.value is None else option.value for option in question.options]
    matches = [index for index, option in enumerate(stated) if _same(option, value)]
    if len(matches) != 1:
        raise LessonError(
            f"question.options: the model gives {as_text(value)!r}, equal to {len(matches)} of the options {stated}"
        )
    return matches[0]


def _same(stated: Any, value: Result) -> bool:
    if isinstance(value, float):
        try:
            return abs(float(stated) - value) < 0.05 + 1e-9
        except (TypeError, ValueError):
            return False
    return str(stated) == as_text(value)


def _check(claim: Claim, step: LessonStep, load: Load) -> tuple[bool, Result]:
    """Whether a claim is true, and the measured value."""
    value = _measure(claim.measure, step, load, "claim")
    is_true = (claim.equals is None or _same(claim.equals, value)) and (
        claim.differs_from is None or not _same(claim.differs_from, value)
    )
    if claim.at_least is not None or claim.at_most is not None:
        if not isinstance(value, float):
            raise LessonError(f"claim: at_least and at_most need a number; got {as_text(value)!r}")
        low = -math.inf if claim.at_least is None else claim.at_least
        high = math.inf if claim.at_most is None else claim.at_most
        is_true = is_true and low <= value <= high
    return is_true, value


def _contradiction(claim: Claim, value: Result) -> str:
    bounds = {name: getattr(claim, name) for name in ("equals", "differs_from", "at_least", "at_most")}
    stated = ", ".join(f"{name} {bound}" for name, bound in bounds.items() if bound is not None)
    return f"{claim.measure.measure}: states {stated}, the model gives {sanitize(as_text(value))}"


def _compare_expected(solved: SolvedStep) -> None:
    """Reject an expected answer that the model does not give."""
    question = solved.step.question
    if question is None or question.expected is None:
        return
    if isinstance(question, Choice):
        chosen = question.options[solved.right]
        right = question.expected in (chosen.text, chosen.value)
    elif isinstance(question, Number):
        right = abs(question.expected - solved.right) <= max(question.tolerance, 0.05)
    elif isinstance(question, Heads):
        right = set(question.expected) == set(solved.right)
    else:
        right = question.expected == [word for group in solved.right for word in group]
    if not right:
        raise LessonError(
            f"question.expected: states {sanitize(question.expected, limit=80)}, the model gives {solved.answer}"
        )


def _check_margins(step: LessonStep, load: Load) -> None:
    """Reject a question if the margin between its right answer and the runner-up is too small for the measure."""
    question = step.question
    if question is None or isinstance(question, Number):
        return
    if question.answer is not None:
        lead = question.answer.margin_of_result(load, step.checkpoint, step.text)
        _require_margin(question.answer, lead, "question.answer")
    if isinstance(question, Choice):
        for number, option in enumerate(question.options, 1):
            for claim in option.claim:
                _require_margin(claim.measure, _distance(claim, step, load), f"question.options.{number}.claim")


def _distance(claim: Claim, step: LessonStep, load: Load) -> float:
    """The distance from the measured value to the claim's nearest bound or, if it is not a number, to the runner-up."""
    value = _measure(claim.measure, step, load, "claim")
    if isinstance(value, float):
        return min(
            (abs(value - bound) for bound in (claim.at_least, claim.at_most) if bound is not None), default=math.inf
        )
    return claim.measure.margin_of_result(load, step.checkpoint, step.text)


def _require_margin(measure: Measurement, lead: float, field: str) -> None:
    if lead < measure.min_margin:
        raise LessonError(
            f"{field}: {getattr(measure, 'measure', '')}: the right answer leads the runner-up by {lead:.2g}; expected "
            f"at least {measure.min_margin:g}; ask about a clearer case, or set a smaller `margin` in the measurement"
        )
