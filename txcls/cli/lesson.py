"""`txcls lesson`: check, begin and print lessons, and read the codes at their end."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from txcls.cli.output import note

if TYPE_CHECKING:
    from txcls.lessons import Lesson
    from txcls.predictor import Predictor

app = typer.Typer(no_args_is_help=True, help="Write, check and print lessons.")
LessonArgument = Annotated[
    str, typer.Argument(metavar="LESSON", help="A lesson's file, or the name of a shipped lesson.")
]
LanguageOption = Annotated[str, typer.Option("--language", metavar="L", help="Language of a shipped lesson: en, de.")]


@app.callback()
def _commands() -> None:
    """Write, check and print lessons."""


@cache
def _load(name: str) -> "Predictor":
    from txcls.predictor import Predictor

    return Predictor.load(name)


def _checked(lesson: "Lesson") -> int:
    """Check a lesson; returns how many of its steps ask."""
    from txcls.lessons import check_lesson
    from txcls.listing import list_checkpoints

    solved = check_lesson(lesson, _load, checkpoints=[one.name for one in list_checkpoints().classifiers])
    return sum(one.step.question is not None for one in solved)


@app.command()
def check(lesson: LessonArgument, language: LanguageOption = "en") -> None:
    """Check a lesson: its fields, its states, and every answer and claim against the models."""
    from txcls.lessons import given_lesson

    found = given_lesson(lesson, language)
    asked = _checked(found)
    note(f"{found.source}: {len(found.steps)} steps, {asked} questions; everything it says is what the models do")


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as mine.yaml.")],
) -> None:
    """Write a lesson to begin with: three steps with comments, which pass `lesson check` as they are."""
    from txcls.lessons.reading import LessonError, write_template

    if file.suffix not in (".yaml", ".yml"):
        raise LessonError(f"{file}: wanted a name that ends in .yaml")
    write_template(file)
    note(f"wrote {file}; edit it, then: python -m txcls lesson check {file}")


@app.command("list")
def list_lessons() -> None:
    """List the shipped lessons."""
    from rich.table import Table

    from txcls.cli.output import console
    from txcls.lessons import find_lesson, languages_of, lesson_names

    table = Table("name", "title", "minutes", "steps", "languages")
    for name in lesson_names():
        one = find_lesson(name)
        table.add_row(name, one.title, f"{one.minutes:g}", str(len(one.steps)), ", ".join(languages_of(name)))
    console().print(table)


@app.command("measures")
def list_measures() -> None:
    """List what a lesson's answers, facts and claims can measure."""
    from rich.table import Table

    from txcls.cli.output import console
    from txcls.lessons.measures import measures

    table = Table("measure", "fields", "what it is")
    for name, fields, what in measures():
        table.add_row(name, fields, what)
    console().print(table)


@app.command()
def worksheet(
    lesson: LessonArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page to write  [default: LESSON.LANGUAGE.html]")
    ] = None,
    language: LanguageOption = "en",
) -> None:
    """Write a lesson as a page to print: questions with room for answers, pictures, and the answers on a last page."""
    from txcls.lessons import given_lesson
    from txcls.lessons.worksheet import write_worksheet

    found = given_lesson(lesson, language)
    _checked(found)
    target = out or Path(f"{found.name}.{found.language}.html")
    write_worksheet(found, _load, target)
    note(f"wrote {target}; open it in a browser and print it, answers are on the last page")


@app.command()
def code(
    codes: Annotated[list[str], typer.Argument(metavar="CODE", help="Codes as shown at the end of a lesson.")],
) -> None:
    """Say which questions a code's owner answered; its checksum finds typing errors and proves nothing."""
    from rich.table import Table

    from txcls.cli.output import console
    from txcls.lessons import read_code

    table = Table("lesson", "right", "wrong", "not answered", "by question")
    for one in codes:
        found = read_code(one)
        marks = ["–" if answer is None else "right" if answer else "wrong" for answer in found.answers]
        counts = [str(marks.count(mark)) for mark in ("right", "wrong", "–")]
        table.add_row(found.lesson, *counts, ", ".join(f"{n} {mark}" for n, mark in enumerate(marks, 1)))
    console().print(table)
    note("The checksum of a code finds typing errors. It is not a signature: whoever knows the format can write one.")
