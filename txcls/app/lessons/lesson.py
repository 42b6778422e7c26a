"""Progress in a lesson: the current step, the visitor's changes to it, and the answered questions.

The URL holds the lesson, its step, and the visitor's changes (`txcls.app.shell.state`). `panel` draws the lesson.
"""

import json
import sys
import time
from dataclasses import astuple, dataclass
from typing import Any

import streamlit as st

from txcls.address import SLIDE, Anchor, changes_from_step, params_from_view, view_from_params
from txcls.app import menu
from txcls.app.shell import checkpoints, compute, state
from txcls.errors import TxclsError
from txcls.lessons import Lesson, Solved, find_lesson, is_right, make_code
from txcls.lessons.format import Choice, Drag, LessonStep, Number, Question

_ON, _GO, _LEFT, _CLEARED = "_lesson", "_lesson_go", "_lesson_left", "_lesson_cleared"
_ANSWERS, _ASIDE, _OPENED = "_lesson_answers", "_lesson_aside", "_lesson_opened"
_TURN = "_lesson_turn"


@dataclass(frozen=True, slots=True)
class Place:
    """A step of a lesson; `at` counts from 0."""

    name: str
    language: str
    at: int

    @property
    def lesson(self) -> Lesson:
        """The lesson, read from its file."""
        return find_lesson(self.name, self.language)

    @property
    def step(self) -> LessonStep:
        return self.lesson.steps[self.at]

    @property
    def params(self) -> dict[str, str]:
        """URL parameters for this step."""
        return {"lesson": self.name, "step": str(self.at + 1), "lang": self.language}

    @property
    def page(self) -> menu.PageInfo:
        """The page that the step is about."""
        return next(page for page in menu.PAGES if page.name == self.step.page)


@dataclass(frozen=True, slots=True)
class Given:
    """A visitor's last answer to a question.

    Attributes:
        answer: None if the right answer was revealed without one.
        right: whether `answer` is right; None without one.
        at_first: whether the first answer was right, which is what counts; None without one.
        revealed: whether the right answer is shown.
    """

    answer: Any
    right: bool | None
    at_first: bool | None
    revealed: bool


LATE_SECONDS = 2.0
"""Seconds after a change of step in which the browser may still send earlier messages."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The last change of the step, which messages sent by the browser before it must not undo.

    For example, a picture may report the arrival of its weights just when the lecturer goes on: with the old step, or
    from the old page.
    """

    before: Place | None
    to: Place
    params: dict[str, str]
    at: float

    def is_undone_by(self, place: Place, here: menu.PageInfo) -> bool:
        """Whether a run of page `here` with the URL of `place` would return to the state before the change."""
        if now() != self.to or time.monotonic() - self.at > LATE_SECONDS:
            return False
        is_old_page = self.before is not None and here is self.before.page and here is not self.to.page
        return place == self.before != self.to or (place == self.to and is_old_page)


def now() -> Place | None:
    """The current step; None outside a lesson."""
    place: Place | None = st.session_state.get(_ON)
    return place


def n_opened() -> int:
    """How many steps have been opened; a new number makes the browser reset a page's components."""
    times: int = st.session_state.get(_OPENED, 0)
    return times


def arrive(here: menu.PageInfo) -> None:
    """Start, change or end the lesson according to the URL; open the page of a newly selected step."""
    params = st.query_params.to_dict()
    if (target := st.session_state.pop(_GO, None)) is not None:
        place, params_of_target = target
        st.session_state[_TURN] = _Turn(now(), place, params_of_target, time.monotonic())
        _begin(place)
        _open(place, params_of_target)
    if st.session_state.pop(_LEFT, False):
        return  # the URL still names the lesson; the page rewrites it
    if "lesson" in params:
        previous = now()
        place = _place_from_params(params)
        if place is None:
            if here is not menu.LESSONS:
                st.switch_page(menu.LESSONS.path)
            return
        turn: _Turn | None = st.session_state.get(_TURN)
        if turn is not None and turn.is_undone_by(place, here):
            _open(turn.to, turn.params)
        if place != previous:
            _begin(place)
            is_root = here is menu.PAGES[0]
            if is_root and place.page is not here and params.get("page") != here.name:
                st.switch_page(place.page.path, query_params={**params, **place.params})
    elif params:
        end()
    if (place := now()) is not None:
        away = {"page": here.name} if here is menu.PAGES[0] and place.page is not here else {}
        _anchor(place, away)


