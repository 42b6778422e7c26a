"""Progress in a lesson: the current step, the visitor's changes to it, and the answered questions.

The URL holds the lesson, its step, and the visitor's changes (`txcls.app.shell.view_state`). `panel` draws the lesson.
"""

import json
import sys
import time
from dataclasses import astuple, dataclass
from typing import Any

import streamlit as st

from txcls.app import menu
from txcls.app.shell import cached_results, checkpoints, view_state
from txcls.errors import TxclsError
from txcls.lessons import Lesson, SolvedStep, find_lesson, is_right
from txcls.lessons.format import Choice, Drag, LessonStep, Number, Question
from txcls.lessons.page_address import SLIDE, Anchor, changes_from_step, params_from_view, view_from_params

_POSITION, _GO, _LEFT, _CLEARED = "_lesson", "_lesson_go", "_lesson_left", "_lesson_cleared"
_ANSWERS, _OPENED = "_lesson_answers", "_lesson_opened"
_TURN = "_lesson_turn"


@dataclass(frozen=True, slots=True)
class LessonPosition:
    """A step of a lesson; `index` counts from 0."""

    name: str
    language: str
    index: int

    @property
    def lesson(self) -> Lesson:
        """The lesson, read from its file."""
        return find_lesson(self.name, self.language)

    @property
    def step(self) -> LessonStep:
        return self.lesson.steps[self.index]

    @property
    def params(self) -> dict[str, str]:
        """URL parameters for this step."""
        return {"lesson": self.name, "step": str(self.index + 1), "lang": self.language}

    @property
    def page(self) -> menu.PageInfo:
        """The page that the step is about."""
        return next(page for page in menu.PAGES if page.name == self.step.page)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """A visitor's last answer to a question.

    Attributes:
        answer: None if the right answer was revealed before the visitor answered.
        right: whether `answer` is right; None if there is none.
        first_right: whether the first answer was right, which counts for the result; None if there is none.
        revealed: whether the right answer is shown.
    """

    answer: Any
    right: bool | None
    first_right: bool | None
    revealed: bool


LATE_SECONDS = 2.0
"""Seconds after a change of step in which the browser may still send earlier messages."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The last change of step, which must not be undone by messages that the browser sent before it."""

    old: LessonPosition | None
    new: LessonPosition
    params: dict[str, str]
    time: float

    def is_undone_by(self, position: LessonPosition, page: menu.PageInfo) -> bool:
        """Whether running `page` at `position` would undo this change, as a late run with the old URL does."""
        if now() != self.new or time.monotonic() - self.time > LATE_SECONDS:
            return False
        is_old_page = self.old is not None and page is self.old.page and page is not self.new.page
        return position == self.old != self.new or (position == self.new and is_old_page)


def now() -> LessonPosition | None:
    """The current step; None outside a lesson."""
    position: LessonPosition | None = st.session_state.get(_POSITION)
    return position


def n_opened() -> int:
    """How many steps have been opened; a new number makes the browser reset a page's components."""
    times: int = st.session_state.get(_OPENED, 0)
    return times


def arrive(page: menu.PageInfo) -> None:
    """Start, change or end the lesson according to the URL; open the page of a newly selected step."""
    params = st.query_params.to_dict()
    if (target := st.session_state.pop(_GO, None)) is not None:
        position, params_of_target = target
        st.session_state[_TURN] = _Turn(now(), position, params_of_target, time.monotonic())
        _begin(position)
        _open(position, params_of_target)
    if st.session_state.pop(_LEFT, False):
        return  # the URL still has the lesson; the page rewrites it
    if "lesson" in params:
        previous = now()
        position = _position_from_params(params)
        if position is None:
            if page is not menu.LESSONS:
                st.switch_page(menu.LESSONS.path)
            return
        turn: _Turn | None = st.session_state.get(_TURN)
        if turn is not None and turn.is_undone_by(position, page):
            _open(turn.new, turn.params)
        if position != previous:
            _begin(position)
            is_elsewhere = page in (menu.PAGES[0], menu.LESSONS)
            if is_elsewhere and position.page is not page and params.get("page") != page.name:
                st.switch_page(position.page.path, query_params={**params, **position.params})
    elif params:
        end()
    if (position := now()) is not None:
        other_page = {"page": page.name} if page is menu.PAGES[0] and position.page is not page else {}
        _anchor(position, other_page)


