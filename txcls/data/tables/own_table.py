"""A user's own table, read whole and forgivingly: every column and row that can be read, and a sentence on the rest.

Training from a preset reads tables strictly (`labelled`). Here rows and columns that cannot be used are
left out and counted, since a person's spreadsheet is never quite clean.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from txcls.data.limits import MAX_COLUMNS, MAX_ROWS
from txcls.data.tables.excel import excel_rows
from txcls.data.tables.lines import csv_rows, json_items, json_lines, open_text, read_text, refuse_unreachable
from txcls.data.tables.parquet import Row, parquet_rows
from txcls.data.tables.table import SUFFIXES, is_json, is_usual_name, json_objects, refuse_columns, sniff_delimiter
from txcls.errors import DataError, listed

EXCEL = (".xlsx", ".xlsm")
OWN_SUFFIXES = (*SUFFIXES, *EXCEL)
"""How a file of one's own may end; text formats also with `.gz`."""
ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")
"""Encodings of text files in the order they are tried; the last fits every file."""
MOST_RAGGED = 0.1
"""Share of rows with more fields than the header above which the file is refused: the delimiter must be wrong."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """N rows of named columns.

    Attributes:
        name: the file's name, never its path.
        columns: values (N,) of each column, in the file's order: strings, numbers, truth values or None.
        places: line, row or item number of each row in the file, for people (N,).
        unit: what these numbers count: "line", "row" or "item".
        notes: sentences on what was done while reading.
    """

    name: str
    columns: Mapping[str, Sequence[object]]
    places: Sequence[int]
    unit: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.places)


def read_own_table(path: Path, *, name: str | None = None) -> OwnTable:
    """Read a CSV, TSV, JSON Lines, JSON, Parquet or Excel file.

    Text files that are not UTF-8 are read as Windows-1252 or Latin-1. A first line that is a row itself, not column
    names, is read as one. Columns without a name are dropped, rows with too many fields left out; `notes` says so.

    Args:
        path: the file.
        name: what to call it in notes, where `path` is a temporary file; None for its own name.

    Raises:
        DataError: no such file, unknown format, damaged, empty, too large, or one row in ten has too many fields.
    """
    shown_name = name or path.name
    suffix = own_suffix(path)
    refuse_unreachable(path)
    if not path.is_file():
        raise DataError(f"{path}: {'a folder, wanted a file' if path.is_dir() else 'no such file'}")
    if suffix == ".parquet":
        return _of_objects(shown_name, parquet_rows(path), "row", path)
    if is_json(suffix):
        return _of_json(shown_name, path)
    if suffix in EXCEL:
        cells, notes = excel_rows(path)
        return _of_cells(shown_name, cells, "row", path, notes)
    text, notes = _decoded(path)
    delimiter = "\t" if suffix in (".tsv", ".tab") else sniff_delimiter(text[:100_000])
    return _of_cells(shown_name, _delimited(text, path, delimiter), "line", path, notes)


def own_suffix(path: Path) -> str:
    """The file's format by its name, as one of OWN_SUFFIXES in lower case.

    Raises:
        DataError: unknown format; an old Excel file is told what to be saved as.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in OWN_SUFFIXES:
        return suffix
    if suffix in (".xls", ".ods", ".numbers", ".xlsb"):
        raise DataError(f"{path.name}: a spreadsheet in a format that is not read; save it as .xlsx or as CSV (UTF-8)")
    raise DataError(
        f"{path.name}: unknown format; wanted a name that ends in {', '.join(OWN_SUFFIXES)} (text formats also .gz)"
    )


def is_own_table(name: str) -> bool:
    """Whether a name ends as those of table files do."""
    return Path(name.lower().removesuffix(".gz")).suffix in OWN_SUFFIXES


def _decoded(path: Path) -> tuple[str, list[str]]:
    """The text of a file, and a note if it is not UTF-8."""
    text = read_text(path, encodings=ENCODINGS)
    if "\x00" in text[:100_000]:
        raise DataError(f"{path.name}: holds NUL bytes; is it a text file? Save it as CSV (UTF-8)")
    try:
        read_text(path)
    except DataError:
        return text, ["The file is not UTF-8; it was read as Windows-1252 (Latin-1)."]
    return text, []


def _delimited(text: str, path: Path, delimiter: str) -> list[tuple[int, list[object]]]:
    """(line, fields) of a delimited text; in TSV quotes may be ordinary characters."""
    try:
        return [(line, [*fields]) for line, fields in csv_rows(text, path, delimiter=delimiter)]
    except DataError:
        if delimiter != "\t":
            raise
    return [(line, [*fields]) for line, fields in csv_rows(text, path, delimiter=delimiter, quoted=False)]


def _of_json(name: str, path: Path) -> OwnTable:
    with open_text(path) as text:
        is_array = text.read(100_000).lstrip().startswith("[")
    with open_text(path, newline="" if is_array else "\n") as text:
        if is_array:
            return _of_objects(name, json_objects(json_items(text, path), path, "item"), "item", path)
        return _of_objects(name, json_objects(json_lines(text, path), path, "line"), "line", path)


