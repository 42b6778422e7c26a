"""The package's own code, read from its source files when it is asked for: what is shown is what runs."""

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import txcls.errors
from txcls.errors import TraceError


@dataclass(frozen=True, slots=True)
class Source:
    """Lines of code without their indent: `file` relative to the project's folder, `line` the number of the first."""

    file: str
    line: int
    code: str


@cache
def source_of(thing: ModuleType | type | Callable[..., Any], *, first: str = "", last: str = "") -> Source:
    """The code of a module, class, function or method, or some lines of it.

    Args:
        thing: what to show.
        first, last: show it from the first line that contains `first` to the next that contains `last`; "" for its own
            first and last line.

    Raises:
        TraceError: no line contains `first`, or none from there on contains `last`.
    """
    lines, number = inspect.getsourcelines(thing)
    begin = _find(lines, first, 0, thing) if first else 0
    end = _find(lines, last, begin, thing) if last else len(lines) - 1
    root = Path(txcls.errors.__file__).resolve().parent.parent
    file = Path(inspect.getfile(thing)).resolve().relative_to(root)
    code = textwrap.dedent("".join(lines[begin : end + 1])).rstrip()
    return Source(file.as_posix(), max(number, 1) + begin, code)  # Python counts the lines of a module from 0


def snippet(thing: ModuleType | type | Callable[..., Any], first: str, last: str = "") -> Source:
    """The lines of `thing` from the first that contains `first` to the next that contains `last`; without `last`, one
    line."""
    return source_of(thing, first=first, last=last or first)


def _find(lines: list[str], wanted: str, begin: int, thing: ModuleType | type | Callable[..., Any]) -> int:
    for place in range(begin, len(lines)):
        if wanted in lines[place]:
            return place
    raise TraceError(f"no line of {thing.__name__} after its first {begin} contains {wanted!r}")