def _open(position: LessonPosition, params: dict[str, str]) -> None:
    view_state.follow_url()
    st.switch_page(position.page.path, query_params={**position.params, **params})


def _position_from_params(params: dict[str, str]) -> LessonPosition | None:
    """The step in a URL; numbers beyond the last step select the last. None if there is no such lesson."""
    try:
        lesson = find_lesson(params["lesson"], params.get("lang", "en"))
        number = params.get("step", "1")
        index = int(number) - 1 if number.isdecimal() and len(number) < 5 else 0
        return LessonPosition(lesson.name, lesson.language, max(0, min(index, len(lesson.steps) - 1)))
    except TxclsError as error:
        message = str(error)
        view_state.add_note(f"{message[:1].upper()}{message[1:]}")
        end()
        return None


def _begin(position: LessonPosition) -> None:
    st.session_state[_POSITION] = position
    st.session_state[_OPENED] = st.session_state.get(_OPENED, 0) + 1
    _anchor(position, {})


def _anchor(position: LessonPosition, other_page: dict[str, str]) -> None:
    view, _ = view_from_params(position.step.params, checkpoints=checkpoints.names())
    view_state.anchor_to(Anchor({**position.params, **other_page}, params_from_view(view)))


def end() -> None:
    """End the lesson; the page does not change."""
    st.session_state.pop(_POSITION, None)
    view_state.anchor_to(None)


def leave() -> None:
    """End the lesson from a button; the page rewrites the URL."""
    end()
    st.session_state[_LEFT] = True
    view_state.change_view()


def go(index: int, language: str | None = None) -> None:
    """Go to the step with this index, from 0, in the lesson's language or in another one."""
    position = now()
    if position is None or not 0 <= index < len(position.lesson.steps):
        return
    target = LessonPosition(position.name, language or position.language, index)
    view = view_state.shown_view()
    st.session_state[_GO] = (target, {"mode": view.mode} if view.mode else {})


def turn(offset: int, *, to_last_slide: bool = False) -> None:
    """Go one step forward (1) or back (-1); going forward from an open question first shows its answer."""
    position = now()
    if position is None:
        return
    if offset > 0 and is_open():
        reveal()
        return
    go(position.index + offset)
    if to_last_slide and _GO in st.session_state:
        st.session_state[_GO][1][SLIDE] = "last"


def changes() -> dict[str, str]:
    """The visitor's changes to the step, as URL parameters; includes the page if it is not the step's."""
    position = now()
    if position is None:
        return {}
    changed = changes_from_step(view_state.link_params(view_state.shown_view()))
    page = st.session_state.get("_slides_of")
    return changed | ({"page": page.name} if page is not None and page is not position.page else {})


def restore() -> None:
    """Show the step as the lesson defines it."""
    if (position := now()) is not None:
        go(position.index)


def solved(position: LessonPosition) -> SolvedStep:
    """The step with all its values measured; TxclsError if one cannot be measured."""
    lesson = position.lesson
    names = sorted({position.step.checkpoint} & set(checkpoints.names()))
    sources = tuple(checkpoints.source(name) for name in names)
    return cached_results.solved_step(position.name, position.language, position.index, lesson.version, sources)


def answer_of(position: LessonPosition) -> GivenAnswer | None:
    """The visitor's answer to the step's question, in any language."""
    answer: GivenAnswer | None = st.session_state.get(_ANSWERS, {}).get((position.name, position.index))
    return answer


