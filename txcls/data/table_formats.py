"""Read the rows of a table file: delimited text, fastText's lines, JSON, Parquet or a workbook."""

import csv
import io
import itertools
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from txcls.data.files import MIXED, UNREADABLE, encoding_of, json_lines, lines_not_utf8, open_text, parse_json
from txcls.errors import DataError, Note, list_names, quote, reason_of

SHEETS = (".xlsx", ".xlsm")
JSON = (".json", ".jsonl", ".ndjson")
_DELIMITERS = ",;\t|"
_BEGINNING = 100_000
"""Number of characters of a text file from which its format is guessed."""
_SEPARATOR_LINE = re.compile(r'"?sep=([,;|:^~\t])"?[ \t]*(?:\r\n|\n|\r)', re.IGNORECASE)
"""A first line that tells Excel the delimiter; Excel does not count it as a row."""
_LABEL_PREFIX = "__label__"
MIN_ALIKE = 0.5
"""Minimum share of rows with the same number of fields if the first row has only one, or in a .txt file."""
_DAMAGED = (
    *(*UNREADABLE, BadZipFile, SyntaxError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError),
    *(AssertionError, RuntimeError),
)
"""Errors that libraries raise for damaged files."""
_ENCODINGS = {"cp1252": "Windows-1252", "utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
csv.field_size_limit(sys.maxsize)

Numbered = Iterator[tuple[int, Any]]


@dataclass
class Source:
    """An opened file.

    Attributes:
        rows: a function that yields (number, cells) or, from JSON and Parquet, (number, values by column); for Parquet
            it takes the columns to read.
        are_cells: whether rows are lists of cells, the column names still among them.
        unit: what the numbers count: "row", "line" or "item".
        notes: sentences on how the file was read.
        sheet: the sheet of a workbook that is read.
        uncalculated: the (row, column), counted from 1, of each formula in this sheet that has no value.
    """

    rows: Callable[[Sequence[str] | None], Numbered]
    are_cells: bool
    unit: str = "row"
    notes: list[str] = field(default_factory=list)
    encoding: str = "utf-8"
    delimiter: str = ""
    n_rows: int | None = None
    sheet: str | None = None
    uncalculated: frozenset[tuple[int, int]] = frozenset()


def open_source(path: Path, suffix: str, *, sheet: str | None, usual_sheet: str | None) -> Source:
    """Open a file by its suffix.

    Raises:
        DataError: it is damaged, empty, or lacks the sheet.
    """
    if suffix == ".parquet":
        return _parquet(path)
    if suffix in SHEETS:
        return _workbook(path, sheet, usual_sheet)
    encoding = encoding_of(path)
    source = _json(path, suffix, encoding) if suffix in JSON else _delimited(path, suffix, encoding)
    source.encoding = encoding
    if encoding == MIXED:
        n_utf8, strange = lines_not_utf8(path)
        lines = f"{len(strange):,} of {n_utf8 + len(strange):,} lines with accents or signs are not UTF-8"
        source.notes.append(f"{lines} (the first is line {strange[0]:,}); they were read as Windows-1252.")
    elif encoding in _ENCODINGS:
        kind = _ENCODINGS[encoding]
        source.notes.append(Note(f"The file is not UTF-8; it was read as {kind}.", brief=f"Read as {kind}."))
    return source


# Delimited text


def _delimited(path: Path, suffix: str, encoding: str) -> Source:
    with open_text(path, encoding=encoding) as text:
        beginning = text.read(_BEGINNING)
    if "\x00" in beginning:
        raise DataError(f"{path}: contains NUL bytes; is it a text file? Save it as CSV (UTF-8)")
    if beginning.lstrip().startswith(_LABEL_PREFIX):
        return Source(lambda _: _fasttext_rows(path, encoding), are_cells=True, unit="line")
    if line := _SEPARATOR_LINE.match(beginning):
        delimiter, start = line[1], line.end()
    else:
        delimiter, alike = _sniff(beginning, "\t" if suffix in (".tsv", ".tab") else _DELIMITERS)
        start = 0
        if suffix == ".txt" and alike < MIN_ALIKE:
            raise DataError(
                f"{path}: a text file without columns; expected columns separated by tabs, as in Excel's Unicode text, "
                f"or lines such as `{_LABEL_PREFIX}class text`"
            )
    quoted, notes = True, []
    try:
        for _ in _csv_rows(path, encoding, start, delimiter, strict=True):
            pass
    except _QuoteError as error:
        quoted = delimiter != "\t"  # else quotes are ordinary characters, except those around a whole field
        if quoted and error.is_open:
            raise
        if quoted:
            notes = [f"Check the quotes from line {error.line:,} on: one is neither doubled nor around a whole field."]
    rows = partial(_csv_rows, path, encoding, start, delimiter, quoted=quoted)
    return Source(lambda _: rows(), are_cells=True, notes=notes, delimiter=delimiter)


class _QuoteError(DataError):
    """A row that begins on `line` has a stray quote or, if `is_open`, the file ends inside one of its quoted fields."""

    def __init__(self, path: Path, line: int, problem: str) -> None:
        self.line, self.is_open = line, "end of data" in problem
        what = "the file ends inside a quoted field of this row" if self.is_open else problem
        remedy = "add the closing quote, or quote fields that contain quotes"
        super().__init__(f"{path}, line {line:,}: {what}; {remedy}")


def _sniff(text: str, delimiters: str) -> tuple[str, float]:
    """The delimiter that gives the most of the first 50 rows the same number of fields (at least two), and the share of
    these rows.

    The first row must have several fields or, below a title, MIN_ALIKE of the rows the same number. Otherwise there is
    only one column, and the delimiter that occurs in the fewest rows is used.
    """

    def score(delimiter: str) -> tuple[bool, bool, int, int, float]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for row in itertools.islice(reader, 50) if row]
        widths = [len(row) for row in rows]
        n, width = max(((widths.count(width), width) for width in set(widths) if width > 1), default=(0, 0))
        if n and (widths[0] > 1 or n >= MIN_ALIKE * len(widths)):
            # Fields with a quote too many may be cut from a quoted text, whose lines then count as rows.
            is_likely = widths[0] > 1 or not any(field.count('"') % 2 for row in rows for field in row)
            return True, is_likely, n, width, n / len(widths)
        return False, False, widths.count(1), 1, 0.0

    best = max(delimiters, key=score)
    return best, score(best)[-1]


