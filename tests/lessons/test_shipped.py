from functools import cache

import pytest
import yaml

from txcls.checkpoint.listing import list_checkpoints
from txcls.inference.predictor import Predictor
from txcls.lessons import Lesson, check_lesson, find_lesson, languages_of, lesson_names
from txcls.lessons.checking import FACT
from txcls.lessons.format import Choice, Drag
from txcls.lessons.markup import FOLDER, words_in
from txcls.lessons.reading import TEMPLATE, read_lesson
from txcls.web.assemble import LANGUAGES

load = cache(Predictor.load)
ALL = [(name, language) for name in lesson_names() for language in languages_of(name)]


def names() -> list[str]:
    return [checkpoint.name for checkpoint in list_checkpoints().classifiers]


@pytest.mark.parametrize("name", lesson_names())
def test_every_claim_of_a_shipped_lesson_holds_for_the_models(name: str) -> None:
    """In English; translations have the same measurements."""
    solutions = check_lesson(find_lesson(name), load, checkpoints=names())
    assert all(solved.answer or solved.step.question is None for solved in solutions)


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


@pytest.mark.parametrize("name, language", [(name, language) for name, language in ALL if language != "en"])
def test_a_translation_has_the_same_steps_questions_and_measurements(name: str, language: str) -> None:
    english, other = find_lesson(name, "en"), find_lesson(name, language)
    assert shape(english) == shape(other)
    assert english.minutes == other.minutes
    for ours, translated in zip(english.steps, other.steps, strict=True):
        assert ours.title != translated.title and ours.narration != translated.narration
        said = translated.narration + ((translated.question and translated.question.why) or "")
        assert set(FACT.findall(said)) <= {*translated.facts, "answer"}


def test_every_lesson_is_in_german_and_attention_in_every_language_of_the_pages() -> None:
    assert all({"en", "de"} <= set(languages_of(name)) for name in lesson_names())
    assert set(languages_of("attention")) == {"en", *LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_interface_of_lessons_is_fully_translated(language: str) -> None:
    written = yaml.safe_load((FOLDER / f"{language}.yaml").read_text("utf-8"))
    assert set(words_in("en")) == set(written)


def test_a_language_may_have_a_region_and_an_unknown_one_is_english() -> None:
    assert words_in("de-AT") == words_in("de") and words_in("eo") == words_in("en")


def test_the_template_passes_its_own_check() -> None:
    assert len(check_lesson(read_lesson(TEMPLATE), load, checkpoints=names())) == 3
