"""One reader for every table: CSV, TSV, other delimited text, fastText's lines, JSON Lines, JSON, Parquet and Excel."""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from txcls.data.classes import label_name
from txcls.data.columns import text_columns
from txcls.data.html import without_html
from txcls.data.limits import HEAD_ROWS, MAX_ROW_CHARACTERS, SNIFFED_CHARACTERS
from txcls.data.tables.delimited import delimited_rows, find_dialect
from txcls.data.tables.excel import Workbook
from txcls.data.tables.headings import CellRow, Headings, find_headings, is_filled, refuse_wide
from txcls.data.tables.lines import Encoding, json_items, json_lines, open_text, refuse_unreachable
from txcls.data.tables.parquet import open_parquet, parquet_rows
from txcls.errors import DataError
from txcls.wording import listed, shown

EXCEL = (".xlsx", ".xlsm")
JSON = (".json", ".jsonl", ".ndjson")
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", *JSON, ".parquet", *EXCEL)
"""File name endings of tables; text files may also end in `.gz`."""
MAX_RAGGED = 0.1
"""Fraction of rows with too many fields above which a file is refused, since its delimiter must be wrong."""
SAMPLED_ROWS = 5000
"""Number of rows sampled to inspect the columns."""
_SAMPLED_CELLS, _LONGEST_SAMPLED = 1_000_000, 2000

Values = dict[str, Any]


class Row(NamedTuple):
    """A row of a table: its number as a spreadsheet counts it, and its values keyed by column."""

    number: int
    values: Values


def table_suffix(path: Path) -> str:
    """The file's format according to its name, as one of SUFFIXES in lower case.

    Raises:
        DataError: unknown format.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in SUFFIXES:
        return suffix
    if suffix in (".xls", ".ods", ".numbers", ".xlsb"):
        raise DataError(f"{path}: a spreadsheet in a format that is not read; save it as .xlsx or as CSV (UTF-8)")
    raise DataError(
        f"{path}: unknown format; expected a name that ends in {', '.join(SUFFIXES)} (text formats also .gz)"
    )


def is_table(name: str) -> bool:
    """Whether a file name ends like that of a table."""
    return Path(name.lower().removesuffix(".gz")).suffix in SUFFIXES


def cell_text(value: object, *, where: str, column: str) -> str:
    """A cell as text; "" if it is empty.

    Raises:
        DataError: it contains a list or an object.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict | bytes):
        raise DataError(
            f"{where}: column '{shown(column, limit=40)}' holds '{shown(value, limit=40)}' ({type(value).__name__}), "
            "expected a text; name another column"
        )
    return label_name(value)


def row_text(values: Values, column: str, *, where: str, strip_html: bool = False) -> str:
    """The text of a row: one cell, or those of `subject + body` joined by a line break; errors as for `cell_text`."""
    cells = (cell_text(values.get(name), where=where, column=name) for name in text_columns(column, values))
    text = "\n".join(cell for cell in cells if cell.strip())
    return without_html(text) if strip_html else text