def _csv_rows(
    path: Path, encoding: str, start: int, delimiter: str, *, quoted: bool = True, strict: bool = False
) -> Iterator[tuple[int, list[Any]]]:
    """Yield (number, fields); numbers count empty rows but not lines within a field."""
    quotes: Any = {} if quoted else {"quotechar": None, "quoting": csv.QUOTE_NONE}
    with open_text(path, encoding=encoding) as text:
        text.read(start)
        reader = csv.reader(text, delimiter=delimiter, strict=strict, **quotes)
        first_line = 1
        try:
            for number, fields in enumerate(reader, start=1):
                yield number, fields if quoted else [*map(_unquoted, fields)]
                first_line = reader.line_num + 1
        except csv.Error as error:
            raise _QuoteError(path, first_line, str(error)) from None


def _unquoted(value: str) -> str:
    """A field without the quotes around it, if all quotes inside it are doubled."""
    inner = value[1:-1]
    is_quoted = len(value) > 1 and value[0] == value[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else value


def _fasttext_rows(path: Path, encoding: str) -> Iterator[tuple[int, list[Any]]]:
    yield 0, ["label", "text"]
    with open_text(path, encoding=encoding) as text:
        for number, line in enumerate(text, start=1):
            words = line.split()
            labels = list(itertools.takewhile(lambda word: word.startswith(_LABEL_PREFIX), words))
            rest = line.split(maxsplit=len(labels))[len(labels) :]
            names = ";".join(label.removeprefix(_LABEL_PREFIX) for label in labels)
            yield number, [names, "".join(rest).rstrip()] if words else []


# JSON and Parquet


def _json(path: Path, suffix: str, encoding: str) -> Source:
    """Open JSON Lines, or a whole JSON text: a list of objects, or any form that pandas writes."""
    with open_text(path, encoding=encoding) as text:
        is_array = text.read(_BEGINNING).lstrip().startswith("[")
    if is_array or suffix == ".json":
        with open_text(path, encoding=encoding) as text:
            content = text.read()
        try:
            value = json.loads(content)
        except json.JSONDecodeError as error:
            if is_array or error.msg != "Extra data":  # JSON Lines in a .json file
                parse_json(content, str(path))
        except (RecursionError, ValueError):
            parse_json(content, str(path))
        else:
            rows = _objects(value)
            return Source(lambda _: enumerate(rows, start=1), are_cells=False, unit="item")

    def lines(_: Sequence[str] | None) -> Numbered:
        with open_text(path, newline="\n", encoding=encoding) as text:
            yield from json_lines(text, path)

    return Source(lines, are_cells=False, unit="line")


def _objects(value: Any) -> Sequence[Any]:
    """The rows of a JSON value: its items, or those of the forms `split`, `table`, `list`, `index` and `columns` of
    pandas, or of the only list of objects in it."""
    if not isinstance(value, dict):
        return value if isinstance(value, list) else [value]
    inner = [*value.values()]
    if isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        names = [*map(str, value["columns"])]
        return [dict(zip(names, row, strict=False)) if isinstance(row, list) else row for row in value["data"]]
    lists = {name: part for name, part in value.items() if isinstance(part, list)}
    of_objects = [part for part in lists.values() if part and all(isinstance(item, dict) for item in part)]
    if len(of_objects) == 1:
        return of_objects[0]
    if lists and len(lists) == len(value) and len(set(map(len, inner))) == 1:
        return [dict(zip(lists, row, strict=True)) for row in zip(*inner, strict=True)]
    if len(inner) > 1 and all(isinstance(part, dict) and part.keys() == inner[0].keys() for part in inner):
        if len(inner[0]) <= len(inner):
            return inner
        return [{name: part[key] for name, part in value.items()} for key in inner[0]]
    return [value]


def _parquet(path: Path) -> Source:
    import pyarrow as pa
    import pyarrow.parquet as pq

    damaged = (*_DAMAGED, pa.ArrowException)
    try:
        file = pq.ParquetFile(path)
        metadata = file.schema_arrow.metadata or {}
        features = json.loads(metadata.get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        classes = {
            name: kind["names"]
            for name, kind in features.items()
            if kind.get("_type") == "ClassLabel"
            if "names" in kind
        }
    except damaged as error:
        raise DataError(f"{path}: not a readable Parquet file ({reason_of(error):.200})") from None

    def rows(columns: Sequence[str] | None) -> Numbered:
        number = 0
        try:
            for batch in pq.ParquetFile(path).iter_batches(batch_size=1024, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    for name, names in classes.items():
                        if isinstance(label := row.get(name), int) and 0 <= label < len(names):
                            row[name] = names[label]
                    yield number, row
        except damaged as error:
            raise DataError(f"{path}: damaged after row {number} ({reason_of(error):.200}); create it again") from None

    notes = [f"Class names of column {list_names(classes)} are those stored in the file."] if classes else []
    return Source(rows, are_cells=False, notes=notes, n_rows=file.metadata.num_rows)


# Workbooks


def _workbook(path: Path, sheet: str | None, usual_sheet: str | None) -> Source:
    """Open `sheet` if given, otherwise `usual_sheet` if it exists, otherwise the visible sheet with the most rows."""
    try:
        with warnings.catch_warnings(action="ignore"):  # about styles and extensions
            cells, formulas, hidden = _sheets(path)
    except _DAMAGED as error:
        raise DataError(
            f"{path}: not a readable Excel file ({reason_of(error):.200}); save it as .xlsx or CSV"
        ) from None
    sizes = {name: sum(any(value is not None for value in row) for row in rows) for name, rows in cells.items()}
    names = sorted((name for name in cells if sizes[name]), key=lambda name: (name in hidden, -sizes[name]))
    if not names:
        raise DataError(f"{path}: all sheets are empty")
    if sheet is not None and sheet not in names:
        raise DataError(f"{path}: no sheet {sheet!r:.60}; the sheets are {list_names(names)}")
    chosen = sheet or (usual_sheet if usual_sheet in names else names[0])
    notes: list[str] = []
    if len(names) > 1:
        others = [f"{quote(name)}{' (hidden)' if name in hidden else ''}" for name in names if name != chosen]
        notes = [f"Sheet: {quote(chosen)}, not {', '.join(others[:3])}{', …' * (len(others) > 3)}."]
    rows = cells[str(chosen)]
    empty = [(row, column) for row, column in formulas.get(str(chosen), ()) if rows[row - 1][column - 1] is None]
    if empty:
        from openpyxl.utils import get_column_letter

        first = f"cell {get_column_letter(empty[0][1])}{empty[0][0]}"
        notes.append(f"Formulas that were never calculated: {len(empty):,} ({'first: ' * (len(empty) > 1)}{first}).")
    found = frozenset(empty)
    return Source(lambda _: enumerate(rows, 1), are_cells=True, notes=notes, sheet=chosen, uncalculated=found)


def _sheets(path: Path) -> tuple[dict[str, list[list[object]]], dict[str, list[tuple[int, int]]], set[str]]:
    """The cells of each sheet (the last values of formulas), where its formulas are, and the names of hidden sheets.

    A cell merged over several rows counts in each of them: a label beside a block of rows is the label of all.
    """
    import openpyxl

    book = openpyxl.load_workbook(path, keep_links=False)
    formulas = {
        sheet.title: [(cell.row, cell.column) for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
        for sheet in book.worksheets
    }
    if any(formulas.values()):
        book = openpyxl.load_workbook(path, data_only=True, keep_links=False)
    cells = {}
    for sheet in book.worksheets:
        rows = [[None if cell.data_type == "e" else _value(cell.value) for cell in row] for row in sheet.iter_rows()]
        for block in sheet.merged_cells.ranges:
            for row in range(block.min_row, min(block.max_row, len(rows))):
                rows[row][block.min_col - 1] = rows[block.min_row - 1][block.min_col - 1]
        cells[sheet.title] = rows
    return cells, formulas, {sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"}


class DateText(str):
    """A date as text that keeps the cell's value, so that it can be written to a workbook as a date."""

    value: date

    def __new__(cls, value: date) -> "DateText":
        """The text of a date, with the time unless it is midnight."""
        text = super().__new__(cls, str(value).removesuffix(" 00:00:00"))
        text.value = value
        return text


def _value(cell: object) -> object:
    """The value of a cell: numbers and booleans unchanged, dates as `DateText`, and None for an empty cell."""
    from openpyxl.utils.escape import unescape

    if cell is None or isinstance(cell, bool | int | float):
        return cell
    if isinstance(cell, datetime | date):
        return DateText(cell)
    text = str(cell)
    if "_x" in text:  # escaped control characters, such as _x000D_ for a carriage return
        text = unescape(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.strip() else None
