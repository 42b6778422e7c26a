"""`txcls lesson`: write, check and print lessons, and read the codes shown at their end."""

from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from txcls.checkpoint.listing import list_checkpoints
from txcls.cli.output import note, print_rows
from txcls.lessons import Lesson, Solved, check_lesson, find_lesson, given_lesson, languages_of, lesson_names, read_code
from txcls.lessons.measures import measures
from txcls.lessons.reading import NAMING_RULE, SHIPPED, LessonError, is_offered, write_template
from txcls.lessons.worksheet import write_worksheet
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
def _load(name: str) -> Predictor:
    return Predictor.load(name)


def _checked(lesson: Lesson) -> list[Solved]:
    """Check a lesson; returns its steps with all measurements."""
    return check_lesson(lesson, _load, checkpoints=[summary.name for summary in list_checkpoints().classifiers])


@app.command()
def check(lesson: LessonArgument, language: LanguageOption = "en") -> None:
    """Check a lesson: its fields, its states, and every answer and claim against the models; prints what is right."""
    given = given_lesson(lesson, language)
    solved = _checked(given)
    rows = [
        (number, step.step.title, "" if step.step.question is None else step.step.question.kind, step.answer)
        for number, step in enumerate(solved, 1)
    ]
    print_rows(("step", "title", "question", "the right answer, as measured"), rows)
    asked = sum(step.step.question is not None for step in solved)
    note(f"{given.source}: {len(given.steps)} steps, {asked} questions; everything it says is what the models do")
    _print_how_to_open(given)


def _print_how_to_open(lesson: Lesson) -> None:
    """Print how to open a lesson in the app, unless it is shipped."""
    file = Path(lesson.source)
    if file.parent == SHIPPED:
        return
    if not is_offered(file):
        note(f"The app would not offer it. {NAMING_RULE}")
        return
    language = "" if lesson.language == "en" else f"&lang={lesson.language}"
    note(
        f"In the app: TXCLS_LESSONS={file.resolve().parent} streamlit run streamlit_app.py, then the page Lessons, or "
        f"/?lesson={file.name.split('.')[0]}&step=1{language}"
    )


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as mine.en.yaml.")],
) -> None:
    """Write a lesson to begin with: three steps with comments, which pass `lesson check` as they are."""
    if file.suffix not in (".yaml", ".yml"):
        raise LessonError(f"{file}: expected a name that ends in .yaml")
    write_template(file)
    note(f"wrote {file}; edit it, then: python -m txcls lesson check {file}")


@app.command("list")
def list_lessons() -> None:
    """List the lessons: those shipped, and those in the folder that TXCLS_LESSONS names."""
    rows, problems = [], []
    for name in lesson_names():
        readable = {}
        for language in sorted(languages_of(name), key=lambda language: (language != "en", language)):
            try:
                readable[language] = find_lesson(name, language)
            except LessonError as error:
                problems.append(str(error))
        if readable:
            shown = next(iter(readable.values()))
            rows.append((name, shown.title, f"{shown.minutes:g}", len(shown.steps), ", ".join(sorted(readable))))
    print_rows(("name", "title", "minutes", "steps", "languages"), rows)
    for problem in problems:
        note(f"not listed: {problem}")


@app.command("measures")
def list_measures() -> None:
    """List what a lesson's answers, facts and claims can measure."""
    print_rows(("measure", "fields", "least margin", "what it is"), measures())
    note(
        "A field in [brackets] may be left out. All take another `text` and `checkpoint` than the step's too. `check` "
        "refuses a question whose right answer leads the next by less than the least margin (percentage points; logits "
        "for attributions); `margin: 3` in a measurement sets another."
    )


@app.command()
def worksheet(
    lesson: LessonArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page to write  [default: LESSON.LANGUAGE.html]")
    ] = None,
    language: LanguageOption = "en",
) -> None:
    """Write a lesson as a page to print: questions with room for answers, pictures, and the answers on a last page."""
    given = given_lesson(lesson, language)
    _checked(given)
    target = out or Path(f"{given.name}.{given.language}.html")
    write_worksheet(given, _load, target)
    note(f"wrote {target}; open it in a browser and print it; the answers begin on a page of their own at the end")


@app.command("code")
def read_codes(
    codes: Annotated[list[str], typer.Argument(metavar="CODE", help="Codes as shown at the end of a lesson.")],
) -> None:
    """Say which questions a code's owner answered; its checksum finds typing errors and proves nothing."""
    rows: list[tuple[object, ...]] = []
    for code in codes:
        result = read_code(code)
        marks = ["–" if answer is None else "right" if answer else "wrong" for answer in result.answers]
        counts = (marks.count(mark) for mark in ("right", "wrong", "–"))
        rows.append((result.lesson, *counts, ", ".join(f"{n} {mark}" for n, mark in enumerate(marks, 1))))
    print_rows(("lesson", "right", "wrong", "not answered", "by question"), rows)
    note(
        "The checksum of a code finds typing errors. It is not a signature: anyone who knows the format can write one."
    )
