import json
import time
from dataclasses import replace

import pytest

from tests.app.drawn import open_page
from txcls.app import menu
from txcls.app.lessons import lesson
from txcls.app.lessons.lesson import LATE_SECONDS, GivenAnswer, LessonPosition, _Turn

FIRST, SECOND = LessonPosition("attention", "en", 0), LessonPosition("attention", "en", 1)
HUGE = json.dumps({"2": [10**400, True, True, True]})  # the question of step 2 asks for a number


def test_only_a_message_sent_before_a_turn_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson, "now", lambda: SECOND)
    turn = _Turn(FIRST, SECOND, {}, time.monotonic())
    assert turn.is_undone_by(FIRST, FIRST.page), "the old address, sent by the old page"
    assert turn.is_undone_by(SECOND, FIRST.page), "the new address, sent by the old page"
    assert not turn.is_undone_by(SECOND, SECOND.page)
    assert not turn.is_undone_by(SECOND, menu.POSITIONS), "another page from the menu"
    assert not replace(turn, time=turn.time - LATE_SECONDS).is_undone_by(FIRST, FIRST.page), "the browser's back button"


def test_a_lesson_goes_on_in_another_language_at_the_same_step() -> None:
    app = open_page(SECOND.page.name, **SECOND.params)
    app.button(key="lesson_in_de").click().run()
    assert not app.exception, app.exception
    params = app.query_params
    assert (params["lesson"], params["step"], params["lang"]) == ("attention", "2", "de")


def test_answers_from_the_browser_are_taken_if_they_fit_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    session: dict[str, object] = {}
    monkeypatch.setattr(lesson.st, "session_state", session)
    given = {"0": [0, False, False, True], "4": [["1.2"], True, False, True], "5": [None, None, None, True]}
    unusable = {
        "1": [0, True, True, True],
        "2": ["x", True, True, True],
        "77": [0, True, True, True],
        "3": [0, "x", 1, 1],
    }
    lesson.restore_answers(FIRST, json.dumps(given | unusable))
    assert lesson.answers_to_store(FIRST) == given
    assert lesson.count_right(FIRST) == (0, 5)
    lesson.restore_answers(FIRST, json.dumps({"0": [1, True, True, True]}))
    assert lesson.answer_of(FIRST) == GivenAnswer(0, False, False, True), "those of the session take precedence"
    assert lesson.answers_to_store(LessonPosition("tokens", "en", 0)) is None
    for broken in ("", "[]", "{", '{"a": 1}', '{"0": 1}', "[" * 100_000, HUGE):
        lesson.restore_answers(FIRST, broken)
    assert lesson.answers_to_store(FIRST) == given
