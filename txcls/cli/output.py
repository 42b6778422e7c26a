"""Output of the commands: JSON and tables on standard output, notes and progress on standard error."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from txcls.wording import Advice, one_line, shown

_UNPRINTABLE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_OPTIONS = {
    Advice.TEXT_COLUMN: "--text-column",
    Advice.LABEL_COLUMN: "--label-column",
    Advice.MERGE: "train --merge-labels",
    Advice.STRIP_HEADERS: "train --strip-headers",
    Advice.CODE_BOOK: "train --code-book SHEET",
}


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
    """Print each message on one line to standard error."""
    for message in messages:
        print(one_line(with_options(message)), file=sys.stderr)


def with_options(message: str) -> str:
    """The message with the option for each `Advice` in it."""
    for advice, option in _OPTIONS.items():
        message = message.replace(advice, f"{advice} ({option})")
    return message
