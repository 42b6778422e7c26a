"""The shipped lessons: all statements are measured on the shipped checkpoints, and translations match the originals."""

from functools import cache

import pytest

from txcls.checkpoint.listing import list_checkpoints
from txcls.inference.predictor import Predictor
from txcls.lessons import Lesson, check_lesson, find_lesson, languages_of, lesson_names
from txcls.lessons.format import Choice, Drag
from txcls.lessons.reading import ORDER, TEMPLATE, read_lesson
from txcls.lessons.wording import words_in

load = cache(Predictor.load)
ALL = [(name, language) for name in lesson_names() for language in languages_of(name)]


def names() -> list[str]:
    return [checkpoint.name for checkpoint in list_checkpoints().classifiers]


@pytest.mark.parametrize("name, language", ALL)
def test_every_claim_of_a_shipped_lesson_holds_for_the_models(name: str, language: str) -> None:
    solutions = check_lesson(find_lesson(name, language), load, checkpoints=names())
    assert len(solutions) >= 3
    for solved in solutions:
        assert "[[" not in solved.narration + solved.why
        assert solved.answer or solved.step.question is None


def shape(lesson: Lesson) -> list[object]:
    """Everything in a lesson except its texts."""
    steps: list[object] = []
    for step in lesson.steps:
        question = step.question
        measured = step.model_dump(exclude={"title", "narration", "room", "question"})
        if question is None:
            steps.append(measured)
            continue
        question_fields = question.model_dump(exclude={"ask", "why", "options", "groups", "unit"})
        options = [(option.value, option.claim) for option in question.options] if isinstance(question, Choice) else []
        n_groups = len(question.groups) if isinstance(question, Drag) else 0
        steps.append((measured, question_fields, options, n_groups))
    return steps


@pytest.mark.parametrize("name", ORDER)
def test_a_translation_has_the_same_steps_questions_and_measurements(name: str) -> None:
    english, german = find_lesson(name, "en"), find_lesson(name, "de")
    assert shape(english) == shape(german)
    assert english.minutes == german.minutes
    for ours, translated in zip(english.steps, german.steps, strict=True):
        assert ours.title != translated.title and ours.narration != translated.narration


def test_the_interface_of_lessons_is_fully_translated() -> None:
    assert set(words_in("en")) == set(words_in("de"))
    assert words_in("de-AT") == words_in("de") and words_in("eo") == words_in("en")


def test_the_template_passes_its_own_check() -> None:
    assert len(check_lesson(read_lesson(TEMPLATE), load, checkpoints=names())) == 3