def _open(place: Place, params: dict[str, str]) -> None:
    state.follow_url()
    st.switch_page(place.page.path, query_params={**place.params, **params})


def _place_from_params(params: dict[str, str]) -> Place | None:
    """The step that a URL names; numbers beyond the last step select the last."""
    try:
        lesson = find_lesson(params["lesson"], params.get("lang", "en"))
        number = params.get("step", "1")
        at = int(number) - 1 if number.isdecimal() and len(number) < 5 else 0
        return Place(lesson.name, lesson.language, max(0, min(at, len(lesson.steps) - 1)))
    except TxclsError as error:
        message = str(error)
        state.add_note(f"{message[:1].upper()}{message[1:]}")
        end()
        return None


def _begin(place: Place) -> None:
    st.session_state[_ON] = place
    st.session_state[_OPENED] = st.session_state.get(_OPENED, 0) + 1
    _anchor(place, {})


def _anchor(place: Place, away: dict[str, str]) -> None:
    view, _ = view_from_params(place.step.params, checkpoints=checkpoints.names())
    state.anchor_to(Anchor({**place.params, **away}, params_from_view(view)))


def end() -> None:
    """End the lesson; the page stays as it is."""
    st.session_state.pop(_ON, None)
    state.anchor_to(None)


def leave() -> None:
    """End the lesson from a button; the page rewrites the URL."""
    end()
    st.session_state[_LEFT] = True
    state.change_view()


def go(at: int, *, language: str | None = None) -> None:
    """Go to a step, from 0; the visitor's changes to the current step are saved."""
    place = now()
    if place is None or not 0 <= at < len(place.lesson.steps):
        return
    if changed := changes():
        st.session_state.setdefault(_ASIDE, {})[place.name, place.at] = changed
    target = Place(place.name, language or place.language, at)
    view = state.shown_view()
    st.session_state[_GO] = (target, {"mode": view.mode} if view.mode else {})


def turn(by: int, *, to_last_slide: bool = False) -> None:
    """Go forward or back by a step; the answer to an open question is shown first."""
    place = now()
    if place is None:
        return
    if by > 0 and is_open():
        reveal()
        return
    go(place.at + by)
    if to_last_slide and _GO in st.session_state:
        st.session_state[_GO][1][SLIDE] = "last"


def changes() -> dict[str, str]:
    """The visitor's changes to the step, as URL parameters; includes the page if it is not the step's."""
    place = now()
    if place is None:
        return {}
    changed = changes_from_step(state.link_params(state.shown_view()))
    here = st.session_state.get("_slides_of")
    return changed | ({"page": here.name} if here is not None and here is not place.page else {})


def saved_changes() -> dict[str, str]:
    """The saved changes to this step."""
    place = now()
    changed: dict[str, str] = st.session_state.get(_ASIDE, {}).get((place.name, place.at), {}) if place else {}
    return changed


def restore() -> None:
    """Show the step as the lesson defines it."""
    if (place := now()) is not None:
        go(place.at)


def apply_saved_changes() -> None:
    """Show the step with the saved changes."""
    place, changed = now(), saved_changes()
    if place is not None and changed:
        go(place.at)
        st.session_state[_GO][1].update({name: value for name, value in changed.items() if name != "page"})


def solved(place: Place) -> Solved:
    """The step with all its values measured; TxclsError if one cannot be measured."""
    lesson = place.lesson
    names = sorted({place.step.checkpoint} & set(checkpoints.names()))
    sources = tuple(checkpoints.source(name) for name in names)
    return compute.solved_step(place.name, place.language, place.at, lesson.version, sources)


