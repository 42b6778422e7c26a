"""`txcls export`: a model or a lesson as a page that needs no server."""

from pathlib import Path
from typing import Annotated

import typer

from txcls.cli.shared import LessonArgument, LessonLanguageOption, note
from txcls.lessons import open_lesson
from txcls.web.assemble import LANGUAGES
from txcls.web.export import export_page
from txcls.web.lesson import export_lesson
from txcls.web.playground import export_playground
from txcls.web.playground import playground as playground_page

app = typer.Typer(no_args_is_help=True, help="Export a model or a lesson as a page that needs no server.")

OutOption = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="The folder to write; an older page in it is replaced.")
]
SingleFileOption = Annotated[
    bool, typer.Option("--single-file", help="Write only index.html, which includes the weights and opens from a disk.")
]
PlaygroundOption = Annotated[
    bool,
    typer.Option(
        "--playground",
        help="Also write playground.html, a page on which visitors train a model, and link to it.",
    ),
]
LanguageOption = Annotated[
    str,
    typer.Option(
        "--language",
        metavar="L",
        help=f"Only this language ({', '.join(('en', *LANGUAGES))}); by default all, of which the visitor's is shown.",
    ),
]


@app.command()
def page(
    checkpoints: Annotated[
        list[str],
        typer.Argument(metavar="CHECKPOINT", help="Checkpoint folders, or names under checkpoints/."),
    ],
    out: OutOption,
    single_file: SingleFileOption = False,
    address: Annotated[
        str,
        typer.Option("--address", metavar="URL", help="The page's future URL; links to it will show a preview image."),
    ] = "",
    project: Annotated[str, typer.Option("--project", metavar="URL", help="A page to link to in the footer.")] = "",
    with_playground: PlaygroundOption = False,
    language: LanguageOption = "",
) -> None:
    """Write a page that classifies texts in the visitor's browser: a folder for any static host, or a single file."""
    _print_written(
        export_page(
            checkpoints,
            out,
            single_file=single_file,
            address=address,
            project=project,
            playground=playground_page(language=language) if with_playground else b"",
            language=language,
            on_note=note,
        ),
        single_file=single_file and not with_playground,
    )


@app.command()
def playground(
    out: OutOption,
    encoder: Annotated[
        bool,
        typer.Option(
            "--encoder",
            help="Include the pre-trained encoder (11 MB), from which visitors can train on a table of their own.",
        ),
    ] = False,
    language: LanguageOption = "",
) -> None:
    """Write a page on which visitors train a Transformer in their browser: a single file that needs no server."""
    _print_written(export_playground(out, encoder=encoder, language=language), single_file=True)


@app.command()
def lesson(
    lesson: LessonArgument,
    out: OutOption,
    single_file: SingleFileOption = False,
    language: LessonLanguageOption = "en",
    with_playground: PlaygroundOption = False,
) -> None:
    """Write a lesson as a page that needs no server: the same questions, with the models running in the browser."""
    written = export_lesson(
        open_lesson(lesson, language), out, single_file=single_file, with_playground=with_playground
    )
    _print_written(written, single_file=single_file and not with_playground)


def _print_written(written: Path, *, single_file: bool) -> None:
    """Print which files were written and how to open them."""
    total = sum(file.stat().st_size for file in written.parent.iterdir())
    note(f"wrote {written} ({total / 1e6:.1f} MB{'' if single_file else ' with the other files in this folder'})")
    if not single_file:
        note(f"to open it: python -m http.server --directory {written.parent}; README.md there says how to host it")
