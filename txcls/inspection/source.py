"""The project's own code, read from its source when it is asked for, so that what is shown is what runs."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import txcls.errors
from txcls.errors import TraceError


@dataclass(frozen=True, slots=True)
class Source:
    """Lines of code: `file` as seen from the project's folder, `line` the number of the first, `code` without its
    indent."""

    file: str
    line: int
    code: str


def source_of(thing: type | Callable[..., Any], *, first: str = "", last: str = "") -> Source:
    """The code of a class, function or method, or some lines of it.

    Args:
        thing: what to show.
        first, last: show it from the first line that holds `first` to the next that holds `last`; "" for its own first
            and last line.

    Raises:
        TraceError: no line holds `first`, or none from there on holds `last`.
    """
    lines, number = inspect.getsourcelines(thing)
    begin = _find(lines, first, 0, thing) if first else 0
    end = _find(lines, last, begin, thing) if last else len(lines) - 1
    root = Path(txcls.errors.__file__).resolve().parent.parent
    file = Path(inspect.getfile(thing)).resolve().relative_to(root)
    return Source(file.as_posix(), number + begin, textwrap.dedent("".join(lines[begin : end + 1])).rstrip())


def _find(lines: list[str], wanted: str, begin: int, thing: type | Callable[..., Any]) -> int:
    for place in range(begin, len(lines)):
        if wanted in lines[place]:
            return place
    raise TraceError(f"no line of {thing.__qualname__} after its first {begin} holds {wanted!r}")
