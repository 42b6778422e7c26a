"""A lesson's answers, computed from the models: what is right, what its texts say, and whether that is so."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from txcls.errors import TxclsError, shown
from txcls.lessons.address import unusable
from txcls.lessons.format import Choice, Claim, Drag, Heads, Number, Question, Step
from txcls.lessons.measures import Load, Measured, Result
from txcls.lessons.reading import Lesson, LessonError
from txcls.lessons.wording import in_notation

FACT = re.compile(r"\[\[([a-z_][a-z0-9_]*)\]\]")
"""A measured value in a text."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A step with everything measured.

    Attributes:
        narration, why: with the facts in their places; `why` is "" without a question.
        answer: the right answer as text; "" without a question.
        is_said: whether `why` says the answer itself.
        right: what `is_right` compares with: an option's number, a number, a list of words, lists of words, heads.
        offered: what is offered: options, words in another order, or the heads of the model.
    """

    step: Step
    narration: str
    why: str
    answer: str
    is_said: bool
    right: Any
    offered: tuple[str, ...]


def solve(step: Step, load: Load, *, language: str = "en") -> Solved:
    """Measure all that a step needs.

    Raises:
        LessonError: a text names a fact that there is not, or a question has no single right answer.
        TxclsError: something cannot be measured.
    """
    facts = {name: _measure(one, step, load, f"facts.{name}") for name, one in step.facts.items()}
    written = {name: said(value, language) for name, value in facts.items()}
    right: Any = None
    answer = ""
    offered: tuple[str, ...] = ()
    if step.question is not None:
        right, answer, offered = _answer(step.question, step, load, language)
        written["answer"] = answer
    why = (step.question.why or "") if step.question is not None else ""
    return Solved(
        step=step,
        narration=_filled(step.narration, written, "narration"),
        why=_filled(why, written, "question.why"),
        answer=answer,
        is_said="[[answer]]" in why,
        right=right,
        offered=offered,
    )


def is_right(solved: Solved, given: Any) -> bool:
    """Whether an answer is right: an option's number from 0, a number, words in order, words in groups, or heads."""
    question = solved.step.question
    if isinstance(question, Number):
        return given is not None and abs(float(given) - solved.right) <= question.tolerance + 1e-9
    if isinstance(question, Heads):
        return set(given or ()) == set(solved.right)
    if isinstance(question, Drag) and question.groups:
        return [set(one) for one in given] == [set(one) for one in solved.right]
    return bool(given == solved.right)


def check_lesson(lesson: Lesson, load: Load, *, checkpoints: Sequence[str]) -> list[Solved]:
    """Measure every step of a lesson.

    Args:
        lesson: as read.
        load: gives a classifier by name.
        checkpoints: names that an address may give.

    Raises:
        LessonError: a step has a state that no address can say, a claim or a stated answer that is not what the model
            does, or something that cannot be measured; the message names file, step and field.
    """
    found = []
    for number, step in enumerate(lesson.steps):
        problems = unusable(step.params, checkpoints=checkpoints)
        for name, problem in problems.items():
            field = name if name in ("checkpoint", "text") else f"state.{name}"
            raise LessonError(f"{lesson.where(number, field)}: {problem}")
        try:
            solved = solve(step, load, language=lesson.language)
            for place, claim in enumerate(step.claims):
                held, value = _holds(claim, step, load)
                if not held:
                    raise LessonError(f"claims.{place + 1}: {_refused(claim, value)}")
            _compare_expected(solved)
        except TxclsError as error:
            raise LessonError(f"{lesson.where(number)}: {error}") from None
        found.append(solved)
    return found


def said(value: Result, language: str = "en") -> str:
    """A measured value as text: whole numbers without decimals, others with one, in the language's notation.

    What would round to 0, or to 100 from below, is bounded as everywhere in the app: < 0.1, > 99.9.
    """
    if isinstance(value, float):
        if 1e-9 < value < 0.05:
            text = "< 0.1"
        elif 99.95 <= value < 100 - 1e-9:
            text = "> 99.9"
        else:
            text = f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.1f}"
        return in_notation(text.replace("-", "−"), language)
    if isinstance(value, str):
        return value
    return " · ".join(", ".join(one) if isinstance(one, list) else one for one in value)


def _filled(text: str, written: dict[str, str], field: str) -> str:
    for name in FACT.findall(text):
        if name not in written:
            raise LessonError(f"{field}: names [[{name}]], and there is no such fact; add it under facts")
    return FACT.sub(lambda found: written[found[1]], text)


