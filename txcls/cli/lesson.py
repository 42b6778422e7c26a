"""`txcls lesson`: write, check and print lessons."""

from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from txcls.checkpoint.listing import list_checkpoints
from txcls.cli.shared import LessonArgument, LessonLanguageOption, note, print_rows
from txcls.inference.predictor import Predictor
from txcls.lessons import Lesson, SolvedStep, check_lesson, find_lesson, languages_of, lesson_names, open_lesson
from txcls.lessons.measures import measures
from txcls.lessons.reading import NAMING_RULE, SHIPPED, LessonError, is_offered, write_template
from txcls.lessons.worksheet import write_worksheet

app = typer.Typer(no_args_is_help=True, help="Write, check and print lessons.")

_load = cache(Predictor.load)


def _check_steps(lesson: Lesson) -> list[SolvedStep]:
    """Check a lesson, and return its steps with all measurements."""
    return check_lesson(lesson, _load, checkpoints=[summary.name for summary in list_checkpoints().classifiers])


@app.command()
def check(lesson: LessonArgument, language: LessonLanguageOption = "en") -> None:
    """Check a lesson's fields and states, and each answer and claim against the models; print the right answers."""
    opened = open_lesson(lesson, language)
    solved = _check_steps(opened)
    rows = [
        (number, step.step.title, "" if step.step.question is None else step.step.question.kind, step.answer)
        for number, step in enumerate(solved, 1)
    ]
    print_rows(("step", "title", "question", "right answer (measured)"), rows)
    n_questions = sum(step.step.question is not None for step in solved)
    note(f"{opened.source}: {len(opened.steps)} steps, {n_questions} questions; all answers and claims are correct")
    file = Path(opened.source)
    if file.parent != SHIPPED and not is_offered(file):
        note(f"The app will not list it. {NAMING_RULE}")
    elif file.parent != SHIPPED:
        at = f"/?lesson={opened.name}&step=1" + ("" if opened.language == "en" else f"&lang={opened.language}")
        start = f"TXCLS_LESSONS={file.resolve().parent} streamlit run streamlit_app.py"
        note(f"In the app: {start}, then the page Lessons, or {at}")


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as mine.en.yaml.")],
) -> None:
    """Write a template: a lesson of three steps with comments, which passes `lesson check`."""
    if file.suffix not in (".yaml", ".yml"):
        raise LessonError(f"{file}: expected a name that ends in .yaml")
    write_template(file)
    note(f"wrote {file}; edit it, then: python -m txcls lesson check {file}")


@app.command("list")
def list_lessons() -> None:
    """List the shipped lessons, and those in the folder $TXCLS_LESSONS."""
    rows, problems = [], []
    for name in lesson_names():
        readable = {}
        for language in sorted(languages_of(name), key=lambda language: (language != "en", language)):
            try:
                readable[language] = find_lesson(name, language)
            except LessonError as error:
                problems.append(str(error))
        if readable:
            first = next(iter(readable.values()))
            rows.append((name, first.title, f"{first.minutes:g}", len(first.steps), ", ".join(sorted(readable))))
    print_rows(("name", "title", "minutes", "steps", "languages"), rows)
    note(*(f"not listed: {problem}" for problem in problems))


@app.command("measures")
def list_measures() -> None:
    """List the measures for a lesson's answers, facts and claims."""
    print_rows(("measure", "fields", "minimum margin", "description"), measures())
    note(
        "Fields in [brackets] are optional. Every measure also accepts `text` and `checkpoint`; the defaults are the "
        "step's. `check` refuses a question if the right answer exceeds the next one by less than the minimum margin "
        "(percentage points; logits for attributions); `margin: 3` in a measurement sets another margin."
    )


@app.command()
def worksheet(
    lesson: LessonArgument,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page to write  [default: LESSON.LANGUAGE.html]")
    ] = None,
    language: LessonLanguageOption = "en",
) -> None:
    """Write a lesson as a printable page: questions with space for answers, pictures, and the answers at the end."""
    opened = open_lesson(lesson, language)
    _check_steps(opened)
    target = out or Path(f"{opened.name}.{opened.language}.html")
    write_worksheet(opened, _load, target)
    note(f"wrote {target}; open it in a browser and print it; the answers are on separate pages at the end")