class Table:
    """An opened table file, whose rows can be read repeatedly, in memory bounded by the longest row.

    It handles encodings other than UTF-8, title lines above the column names, missing, repeated or odd names, and rows
    with too many fields, and describes in `notes` how. Values are strings, as in the file; from JSON, Parquet and Excel
    also numbers, booleans and None. Nested objects become separate columns: {"ticket": {"subject": …}} has
    `ticket.subject`.

    Attributes:
        name: the file's name in notes.
        suffix: its format, one of SUFFIXES.
        unit: what row numbers count: "row", "line" or "item".
        n_rows: the number of rows; known at once for Parquet, otherwise None until all rows have been read.
        n_left_out: the number of rows left out because they have more fields than there are columns.
        sheets: names of a workbook's sheets, the one with the most rows first.
        sheet: the sheet that is read; None for other files.
        delimiter: the delimiter of a delimited text file; "" for other files.
    """

    def __init__(self, path: Path, *, name: str | None = None, sheet: str | None = None) -> None:
        """Open a table file and determine its columns.

        Args:
            path: the file.
            name: the file's name in notes, if `path` is a temporary file.
            sheet: the sheet of a workbook; None for the one with the most rows.

        Raises:
            DataError: no such file or sheet, unknown format, damaged, too large, or no rows.
        """
        self.path, self.name = path, name or path.name
        self.suffix = table_suffix(path)
        self.unit, self.delimiter = "row", ""
        self.n_rows: int | None = None
        self.n_left_out = 0
        self.sheets: tuple[str, ...] = ()
        self.sheet: str | None = None
        self._encoding = Encoding()
        self._headings: Headings | None = None
        self._columns: dict[str, None] = {}
        self._too_wide = (0, 0)  # first and last number of the rows with too many fields
        refuse_unreachable(path)
        if not path.is_file():
            raise DataError(f"{path}: {'a folder, expected a file' if path.is_dir() else 'no such file'}")
        if self.suffix == ".parquet" or self.suffix in JSON:
            self._open_objects()
        else:
            self._open_cells(sheet)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns; for JSON they are complete only after all rows have been read."""
        return tuple(self._columns)

    @property
    def encoding(self) -> str:
        """A text file's encoding, judged from the part read so far: "utf-8", "utf-8-sig", "utf-16" or "cp1252"."""
        return self._encoding.name

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was repaired or left out in the part of the table read so far."""
        notes = list(self._headings.notes if self._headings else ())
        if self.encoding == "cp1252":
            notes.insert(0, "The file is not UTF-8; it was read as Windows-1252 (Latin-1).")
        if len(self.sheets) > 1:
            others = [name for name in self.sheets if name != self.sheet]
            notes.insert(0, f"Sheet '{shown(self.sheet, limit=40)}' was read; there are others: {listed(others[:5])}.")
        if n := self.n_left_out:
            notes.append(
                f"{n:,} row{'s' * (n > 1)} with more fields than columns {'were' if n > 1 else 'was'} left out (the "
                f"first is row {self._too_wide[0]:,}); quote fields that hold the delimiter."
            )
        return tuple(notes)

    def rows(self, columns: Sequence[str] | None = None, *, flat: bool = True) -> Iterator[Row]:
        """Yield all rows, in order.

        Args:
            columns: for a Parquet file, read only these.
            flat: make nested objects separate columns.

        Raises:
            DataError: the file is damaged, or many rows have more fields than there are columns.
        """
        n_rows = 0
        for row in self._objects(columns, flat=flat) if self._headings is None else self._cells(self._headings):
            n_rows += 1
            yield row
        self.n_rows = n_rows
        if not n_rows:
            raise DataError(f"{self.path}: no rows")
        if self.n_left_out > MAX_RAGGED * (n_rows + self.n_left_out):
            raise self.ragged_error()

    def ragged_error(self) -> DataError:
        """The error for the rows that were left out."""
        first, last = self._too_wide
        more = f" to {last:,}, {self.n_left_out:,} rows in all" if self.n_left_out > 1 else ""
        return DataError(
            f"{self.path}, row {first:,}{more}: more fields than the {len(self.columns)} columns; quote fields that "
            "hold the delimiter"
        )

    def pieces(self, size: int, *, flat: bool = True) -> Iterator[list[Row]]:
        """Yield all rows, `size` at a time; the last piece may be shorter."""
        rows = self.rows(flat=flat)
        while piece := list(itertools.islice(rows, size)):
            yield piece

    @cached_property
    def sample(self) -> dict[str, list[object]]:
        """The values in at most SAMPLED_ROWS random rows, in order and keyed by column; long values are cut.

        From very wide tables fewer rows are drawn. All rows are read once, so `n_rows` is known afterwards.
        """
        n = max(1, min(SAMPLED_ROWS, _SAMPLED_CELLS // len(self._columns)))
        draw = random.Random(0).random
        drawn: list[Row] = []
        for number, row in enumerate(self.rows()):
            place = number if number < n else int(draw() * (number + 1))  # reservoir sampling (Vitter 1985, R)
            if place < n:
                drawn[place : place + 1] = [Row(row.number, {name: _cut(value) for name, value in row.values.items()})]
        drawn.sort(key=lambda row: row.number)
        return {name: [row.values.get(name) for row in drawn] for name in self._columns}

    def schema(self) -> Any:
        """The Arrow types of the columns: as stored in Parquet, strings for text files, else types that fit all rows.

        Raises:
            DataError: a column contains values of different kinds.
        """
        if self.suffix == ".parquet":
            return open_parquet(self.path).schema_arrow
        if not (self.suffix in JSON or self.sheet is not None):
            return pa.schema([(name, pa.string()) for name in self._columns])
        schema = pa.schema([])
        for piece in self.pieces(10_000):
            names = dict.fromkeys(name for row in piece for name in row.values)
            try:
                arrays = [(name, pa.array([row.values.get(name) for row in piece]).type) for name in names]
                schema = pa.unify_schemas([schema, pa.schema(arrays)], promote_options="permissive")
            except (pa.ArrowException, UnicodeEncodeError, OverflowError, RecursionError) as error:
                raise DataError(
                    f"{self.path}, from {self.unit} {piece[0].number} on: one column holds values of different kinds "
                    f"or no valid Unicode ({str(error).splitlines()[0]}), which Parquet cannot; write .jsonl instead"
                ) from None
        return schema

    def _open_objects(self) -> None:
        self._is_array, n_rows = False, None
        if self.suffix == ".parquet":
            n_rows = open_parquet(self.path).metadata.num_rows
        else:
            with open_text(self.path, encoding=self._encoding) as text:
                self._is_array = text.read(SNIFFED_CHARACTERS).lstrip().startswith("[")
            self.unit = "item" if self._is_array else "line"
        for _ in _head(self._objects(None, flat=True)):
            pass
        if not self._columns:
            raise DataError(f"{self.path}: no rows")
        self.n_rows = n_rows

    def _objects(self, columns: Sequence[str] | None, *, flat: bool) -> Iterator[Row]:
        if self.suffix == ".parquet":
            yield from self._flattened(parquet_rows(self.path, columns), flat=flat)
            return
        with open_text(self.path, newline="" if self._is_array else "\n", encoding=self._encoding) as text:
            values = json_items(text, self.path) if self._is_array else json_lines(text, self.path)
            yield from self._flattened(values, flat=flat)

    def _flattened(self, numbered: Iterable[tuple[int, Any]], *, flat: bool) -> Iterator[Row]:
        for number, values in numbered:
            if not isinstance(values, dict):
                raise DataError(
                    f"{self.path}, {self.unit} {number}: expected an object with the columns as keys, got "
                    f"'{shown(values, limit=40)}'"
                )
            shallow = flatten(values)
            if not self._columns.keys() >= shallow.keys():
                self._columns.update(dict.fromkeys(shallow))
                refuse_wide(self.columns, file=str(self.path))
            yield Row(number, shallow if flat else values)

    def _open_cells(self, sheet: str | None) -> None:
        if self.suffix in EXCEL:
            self._book = Workbook(self.path)
            self.sheets = self._book.sheets
            self.sheet = sheet or self.sheets[0]
        else:
            self._dialect = find_dialect(self.path, self._encoding, suffix=self.suffix)
            self.delimiter = self._dialect.delimiter
        head = list(_head(self._numbered_cells()))
        self._headings = find_headings(head, file=str(self.path), is_sheet=self.sheet is not None)
        self._columns = dict.fromkeys(name for name in self._headings.names if name is not None)

    def _numbered_cells(self) -> Iterator[CellRow]:
        """Yield the non-empty rows."""
        if self.sheet is not None:
            rows = self._book.rows(self.sheet)
        else:
            rows = delimited_rows(self.path, self._dialect, self._encoding)
        return (row for row in rows if any(map(is_filled, row[1])))

    def _cells(self, headings: Headings) -> Iterator[Row]:
        names, width = headings.names, len(headings.names)
        self.n_left_out = 0
        for number, cells in self._numbered_cells():
            if number <= headings.row:
                continue
            if any(map(is_filled, cells[width:])):
                self._too_wide = (self._too_wide[0] if self.n_left_out else number, number)
                self.n_left_out += 1
                continue
            padded = [*cells, *[None] * (width - len(cells))]
            yield Row(number, {name: cell for name, cell in zip(names, padded, strict=False) if name is not None})


def flatten(values: Values) -> Values:
    """The values, with nested objects flattened to `outer.inner` keys."""
    if not any(isinstance(value, dict) for value in values.values()):
        return values
    shallow: Values = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            shallow |= {f"{name}.{inner}": deep for inner, deep in flatten(value).items()}
        else:
            shallow[name] = value
    return shallow


def _head(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the first HEAD_ROWS rows, fewer if they are long."""
    size = 0
    for row in itertools.islice(rows, HEAD_ROWS):
        yield row
        cells = row[1].values() if isinstance(row[1], dict) else row[1]
        size += sum(len(cell) for cell in cells if isinstance(cell, str))
        if size > MAX_ROW_CHARACTERS:
            return


def _cut(value: object) -> object:
    return value[:_LONGEST_SAMPLED] if isinstance(value, str) else value
