"""Progress in a lesson: the current step, the visitor's changes to it, and the answered questions.

The URL holds the lesson, its step, and the visitor's changes (`txcls.app.shell.state`). `panel` draws the lesson.
"""

import time
from dataclasses import dataclass
from typing import Any

import streamlit as st

from txcls.address import SLIDE, Anchor, changes_from_step, params_from_view, view_from_params
from txcls.app import pages
from txcls.app.shell import checkpoints, compute, state
from txcls.errors import TxclsError
from txcls.lessons import Lesson, Solved, find_lesson, is_right, make_code
from txcls.lessons.format import LessonStep

_ON, _GO, _LEFT, _NOTE = "_lesson", "_lesson_go", "_lesson_left", "_lesson_note"
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
    def page(self) -> pages.PageInfo:
        """The page that the step is about."""
        return next(page for page in pages.PAGES if page.name == self.step.page)


@dataclass(frozen=True, slots=True)
class Given:
    """A visitor's answer, and whether it is right; both None if the right answer was revealed without one."""

    answer: Any
    right: bool | None


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

    def is_undone_by(self, place: Place, here: pages.PageInfo) -> bool:
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


def take_note() -> str:
    """Remove and return the reason why the lesson of a link cannot be shown; "" if there is none."""
    note: str = st.session_state.pop(_NOTE, "")
    return note


def arrive(here: pages.PageInfo) -> None:
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
            return
        turn: _Turn | None = st.session_state.get(_TURN)
        if turn is not None and turn.is_undone_by(place, here):
            _open(turn.to, turn.params)
        if place != previous:
            _begin(place)
            is_root = here is pages.PAGES[0]
            if is_root and place.page is not here and params.get("page") != here.name:
                st.switch_page(place.page.path, query_params={**params, **place.params})
    elif params:
        end()
    if (place := now()) is not None:
        away = {"page": here.name} if here is pages.PAGES[0] and place.page is not here else {}
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
        st.session_state[_NOTE] = str(error)
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


def turn(by: int, *, to_its_end: bool = False) -> None:
    """Go forward or back by a step; the answer to an open question is shown first."""
    place = now()
    if place is None:
        return
    if by > 0 and is_open():
        reveal()
        return
    go(place.at + by)
    if to_its_end and _GO in st.session_state:
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
    """This session's answer to the step's question, in any language."""
    answer: Given | None = st.session_state.get(_ANSWERS, {}).get((place.name, place.at))
    return answer


def answer(given: Any) -> None:
    """Store an answer to this step's question; None reveals the right answer without one."""
    place = now()
    if place is not None and answer_of(place) is None:
        right = None if given is None else is_right(solved(place), given)
        st.session_state.setdefault(_ANSWERS, {})[place.name, place.at] = Given(given, right)


def reveal() -> None:
    """Reveal the right answer to this step's question without an answer from the visitor; for callbacks."""
    answer(None)


def is_covered() -> bool:
    """Whether the page is hidden until the question is answered; never in lecture mode, where slides come in order."""
    place = now()
    return place is not None and is_open() and place.step.question is not None and not place.step.question.look


def is_open() -> bool:
    """Whether the step has an unanswered question; never in lecture mode, where the last slide has the answer."""
    place = now()
    if place is None or state.shown_view().mode == "lecture" or st.session_state.get("_slides_of") is not place.page:
        return False
    return place.step.question is not None and answer_of(place) is None


def code(place: Place) -> tuple[str, int, int]:
    """The result code of the lesson, the number of right answers, and the number of questions."""
    questions = [at for at, step in enumerate(place.lesson.steps) if step.question is not None]
    answers_given = [answer_of(Place(place.name, place.language, at)) for at in questions]
    results = [None if answer is None else answer.right for answer in answers_given]
    return make_code(place.name, results), results.count(True), len(questions)