def answer_of(place: Place) -> Given | None:
    """The visitor's answer to the step's question, in any language."""
    answer: Given | None = st.session_state.get(_ANSWERS, {}).get((place.name, place.at))
    return answer


def answer(given: Any) -> None:
    """Store an answer to this step's question; None reveals the right answer. A wrong answer may be changed."""
    place = now()
    if place is None:
        return
    before = answer_of(place)
    if before is not None and before.revealed:
        return
    if given is None:
        after = Given(None, None, None, True) if before is None else Given(before.answer, False, False, True)
    else:
        right = is_right(solved(place), given)
        after = Given(given, right, right if before is None else before.at_first, right)
    st.session_state.setdefault(_ANSWERS, {})[place.name, place.at] = after
    st.session_state.get(_CLEARED, set()).discard(place.name)


def reveal() -> None:
    """Reveal the right answer to this step's question; for callbacks."""
    answer(None)


def clear_answers() -> None:
    """Forget all answers in this lesson, and go to its first step."""
    if (place := now()) is not None:
        for key in [key for key in st.session_state.get(_ANSWERS, {}) if key[0] == place.name]:
            del st.session_state[_ANSWERS][key]
        st.session_state.setdefault(_CLEARED, set()).add(place.name)
        go(0)


def answers_to_store(place: Place) -> dict[str, list[Any]] | None:
    """The answers in this lesson as JSON values, for the browser; empty if they were cleared, None without any."""
    answers: dict[tuple[str, int], Given] = st.session_state.get(_ANSWERS, {})
    stored = {str(at): list(astuple(given)) for (name, at), given in answers.items() if name == place.name}
    return stored or ({} if place.name in st.session_state.get(_CLEARED, ()) else None)


def restore_answers(place: Place, stored: str) -> None:
    """Take the answers in this lesson that the browser has stored; those of this session take precedence.

    What is not an answer to a question of the lesson is ignored, as after a change to its file.
    """
    try:
        fields = json.loads(stored)
        items = [(int(at), *row) for at, row in fields.items()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        return
    steps = place.lesson.steps
    for item in items:
        at, results = item[0], item[2:]
        question = steps[at].question if 0 <= at < len(steps) else None
        if question is None or len(results) != 3 or not all(result in (True, False, None) for result in results):
            continue
        if item[1] is None or _is_answer_to(question, item[1]):
            given = Given(item[1], results[0], results[1], bool(results[2]))
            st.session_state.setdefault(_ANSWERS, {}).setdefault((place.name, at), given)


def _is_answer_to(question: Question, answer: Any) -> bool:
    """Whether an answer has the form that a question of this kind needs."""
    if isinstance(question, Choice):
        return isinstance(answer, int) and 0 <= answer < len(question.options)
    if isinstance(question, Number):
        return isinstance(answer, int | float) and abs(answer) <= sys.float_info.max
    if not isinstance(answer, list):
        return False
    if isinstance(question, Drag) and question.groups:
        return len(answer) == len(question.groups) and all(map(_are_words, answer))
    return _are_words(answer)


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 100 and all(isinstance(word, str) for word in value)


def is_covered() -> bool:
    """Whether the page is hidden until the question is answered; never in lecture mode, where slides come in order."""
    place = now()
    return place is not None and is_open() and place.step.question is not None and not place.step.question.look


def is_open() -> bool:
    """Whether the step's question has been neither answered correctly nor revealed.

    Never in lecture mode, where the last slide has the answer.
    """
    place = now()
    if place is None or state.shown_view().mode == "lecture" or st.session_state.get("_slides_of") is not place.page:
        return False
    given = answer_of(place)
    return place.step.question is not None and (given is None or not given.revealed)


def code(place: Place) -> tuple[str, int, int]:
    """The result code of the lesson, the number of right first answers, and the number of questions."""
    questions = [at for at, step in enumerate(place.lesson.steps) if step.question is not None]
    answers_given = [answer_of(Place(place.name, place.language, at)) for at in questions]
    results = [None if answer is None else answer.at_first for answer in answers_given]
    return make_code(place.name, results), results.count(True), len(questions)