def answer(value: Any) -> None:
    """Store an answer to this step's question; None reveals the right answer.

    A wrong answer can be changed, and in lecture mode any answer.
    """
    position = now()
    if position is None:
        return
    old = answer_of(position)
    if old is not None and old.revealed and view_state.shown_view().mode != "lecture":
        return
    if value is None:
        new = GivenAnswer(None, None, None, True) if old is None else GivenAnswer(old.answer, False, False, True)
    else:
        right = is_right(solved(position), value)
        new = GivenAnswer(value, right, right if old is None else old.first_right, right)
    st.session_state.setdefault(_ANSWERS, {})[position.name, position.index] = new
    st.session_state.get(_CLEARED, set()).discard(position.name)


def reveal() -> None:
    """Reveal the right answer to this step's question; for callbacks."""
    answer(None)


def clear_answers() -> None:
    """Delete all answers in this lesson, and go to its first step."""
    if (position := now()) is not None:
        for key in [key for key in st.session_state.get(_ANSWERS, {}) if key[0] == position.name]:
            del st.session_state[_ANSWERS][key]
        st.session_state.setdefault(_CLEARED, set()).add(position.name)
        go(0)


def answers_to_store(position: LessonPosition) -> dict[str, list[Any]] | None:
    """The answers in this lesson as JSON values, for the browser; empty if they were cleared, None if there are
    none."""
    answers: dict[tuple[str, int], GivenAnswer] = st.session_state.get(_ANSWERS, {})
    stored = {str(index): list(astuple(answer)) for (name, index), answer in answers.items() if name == position.name}
    return stored or ({} if position.name in st.session_state.get(_CLEARED, ()) else None)


def restore_answers(position: LessonPosition, stored: str) -> None:
    """Restore the answers in this lesson that the browser has stored; those of this session take precedence.

    Entries that do not fit the questions, for example after a change to the lesson's file, are ignored.
    """
    try:
        fields = json.loads(stored)
        items = [(int(index), *row) for index, row in fields.items()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return
    steps = position.lesson.steps
    for item in items:
        index, results = item[0], item[2:]
        question = steps[index].question if 0 <= index < len(steps) else None
        if question is None or len(results) != 3 or not all(result in (True, False, None) for result in results):
            continue
        if item[1] is None or _is_answer_to(question, item[1]):
            answer = GivenAnswer(item[1], results[0], results[1], bool(results[2]))
            st.session_state.setdefault(_ANSWERS, {}).setdefault((position.name, index), answer)


def _is_answer_to(question: Question, answer: Any) -> bool:
    """Whether an answer has the form that a question of this kind needs."""
    if isinstance(question, Choice):
        return isinstance(answer, int) and 0 <= answer < len(question.options)
    if isinstance(question, Number):
        return isinstance(answer, int | float) and abs(answer) <= sys.float_info.max
    if not isinstance(answer, list):
        return False
    if isinstance(question, Drag):
        return len(answer) == len(question.groups) and all(map(_are_words, answer))
    return _are_words(answer)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 100 and all(isinstance(word, str) for word in value)


def is_page_hidden() -> bool:
    """Whether the page is hidden until the question is answered; never in lecture mode, where slides come in order."""
    position = now()
    return position is not None and is_open() and position.step.question is not None and not position.step.question.look


def is_open() -> bool:
    """Whether the step's question has been neither answered correctly nor revealed.

    Never in lecture mode, where the last slide has the answer.
    """
    position = now()
    if (
        position is None
        or view_state.shown_view().mode == "lecture"
        or st.session_state.get("_slides_of") is not position.page
    ):
        return False
    answer = answer_of(position)
    return position.step.question is not None and (answer is None or not answer.revealed)


def count_right(position: LessonPosition) -> tuple[int, int]:
    """The number of right first answers, and the number of questions."""
    questions = [index for index, step in enumerate(position.lesson.steps) if step.question is not None]
    answers_given = [answer_of(LessonPosition(position.name, position.language, index)) for index in questions]
    return sum(answer is not None and answer.first_right is True for answer in answers_given), len(questions)
