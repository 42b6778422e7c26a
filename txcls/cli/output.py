"""Output of the commands: JSON and tables on standard output, notes and progress on standard error."""

import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from txcls.wording import Advice, one_line, shown

_UNPRINTABLE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_REMEDIES: dict[str, dict[str, str | bool]] = {
    Advice.TEXT_COLUMN: {"text-column": "COLUMN"},
    Advice.LABEL_COLUMN: {"label-column": "COLUMN"},
    Advice.MERGE: {"merge-labels": True},
    Advice.STRIP_HEADERS: {"strip-headers": True},
    Advice.CODE_BOOK: {"code-book": "SHEET"},
    Advice.DATA: {"data": "FILE"},
    Advice.OUTPUT: {"output": "scored.csv"},
    Advice.RESUME: {"resume": True},
}
"""The options that follow each advice; a quoted name after the advice replaces the value."""
_ONLY_TRAIN = ("merge-labels", "strip-headers", "code-book")
_COMBINED = (Advice.MERGE, Advice.STRIP_HEADERS, Advice.CODE_BOOK)
"""Advice that one command follows together: the checkpoint of each further command would replace the one before."""


def print_json(value: dict[str, Any]) -> None:
    """Print a JSON object on one line, with terminal control characters as JSON escapes."""
    text = json.dumps(value, ensure_ascii=False)
    print(_UNPRINTABLE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def console(*, error: bool = False) -> Console:
    """The console for tables or, with `error`, for progress bars."""
    return Console(stderr=error)


def print_rows(head: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", limit: int = 200) -> None:
    """Print a table to standard output, unless it is empty; cells are cut to `limit` and never read as markup."""
    table = Table(*head, title=Text(title) if title else None)
    for row in rows:
        table.add_row(*(Text(shown(cell, limit=limit)) for cell in row))
    if table.row_count:
        console().print(table)


def rows_progress() -> Progress:
    """A progress bar on standard error that shows the number of rows done and the remaining time."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console(error=True), speed_estimate_period=120, transient=True)


def note(*messages: str) -> None:
    """Print each message on one line to standard error, and below it the command that follows its advice."""
    for message, line in with_remedies(messages):
        print(one_line(message), file=sys.stderr)
        if line is not None:
            print(one_line(line), file=sys.stderr)


def with_remedies(messages: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each message with its `remedy`; the last of those with combined advice has the remedy of them all."""
    combined = [n for n, message in enumerate(messages) if any(advice in message for advice in _COMBINED)]
    for n, message in enumerate(messages):
        if n in combined:
            yield message, remedy(*(messages[other] for other in combined)) if n == combined[-1] else None
        else:
            yield message, remedy(message)


def remedy(*messages: str) -> str | None:
    """The line with the command that follows the advice in the messages; None if there is no advice.

    After a note, unlike an error, training goes on and saves a checkpoint, which the command has to replace. Another
    column could be a worse choice, so then only its option is named.
    """
    options: dict[str, str | bool] = {}
    for message in messages:
        for advice, values in _REMEDIES.items():
            if advice in message:
                named = re.search(re.escape(advice) + " '([^']+)'", message)
                options |= dict.fromkeys(values, named[1]) if named else values
    if options and sys.argv[1:2] == ["train"] and not messages[0].startswith("error: "):
        if columns := [f"--{name} COLUMN" for name in options if name.endswith("-column")]:
            return f"→ {' '.join(columns)}"
        options |= {"resume": False, "overwrite": True}
    return f"→ {command(**options)}" if options else None


def command(given: Iterable[str] | None = None, /, **options: object) -> str:
    """The command line, by default the present one, with these options instead; those None or False are left out.

    `train` takes the place of other commands that do not have an option.
    """
    words = list(sys.argv[1:] if given is None else given)
    names = {name.replace("_", "-"): value for name, value in options.items()}
    if any(name in _ONLY_TRAIN for name in names) and words[:1] != ["train"]:
        words = ["train", *(words[2:] if words[:2] == ["data", "show"] else ["FILE"])]
    for name, value in names.items():
        while (at := next((i for i, word in enumerate(words) if word.split("=")[0] == f"--{name}"), None)) is not None:
            del words[at : at + (1 if isinstance(value, bool) or "=" in words[at] else 2)]
        words += [f"--{name}"] if value is True else [] if value in (None, False) else [f"--{name}", str(value)]
    return f"python -m {shlex.join(['txcls', *words])}"
