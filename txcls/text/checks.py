"""Checks of texts passed from Python, shared by all functions that accept texts."""

from collections.abc import Iterable, Mapping
from typing import Any

from txcls.errors import sanitize


def check_text(text: object) -> str:
    """Check one text, and return it as a plain string.

    Raises:
        TypeError: it is not a string.
    """
    if isinstance(text, str):
        return str.__str__(text)  # converts a subclass, such as NumPy's
    raise TypeError(f"got {_describe(text)}; expected one text, a str")


def check_texts(texts: object, *, name: str = "texts") -> list[str]:
    """Check an iterable of strings (a list, a NumPy array (N,), a pandas Series, …), and return it as a list.

    Raises:
        TypeError: it is a single string, a table, a mapping or a set, or one of its values is not a string; the message
            gives the row number, from 0, and for a Series also the index label.
    """
    values = check_column(texts, name=name)
    for row, value in enumerate(values):
        if not isinstance(value, str):
            hint = "fill it in or leave the row out" if is_missing(value) else "convert it with str() if it is a text"
            raise TypeError(f"{row_name(texts, row, name=name)} is {_describe(value)}; expected a str: {hint}")
    return [str.__str__(value) for value in values]


def check_column(values: object, *, name: str) -> list[object]:
    """Check that there is one value per row, and return the values as a list; the values themselves are not checked.

    Raises:
        TypeError: it is a single string, a table, a mapping or a set, or is not one-dimensional or not iterable.
    """
    is_column = (
        isinstance(values, Iterable)
        and not isinstance(values, str | bytes | bytearray | memoryview | Mapping | set | frozenset)
        and not hasattr(values, "columns")  # a DataFrame, which iterates over its column names
        and len(getattr(values, "shape", (0,))) == 1
    )
    if not is_column:
        raise TypeError(f"{name}: got {_describe(values)}; expected one value for each row, as a list or df['column']")
    return values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload, no-any-return]


def row_name(values: Any, row: int, *, name: str) -> str:
    """A row's name in messages: its number, from 0, and its index label if the values are a Series."""
    label = f" (index {sanitize(repr(values.index[row]), limit=40)})" if hasattr(values, "iloc") else ""
    return f"{name}: row {row:,}{label}"


def is_missing(value: object) -> bool:
    """Whether a value is None, NaN or another missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def _describe(value: object) -> str:
    return "None" if value is None else f"{sanitize(value, limit=40)} ({type(value).__name__})"
