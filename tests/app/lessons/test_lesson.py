"""Changing a lesson's step: messages that the browser sent before the change do not undo it."""

import time
from dataclasses import replace

import pytest

from txcls.app import pages
from txcls.app.lessons import lesson
from txcls.app.lessons.lesson import LATE_SECONDS, Place, _Turn

FIRST, SECOND = Place("attention", "en", 0), Place("attention", "en", 1)


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> _Turn:
    monkeypatch.setattr(lesson, "now", lambda: SECOND)
    return _Turn(FIRST, SECOND, {}, time.monotonic())


def test_a_message_sent_before_a_turn_does_not_undo_it(turn: _Turn) -> None:
    assert FIRST.page is not SECOND.page
    assert turn.is_undone_by(FIRST, FIRST.page), "the old address, sent by the old page"
    assert turn.is_undone_by(SECOND, FIRST.page), "the new address, sent by the old page"


def test_actions_after_a_turn_take_effect(turn: _Turn) -> None:
    assert not turn.is_undone_by(SECOND, SECOND.page)
    assert not turn.is_undone_by(SECOND, pages.LENS), "another page from the menu"
    assert not replace(turn, at=turn.at - LATE_SECONDS).is_undone_by(FIRST, FIRST.page), "the browser's back button"