def _measure(one: Measured, step: Step, load: Load, field: str) -> Result:
    try:
        return one.result(load, step.checkpoint, step.text)
    except TxclsError as error:
        raise LessonError(f"{field}: {error}") from None


def _answer(question: Question, step: Step, load: Load, language: str) -> tuple[Any, str, tuple[str, ...]]:
    """What is right, that as text, and what is offered."""
    if isinstance(question, Choice):
        place = _right_option(question, step, load)
        return place, question.options[place].text, tuple(option.text for option in question.options)
    value = _measure(question.answer, step, load, "question.answer")
    if isinstance(question, Number):
        if not isinstance(value, float):
            raise LessonError(f"question.answer: wanted a number, {said(value)!r} was measured")
        unit = f" {question.unit}" if question.unit else ""
        return value, said(value, language) + unit, ()
    if isinstance(value, str | float) or not value:
        raise LessonError(f"question.answer: wanted a list, {said(value)!r} was measured; use another measure")
    if isinstance(question, Heads):
        config = load(step.checkpoint).checkpoint.config.model
        every = [f"{layer + 1}.{head + 1}" for layer in range(config.n_layers) for head in range(config.n_heads)]
        return value, said(value), tuple(every)
    grouped = isinstance(value[0], list)
    if grouped != bool(question.groups) or (grouped and len(value) != len(question.groups)):
        wanted = f"{len(value)} groups" if grouped else "no groups"
        raise LessonError(f"question.groups: the measurement has {wanted}, the question {len(question.groups)}")
    words = [word for group in value for word in group] if grouped else list(value)
    text = said(value)
    if grouped:
        text = " · ".join(
            f"{name}: {', '.join(group) or '–'}" for name, group in zip(question.groups, value, strict=True)
        )
    offered = tuple(sorted(map(str, words), key=str.casefold))
    return value, text, offered if grouped or list(offered) != value else offered[::-1]


def _right_option(question: Choice, step: Step, load: Load) -> int:
    if question.answer is None:
        held = [all(_holds(one, step, load)[0] for one in option.claim) for option in question.options]
        if held.count(True) != 1:
            true = [option.text for option, is_so in zip(question.options, held, strict=True) if is_so]
            raise LessonError(
                f"question.options: exactly one claim must be true of the model; true are {len(true)}: {true}"
            )
        return held.index(True)
    value = _measure(question.answer, step, load, "question.answer")
    text = said(value)
    wanted = [option.text if option.value is None else option.value for option in question.options]
    places = [place for place, one in enumerate(wanted) if _same(one, value)]
    if len(places) != 1:
        raise LessonError(f"question.options: the model gives {text!r}, which is {len(places)} of the options {wanted}")
    return places[0]


def _same(stated: Any, value: Result) -> bool:
    if isinstance(value, float):
        try:
            return abs(float(stated) - value) < 0.05 + 1e-9
        except (TypeError, ValueError):
            return False
    return str(stated) == said(value)


def _holds(claim: Claim, step: Step, load: Load) -> tuple[bool, Result]:
    """Whether a claim is true, and what was measured."""
    value = _measure(claim.measure, step, load, "claim")
    bounds = [claim.at_least, claim.at_most]
    if any(one is not None for one in bounds):
        if not isinstance(value, float):
            raise LessonError(f"claim: at_least and at_most need a number, {said(value)!r} was measured")
        if claim.at_least is not None and value < claim.at_least:
            return False, value
        if claim.at_most is not None and value > claim.at_most:
            return False, value
    if claim.equals is not None and not _same(claim.equals, value):
        return False, value
    return claim.differs_from is None or not _same(claim.differs_from, value), value


def _refused(claim: Claim, value: Result) -> str:
    bounds = {"equals": claim.equals, "differs_from": claim.differs_from,
              "at_least": claim.at_least, "at_most": claim.at_most}  # fmt: skip
    stated = ", ".join(f"{name} {one}" for name, one in bounds.items() if one is not None)
    return f"{claim.measure.measure}: states {stated}, the model gives {shown(said(value))}"


def _compare_expected(solved: Solved) -> None:
    """Refuse a stated answer that is not what the model does."""
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
        stated = [word for group in solved.right for word in group] if question.groups else solved.right
        right = question.expected == stated
    if not right:
        raise LessonError(
            f"question.expected: states {shown(question.expected, limit=80)}, the model gives {solved.answer}"
        )
