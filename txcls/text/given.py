"""Texts passed from Python: one check for all functions that take texts, so that each refuses the same values.

A string is a sequence of strings, a table iterates over its columns, and a missing value is a float: none of these may
be read as texts by mistake.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from txcls.errors import listed, shown


def given_text(text: object) -> str:
    """One text, checked.

    Raises:
        TypeError: it is anything but a string.
    """
    if isinstance(text, str):
        return str.__str__(text)  # a plain string of a subclass such as numpy's
    raise TypeError(f"got {_described(text)}; wanted one text, a str")


def given_texts(texts: object, *, name: str = "texts") -> list[str]:
    """Texts as a list: of any iterable of strings, such as a list, a tuple, a NumPy array (N,) or a pandas Series.

    Args:
        texts: the argument.
        name: its name in messages.

    Raises:
        TypeError: it is one string, a table, a mapping or a set, or a value in it is no string; the message has its
            row, counted from 0, and in a Series its index label too.
    """
    values = given_values(texts, name=name)
    if all(type(value) is str for value in values):
        return values  # type: ignore[return-value]
    for row, value in enumerate(values):
        if not isinstance(value, str):
            hint = "fill it in or leave the row out" if is_missing(value) else "convert it with str() if it is a text"
            raise TypeError(f"{place(texts, row, name=name)} is {_described(value)}; wanted a str: {hint}")
    return [str.__str__(value) for value in values]


def given_values(values: object, *, name: str) -> list[object]:
    """One value a row as a list; what the values are is not checked.

    Raises:
        TypeError: it is one string, a table, a mapping or a set, has other than one dimension, or is not iterable.
    """
    if isinstance(values, str):
        raise TypeError(f"{name}: got one string; wanted a sequence, for example [{shown(values, limit=40)!r}]")
    if isinstance(values, bytes | bytearray | memoryview | Mapping):
        raise TypeError(f"{name}: got {_described(values)}; wanted a list, with one value for each row")
    if isinstance(values, set | frozenset):
        raise TypeError(f"{name}: got a {type(values).__name__}, which has no order; wanted a list")
    columns = getattr(values, "columns", None)
    if columns is not None:
        names = [str(column) for column in columns]
        example = f"; for example df[{shown(names[0], limit=40)!r}]" if names else ""
        held = f"the columns {listed(names)}" if names else "no columns"
        raise TypeError(f"{name}: got a {type(values).__name__} with {held}; wanted one column{example}")
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        raise TypeError(f"{name}: got an array of shape {tuple(shape)}; wanted one dimension, a value for each row")
    if hasattr(values, "tolist"):  # of an array or a Series: plain Python values
        return list(values.tolist())
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: got {_described(values)}; wanted a list, with one value for each row")
    return list(values)


def place(values: Any, row: int, *, name: str) -> str:
    """A row for a message: its number from 0, and its index label where the values are a Series."""
    label = f" (index {shown(repr(values.index[row]), limit=40)})" if hasattr(values, "iloc") else ""
    return f"{name}: row {row:,}{label}"


def is_missing(value: object) -> bool:
    """Whether a value is None, nan or one of pandas' missing values."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def _described(value: object) -> str:
    return "None" if value is None else f"{shown(value, limit=40)} ({type(value).__name__})"
