"""Arguments, options and output of the commands: results on standard output, notes and progress on standard error."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from txcls.errors import Note, one_line, sanitize

_UNPRINTABLE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def print_json(value: dict[str, Any]) -> None:
    """Print a JSON object on one line, with terminal control characters as JSON escapes."""
    text = json.dumps(value, ensure_ascii=False)
    print(_UNPRINTABLE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def console(*, error: bool = False) -> Console:
    """The console for tables or, with `error`, for progress bars."""
    return Console(stderr=error)


def print_rows(head: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", limit: int = 200) -> None:
    """Print a table to standard output, unless it is empty; cells are cut to `limit` and never read as markup."""
    table = Table(*head, title=Text(title) if title else None, box=None, title_justify="left")
    for row in rows:
        table.add_row(*(Text(sanitize(cell, limit=limit)) for cell in row))
    if table.row_count:
        console().print(table)


def rows_progress() -> Progress:
    """A progress bar on standard error that shows the number of rows done and the remaining time."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    err = console(error=True)
    return Progress(*columns, console=err, speed_estimate_period=120, transient=True, disable=not err.is_terminal)


def note(*messages: str, brief: bool = False) -> None:
    """Print each message on standard error in the form of `as_printed`; with torchrun, only in the first process."""
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ["RANK"] != "0":
        return
    for line in filter(None, (as_printed(message, brief=brief) for message in messages)):
        print(line, file=sys.stderr)


def as_printed(message: str, *, brief: bool = False) -> str:
    """The message on one line, with the options that act on it; if `brief`, its short form, or "" for a detail."""
    if not isinstance(message, Note):
        return one_line(message)
    if brief and message.code == "detail":
        return ""
    options = (
        f"(--{name.replace('_', '-')}{f' {shlex.quote(value)}' if isinstance(value, str) else ''})"
        for name, value in message.options.items()
    )
    return one_line(" ".join([message.brief if brief else message, *options]))


def command(given: Iterable[str] | None = None, /, **options: object) -> str:
    """The command line (by default the present one) with these options; options that are None or False are left out."""
    words = list(sys.argv[1:] if given is None else given)
    for name, value in options.items():
        name = name.replace("_", "-")
        while (at := next((i for i, word in enumerate(words) if word.split("=")[0] == f"--{name}"), None)) is not None:
            del words[at : at + (1 if isinstance(value, bool) or "=" in words[at] else 2)]
        words += [f"--{name}"] if value is True else [] if value in (None, False) else [f"--{name}", str(value)]
    return f"python -m {shlex.join(['txcls', *words])}"


CheckpointArgument = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint folder, or a name under checkpoints/.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="PATH", help="Your own table, or the data in their published format.")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="D", help="cpu, cuda, …  [default: CUDA if available]")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; can be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, and nothing else.")]
WriteOption = Annotated[
    bool, typer.Option("--write", help="Also save the results in the checkpoint's metrics and card.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Print every table and note.")]
ModelOption = Annotated[
    Literal["transformer", "linear"] | None,
    typer.Option("--model", help="The Transformer, or the linear model beside it  [default: as the verdict says]"),
]
TextColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        metavar="C",
        help="The file's text column; repeat to join several, such as subject and body  [default: guessed]",
    ),
]
SheetOption = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="S",
        help="The workbook's sheet  [default: the one trained on, or else the one with the most rows]",
    ),
]
LabelColumnOption = Annotated[
    str | None, typer.Option("--label-column", metavar="C", help="The file's label column  [default: guessed]")
]
LessonArgument = Annotated[
    str, typer.Argument(metavar="LESSON", help="A lesson's file, or the name of a shipped lesson.")
]
LessonLanguageOption = Annotated[
    str, typer.Option("--language", metavar="L", help="Language of a shipped lesson: en, de, …")
]


def join_columns(names: Sequence[str] | None) -> str | None:
    """The columns given with --text-column as one name, which `text_columns` splits."""
    from txcls.data.columns import JOINER  # imports libraries that --help does not need

    return JOINER.join(names) if names else None