def _of_objects(name: str, numbered: Iterable[tuple[int, Row]], unit: str, path: Path) -> OwnTable:
    """A table of rows that name their columns; a column may be missing in some."""
    columns: dict[str, list[object]] = {}
    places: list[int] = []
    for place, row in numbered:
        _refuse_more(len(places), path)
        for key in row:
            if key not in columns:
                columns[key] = [None] * len(places)
        if len(columns) > MAX_COLUMNS:
            refuse_columns(list(columns), path)
        for key, values in columns.items():
            values.append(row.get(key))
        places.append(place)
    if not places:
        raise DataError(f"{path.name}: no rows")
    return OwnTable(name, columns, places, unit)


def _of_cells(
    name: str, numbered: Iterable[tuple[int, list[object]]], unit: str, path: Path, notes: Sequence[str]
) -> OwnTable:
    """A table of rows of cells, the first with the columns' names unless it is a row itself."""
    rows = [(place, cells) for place, cells in itertools.islice(numbered, MAX_ROWS + 2) if any(map(_filled, cells))]
    if not rows:
        raise DataError(f"{path.name}: empty; wanted a line with the columns' names, then rows")
    _refuse_more(len(rows) - 2, path)
    said = list(notes)
    header = [_heading(cell) for cell in rows[0][1]]
    if unit == "row":  # a spreadsheet has no delimiter: cells beside the headings are columns without a name
        header += [""] * (_widest(rows) - len(header))
    if _is_a_row(header, rows[1:]):
        said.append(
            "The first line looks like a row, not like column names: it was read as a row, and columns are numbered."
        )
        header = [f"column {number}" for number in range(1, len(header) + 1)]
    else:
        rows = rows[1:]
    if not rows:
        raise DataError(f"{path.name}: no rows below the column names {listed(header)}")
    header = _distinct(header, said)
    rows = _without_ragged(rows, len(header), path, said)
    columns = {
        key: [cells[index] if index < len(cells) and _filled(cells[index]) else None for _, cells in rows]
        for index, key in enumerate(header)
        if key
    }
    if nameless := [index for index, key in enumerate(header) if not key]:
        touched = sum(any(index < len(cells) and _filled(cells[index]) for index in nameless) for _, cells in rows)
        said.append(
            f"{len(nameless)} column{'s' * (len(nameless) > 1)} without a name "
            f"{'were' if len(nameless) > 1 else 'was'} dropped"
            + (f"; {touched:,} rows have something there." if touched else ", empty in all rows.")
        )
    refuse_columns(list(columns), path)
    return OwnTable(name, columns, [place for place, _ in rows], unit, tuple(said))


def _widest(rows: Sequence[tuple[int, list[object]]]) -> int:
    """Columns up to the last that has something in it."""
    return max((at for _, cells in rows for at, cell in enumerate(cells, start=1) if _filled(cell)), default=0)


def _filled(cell: object) -> bool:
    return cell is not None and cell == cell and not (isinstance(cell, str) and not cell.strip())


def _heading(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _distinct(header: Sequence[str], said: list[str]) -> list[str]:
    """The columns' names, repeated ones numbered."""
    seen: dict[str, int] = {}
    names = []
    for key in header:
        seen[key] = seen.get(key, 0) + 1
        names.append(key if not key or seen[key] == 1 else f"{key} ({seen[key]})")
    if repeated := [key for key, n in seen.items() if key and n > 1]:
        said.append(f"Several columns are called {listed(repeated)}; they were numbered.")
    return names


def _is_a_row(header: Sequence[str], rows: Sequence[tuple[int, list[object]]]) -> bool:
    """Whether the first line is a row itself: one of its cells recurs below as a label does, or is a whole sentence."""
    if any(is_usual_name(key) for key in header) or not any(header):
        return False
    if any(len(key.split()) >= 6 for key in header):
        return True
    for index, key in enumerate(header):
        below = [str(cells[index]).strip() for _, cells in rows[:5000] if index < len(cells) and _filled(cells[index])]
        if key and below.count(key) >= 2 and len(set(below)) <= max(2, len(below) // 2):
            return True
    return False


def _without_ragged(
    rows: list[tuple[int, list[object]]], width: int, path: Path, said: list[str]
) -> list[tuple[int, list[object]]]:
    """The rows with at most as many filled fields as there are columns; a few others are left out and counted."""
    ragged = [place for place, cells in rows if any(map(_filled, cells[width:]))]
    if not ragged:
        return rows
    if len(ragged) > MOST_RAGGED * len(rows):
        raise DataError(
            f"{path.name}, line {ragged[0]} and {len(ragged) - 1:,} more: more fields than the {width} columns of the "
            "first line; quote fields that hold the delimiter"
        )
    said.append(
        f"{len(ragged):,} row{'s' * (len(ragged) > 1)} with more fields than columns "
        f"{'were' if len(ragged) > 1 else 'was'} left out (the first in line {ragged[0]:,}); quote fields that hold "
        "the delimiter."
    )
    wrong = set(ragged)
    return [one for one in rows if one[0] not in wrong]


def _refuse_more(rows: int, path: Path) -> None:
    if rows >= MAX_ROWS:
        raise DataError(f"{path.name}: more than {MAX_ROWS:,} rows, which training holds in memory; use a part of them")
