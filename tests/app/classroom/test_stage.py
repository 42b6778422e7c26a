from functools import cache

import pytest

from tests.browser.server import ROOT
from tests.conftest import slow_but
from txcls.app.classroom.stage import _with_answer
from txcls.inference.predictor import Predictor
from txcls.lessons import find_lesson, is_right, lesson_names, solve
from txcls.lessons.format import Drag


@cache
def load(name: str) -> Predictor:
    """A shipped checkpoint."""
    return Predictor.load(ROOT / "checkpoints" / name)


@pytest.mark.parametrize("name", slow_but(["attention", "tokens"], lesson_names()))
def test_every_question_of_a_lesson_can_be_answered_on_phones(name: str) -> None:
    lesson = find_lesson(name, language := "de")
    for step in lesson.steps:
        if step.question is None:
            continue
        solved = solve(step, load, language=language)
        asked = _with_answer(solved, "id", language)
        assert asked.ask and asked.answer and asked.language == language
        assert not {"*", "`", "$", "<"} & set(asked.ask.replace("<cls>", "").replace("<unk>", "")), asked.ask
        if asked.kind == "number":
            assert is_right(solved, asked.right)
            continue
        assert isinstance(asked.right, tuple) and len(asked.right) == len(asked.rows)
        assert all(right for right in asked.right) and len(asked.options) > 1
        if isinstance(step.question, Drag):
            groups = [[w for w, right in zip(asked.rows, asked.right, strict=True) if right == (n,)] for n in range(2)]
            assert is_right(solved, groups)
        elif step.question.kind == "choice":
            assert is_right(solved, asked.right[0][0])
        else:
            assert is_right(solved, [asked.options[n] for n in asked.right[0]])
