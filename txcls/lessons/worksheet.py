"""A lesson as a page to print: questions with space for answers, pictures, and the answers on a separate page."""

import html
from collections.abc import Mapping
from pathlib import Path

from txcls.lessons.checking import Solved, solve
from txcls.lessons.format import Choice, Drag, Heads, LessonStep, Number
from txcls.lessons.markup import inline, to_html
from txcls.lessons.measures import Load
from txcls.lessons.pictures import picture_of
from txcls.lessons.reading import Lesson, LessonError
from txcls.lessons.wording import words_in

_STYLE = Path(__file__).parent / "worksheet.css"


def write_worksheet(lesson: Lesson, load: Load, target: str | Path) -> None:
    """Write the worksheet as a single self-contained HTML file."""
    page = worksheet(lesson, load)
    try:
        Path(target).write_text(page, encoding="utf-8")
    except OSError as error:
        raise LessonError(f"{target}: cannot be written: {error.strerror or error}") from None


def worksheet(lesson: Lesson, load: Load) -> str:
    """The worksheet as HTML.

    A step's picture is beside its question, or among the answers if it would give the answer away. If the pictures of
    consecutive steps are equal, only one is shown: beside the last question, and beside the first answer.
    """
    words = words_in(lesson.language)
    solutions = [solve(step, load, language=lesson.language) for step in lesson.steps]
    figures = [_figure(solved.step, load, lesson) for solved in solutions]
    with_questions = ["" if _gives_answer(s) else figure for s, figure in zip(solutions, figures, strict=True)]
    with_answers = [figure if _gives_answer(s) else "" for s, figure in zip(solutions, figures, strict=True)]
    questions = [
        _question(number, solved, "" if figure == following else figure, words)
        for number, (solved, figure, following) in enumerate(
            zip(solutions, with_questions, [*with_questions[1:], ""], strict=True)
        )
    ]
    answers = [
        _answer(number, solved, "" if figure == previous else figure)
        for number, (solved, figure, previous) in enumerate(
            zip(solutions, with_answers, ["", *with_answers[:-1]], strict=True)
        )
        if solved.step.question is not None
    ]
    title = html.escape(lesson.title)
    return f"""<!doctype html>
<html lang="{html.escape(lesson.language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" \
content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE.read_text(encoding="utf-8")}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{to_html(lesson.summary)}
<p class="who"><span>{words["name"]}</span><span>{words["date"]}</span></p>
</header>
<main>
{chr(10).join(questions)}
</main>
<section class="answers">
<h1>{words["answers"]}: {title}</h1>
{chr(10).join(answers)}
</section>
</body>
</html>
"""


def _gives_answer(solved: Solved) -> bool:
    """Whether a step's picture would give away the answer to its question."""
    return solved.step.question is not None and not solved.step.question.look


def _question(number: int, solved: Solved, figure: str, words: Mapping[str, str]) -> str:
    step = solved.step
    question = step.question
    parts = [
        f"<h2>{number + 1}. {html.escape(step.title)}</h2>",
        figure,
        to_html(solved.narration),
        f'<p class="text">{html.escape(step.text)}</p>',
    ]
    if question is not None:
        parts += [f'<div class="ask">{inline(question.ask)}</div>', _answer_space(solved, words)]
    if step.room:
        parts.append(f'<div class="room"><b>{words["room"]}</b> {inline(step.room)}</div>')
    return f"<section>{''.join(parts)}</section>"


def _figure(step: LessonStep, load: Load, lesson: Lesson) -> str:
    """A step's picture with its caption."""
    picture = picture_of(step, load, language=lesson.language)
    return f"<figure>{picture.svg}<figcaption>{html.escape(picture.caption)}</figcaption></figure>"


def _answer_space(solved: Solved, words: Mapping[str, str]) -> str:
    """Boxes to tick, words to order, or lines to write on."""
    question = solved.step.question
    if isinstance(question, Choice | Heads):
        rows = "".join(f"<li>{inline(option)}</li>" for option in solved.offered)
        return f'<ul class="options{" heads" * isinstance(question, Heads)}">{rows}</ul>'
    if isinstance(question, Drag):
        offered = "".join(f"<span>{html.escape(word)}</span>" for word in solved.offered)
        lines = [f"{html.escape(group)}: " for group in question.groups] or [words["words_in_order"]]
        spaces = "".join(f'<div class="line"><b>{line}</b></div>' for line in lines)
        return f'<div class="words">{offered}</div>{spaces}'
    unit = html.escape(question.unit) if isinstance(question, Number) else ""
    return f'<div class="line number">{unit}</div>'


def _answer(number: int, solved: Solved, figure: str) -> str:
    step = solved.step
    parts = [
        f"<h2>{number + 1}. {html.escape(step.title)}</h2>",
        "" if solved.why_has_answer else f"<div><b>{inline(solved.answer)}</b></div>",
        to_html(solved.why) if solved.why else "",
        figure,
    ]
    return f"<section>{''.join(parts)}</section>"
