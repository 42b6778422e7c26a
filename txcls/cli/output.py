"""What commands print: JSON and tables on standard output, notes and progress on standard error."""

import json
import os
import re
import sys
from typing import Any

from rich.console import Console

from txcls.wording import one_line

_UNPRINTABLE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def print_json(value: dict[str, Any]) -> None:
    """One JSON object as one line; characters that a terminal would obey are written as JSON escapes."""
    text = json.dumps(value, ensure_ascii=False)
    print(_UNPRINTABLE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def console(*, error: bool = False, quiet: bool = False) -> Console:
    """Where tables (and, with `error`, progress bars) are drawn."""
    return Console(stderr=error, quiet=quiet)


def print_table(table: Any, value: dict[str, Any], *, as_json: bool) -> None:
    """Either the table or the JSON object with the same contents."""
    if as_json:
        print_json(value)
    else:
        console().print(table)


def note(message: str) -> None:
    """One line for a person, on standard error."""
    print(one_line(message), file=sys.stderr)


def note_once(message: str) -> None:
    """The same, by the first process of a torchrun run only."""
    if not process_number():
        note(message)


def process_number() -> int:
    """This process's rank in a torchrun run; 0 without torchrun."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0
