"""Export a lesson as a page without a server: its steps with all measured values, and their checkpoints."""

from functools import cache
from pathlib import Path
from typing import Any

from txcls.inference.predictor import Predictor
from txcls.lessons import Lesson, SolvedStep, check_lesson
from txcls.lessons.format import Drag, Number
from txcls.lessons.markup import to_html, to_inline_html, words_in
from txcls.lessons.page_address import view_from_params
from txcls.lessons.worksheet import picture_of
from txcls.web.assemble import LANGUAGES
from txcls.web.export import export_page
from txcls.web.playground import playground

LIVE_PAGES = ("classify", "tokens", "steps", "attention", "heads")
"""The app's pages that an exported page can show; steps on other pages include a picture instead."""
PARTS = {"tokens": "details", "attention": "attention"}
"""The section of page.html that corresponds to a page of the app, unless it is the picture of the whole model."""


def export_lesson(lesson: Lesson, out: str | Path, *, single_file: bool = False, with_playground: bool = False) -> Path:
    """Check a lesson's answers, and export it as a page with the checkpoints of its steps (see `export_page`).

    With the playground, its page is written too, and steps with settings of the playground link to it.

    Raises:
        LessonError: a statement in the lesson is false.
        CheckpointError: see `export_page`.
    """
    names = list(dict.fromkeys(step.checkpoint for step in lesson.steps))
    load = cache(Predictor.load)
    solved = check_lesson(lesson, load, checkpoints=names)
    description = {
        "name": lesson.name,
        "title": lesson.title,
        "language": lesson.language,
        "words": dict(words_in(lesson.language)),
        "steps": [_step(step, load, lesson.language) for step in solved],
    }
    language = lesson.language.partition("-")[0]
    language = language if language in LANGUAGES else "en"
    content = playground(language=language) if with_playground else b""
    return export_page(names, out, single_file=single_file, lesson=description, playground=content, language=language)


def _step(solved: SolvedStep, load: Any, language: str) -> dict[str, Any]:
    """A step as JSON values: its texts, its question, and the view beside them."""
    step = solved.step
    view, _ = view_from_params(step.params, checkpoints=[step.checkpoint])
    heads = [head for head in view.switched if head.replace(".", "").isdecimal()]
    picture = "" if step.page in LIVE_PAGES else picture_of(step, load, language=language).svg
    shows_weights = step.page == "steps" and view.step in ("softmax", "scores", "weighted")
    return {
        "title": step.title,
        "narration": to_html(solved.narration),
        "room": to_inline_html(step.room) if step.room else "",
        "model": step.checkpoint,
        "text": step.text,
        "head": f"{view.layer + 1}.{view.head + 1}" if view.layer >= 0 and view.head >= 0 else "",
        "off": heads,
        "how": view.heads,
        "picture": picture,
        "playground": view.playground,
        "part": "attention" if shows_weights else PARTS.get(step.page, ""),
        "question": _question(solved),
    }


def _question(solved: SolvedStep) -> dict[str, Any] | None:
    question = solved.step.question
    if question is None:
        return None
    is_markdown = question.kind == "choice"
    return {
        "kind": question.kind,
        "ask": to_inline_html(question.ask),
        "why": to_html(solved.why) if solved.why else "",
        "look": question.look,
        "offered": [to_inline_html(option) for option in solved.offered] if is_markdown else list(solved.offered),
        "answer": "" if solved.why_has_answer else to_inline_html(solved.answer),
        "right": solved.right,
        "groups": list(question.groups) if isinstance(question, Drag) else [],
        "tolerance": question.tolerance if isinstance(question, Number) else 0,
        "unit": question.unit if isinstance(question, Number) else "",
    }
