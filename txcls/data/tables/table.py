"""The user's own table: file formats, and finding the text and label columns.

Every problem is a DataError that names the file, the line (or row) and the column.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from txcls.config import DataConfig
from txcls.data.limits import LONGEST_FIELD, MAX_COLUMNS
from txcls.data.tables.parquet import too_long
from txcls.errors import DataError, listed, shown

TEXT_NAMES = (
    *("text", "sentence", "message", "content", "utterance", "comment", "review", "body", "document", "headline"),
    *("title", "description", "question", "query", "input", "tweet"),
)
"""Usual names of a text column, the most likely first, compared without case."""
LABEL_NAMES = (
    *("label", "class", "category", "target", "intent", "sentiment", "topic", "section", "tag", "output", "y"),
    *("labels", "label_text", "class_name", "rating", "stars"),
)
"""Usual names of a label column, the most likely first."""

SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet")
ENDINGS = (*SUFFIXES, *(f"{suffix}.gz" for suffix in SUFFIXES))
_DELIMITERS = ",;\t|"


def is_usual_name(name: str) -> bool:
    """Whether a column of this name usually holds texts or labels."""
    return name.strip().lower() in (*TEXT_NAMES, *LABEL_NAMES)


def refuse_columns(columns: Sequence[str], path: Path) -> None:
    """Raise DataError if two columns have the same name, or there are more than MAX_COLUMNS."""
    if len(columns) > MAX_COLUMNS:
        raise DataError(f"{path}: {len(columns):,} columns, wanted {MAX_COLUMNS:,} at most; is it a table?")
    if repeated := sorted(name for name, n in Counter(columns).items() if n > 1):
        raise DataError(f"{path}: column '{shown(repeated[0], limit=40)}' occurs twice; rename one of them")


def find_text_column(columns: Sequence[str], *, path: Path, text_column: str | None) -> str:
    """The name of the text column: the given one, one with a usual name, or the only one.

    Raises:
        DataError: there is no such column, or none with a usual name.
    """
    found = _find_column(columns, text_column, TEXT_NAMES, path=path, what="text")
    if found is None:
        if len(columns) != 1:
            raise _unclear(columns, path=path, what="text")
        found = columns[0]
    return found


def find_columns(columns: Sequence[str], *, path: Path, config: DataConfig) -> tuple[str, str]:
    """The names of the text and the label column: configured, with usual names, or the other of two columns.

    Raises:
        DataError: a configured column does not exist, or none has a usual name.
    """
    text = _find_column(columns, config.text_column, TEXT_NAMES, path=path, what="text")
    label = _find_column(columns, config.label_column, LABEL_NAMES, path=path, what="label")
    if len(columns) == 2 and text != label:
        text = text or next(column for column in columns if column != label)
        label = label or next(column for column in columns if column != text)
    if text is None:
        raise _unclear(columns, path=path, what="text")
    if label is None:
        raise _unclear(columns, path=path, what="label")
    if text == label:
        raise DataError(f"{path}: column {text!r} cannot be both text and label; name two columns")
    return text, label


def _find_column(
    columns: Sequence[str], asked: str | None, usual: Sequence[str], *, path: Path, what: str
) -> str | None:
    if asked is not None:
        if asked not in columns:
            raise DataError(f"{path}: no column {asked!r} for the {what}; there are {listed(columns)}")
        return asked
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _unclear(columns: Sequence[str], *, path: Path, what: str) -> DataError:
    return DataError(
        f"{path}: which column holds the {what}? There are {listed(columns)}; name it with --{what}-column, or for "
        f"training with --set data.{what}_column=NAME"
    )


def table_suffix(path: Path) -> str:
    """The file's format by its name, as one of the suffixes in lower case.

    Raises:
        DataError: unknown format.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in SUFFIXES:
        raise DataError(
            f"{path}: unknown format; wanted a name that ends in {', '.join(SUFFIXES)} (text formats also .gz)"
        )
    return suffix


def is_json(suffix: str) -> bool:
    """Whether the rows of such a file are JSON objects."""
    return suffix in (".json", ".jsonl", ".ndjson")


def check_text(value: object, where: str, column: str) -> None:
    """Raise DataError if a text column's value is not a string or too long; `where` names file and line."""
    name = f"column '{shown(column, limit=40)}'"
    if isinstance(value, str):
        if len(value) > LONGEST_FIELD:
            raise too_long(len(value), where, column)
    elif value is None or value != value:
        raise DataError(f"{where}: no text in {name}; fill it in or remove the row")
    else:
        raise DataError(
            f"{where}: {name} holds '{shown(value, limit=40)}' ({type(value).__name__}), wanted a text; "
            "name another column"
        )


def delimited_rows(numbered: Iterable[tuple[int, list[str]]], path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of header and rows, checked to have the same number of fields.

    Raises:
        DataError: there is no header, or a row has a different number of fields.
    """
    header: list[str] | None = None
    for line, fields in numbered:
        if header is None:
            header = fields = [name.strip() for name in fields]
            refuse_columns(header, path)
        if len(fields) != len(header):
            raise DataError(
                f"{path}, line {line}: {len(fields)} fields, but the header has {len(header)} ({listed(header)}); "
                "quote fields that hold the delimiter"
            )
        yield line, fields
    if header is None:
        raise DataError(f"{path}: empty; wanted a header line with the columns' names, then rows")


def sniff_delimiter(text: str) -> str:
    """The delimiter for which most of the first rows have as many fields as the header, and more than one."""

    def agreement(delimiter: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            widths = [len(row) for row, _ in zip(reader, range(50), strict=False) if row]
        except csv.Error:
            return 0, 0
        if not widths or widths[0] < 2:
            return 0, 0
        return sum(width == widths[0] for width in widths), widths[0]

    return max(_DELIMITERS, key=agreement)


def json_objects(numbered: Iterable[tuple[int, Any]], path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same pairs, checked to be objects; `where` is the unit of the numbers.

    Raises:
        DataError: a value is not an object.
    """
    for number, value in numbered:
        if not isinstance(value, dict):
            raise DataError(
                f"{path}, {where} {number}: wanted an object with the columns as keys, got '{shown(value, limit=40)}'"
            )
        yield number, value
