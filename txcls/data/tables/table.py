"""One reader for all tables: CSV, TSV, other delimited text, fastText's format, JSON Lines, JSON, Parquet and Excel."""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from txcls.config import DataConfig
from txcls.data.columns import MAX_SAMPLED_LENGTH, text_columns
from txcls.data.html import reduced
from txcls.data.labels import label_name
from txcls.data.limits import HEAD_ROWS, MAX_ROW_CHARACTERS, SNIFFED_CHARACTERS
from txcls.data.tables.delimited import CutOffError, delimited_rows, find_dialect
from txcls.data.tables.excel import Workbook
from txcls.data.tables.headings import CellRow, Headings, find_headings, is_filled, refuse_wide
from txcls.data.tables.parquet import open_parquet, parquet_rows
from txcls.data.tables.text_files import FileEncoding, json_items, json_lines, open_text, refuse_unreachable
from txcls.errors import DataError, reason_of
from txcls.wording import listed, shown

EXCEL = (".xlsx", ".xlsm")
JSON = (".json", ".jsonl", ".ndjson")
SUFFIXES = (".csv", ".tsv", ".tab", ".txt", *JSON, ".parquet", *EXCEL)
"""The file name suffixes of tables; text formats may also have `.gz` after it."""
UNREADABLE = (".xls", ".xlsb", ".ods", ".numbers")
"""The suffixes of spreadsheets that cannot be read."""
MAX_TOO_WIDE = 0.1
"""Maximum fraction of rows with too many fields; in a file with more, the delimiter must be wrong."""
SAMPLED_ROWS = 5000
"""Maximum number of rows sampled to inspect the columns."""
MAX_CODE_BOOK_ROWS = 1000
"""Maximum number of rows of a sheet that explains the labels."""
_ENCODINGS = {"cp1252": "Windows-1252 (Latin-1)", "utf-16": "UTF-16"}
"""Names of the encodings that a note mentions."""
_MAX_SAMPLED_CELLS = 1_000_000

Values = dict[str, Any]


class Row(NamedTuple):
    """A row of a table: its number as in a spreadsheet, and its values keyed by column."""

    number: int
    values: Values


def table_suffix(path: Path) -> str:
    """The file's format according to its name: one of SUFFIXES.

    Raises:
        DataError: unknown format.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix in SUFFIXES:
        return suffix
    if suffix in UNREADABLE:
        raise DataError(f"{path}: this spreadsheet format is not supported; save it as .xlsx or as CSV (UTF-8)")
    raise DataError(
        f"{path}: unknown format; expected a name that ends in {', '.join(SUFFIXES)} (text formats also .gz)"
    )


def has_table_suffix(name: str) -> bool:
    """Whether a file name has the suffix of a table."""
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
            f"{where}: column '{shown(column, limit=40)}' contains '{shown(value, limit=40)}' "
            f"({type(value).__name__}), expected a text; choose another column"
        )
    return label_name(value)


def row_text(values: Values, column: str, *, where: str, config: DataConfig | None = None) -> str:
    """The text of a row: one cell, or several (`subject + body`) joined by line breaks; errors as for `cell_text`.

    `config` determines whether HTML and e-mail headers are removed; if None, neither is.
    """
    cells = [cell_text(values.get(name), where=where, column=name) for name in text_columns(column, values)]
    if config is not None:
        cells = [reduced(cell, config) for cell in cells]
    return "\n".join(cell for cell in cells if cell.strip())


class Table:
    """An opened table file; its rows can be read repeatedly, one at a time.

    It accepts other encodings than UTF-8, title lines above the column names, missing or repeated column names, and
    rows with too many fields; `notes` describes how. Values are strings as in the file; from JSON,
    Parquet and Excel also numbers, booleans and None. Nested objects become separate columns:
    {"ticket": {"subject": …}} has the column `ticket.subject`.

    Attributes:
        name: the file's name, as used in `notes`.
        suffix: the format, one of SUFFIXES.
        unit: what row numbers count: "row", "line" or "item".
        n_rows: the number of rows; for formats other than Parquet, None until all rows have been read.
        n_left_out: the number of rows that were left out because they have more fields than there are columns.
        cut_off_line: where the last row begins, if it was left out because the file ends inside one of its fields.
        n_empty: the number of empty rows between the others; 0 until all rows have been read.
        sheets: the names of a workbook's sheets, the one with the most rows first.
        sheet: the sheet that is read; None for other files.
        delimiter: the delimiter of a delimited text file; "" for other files.
    """

    def __init__(
        self, path: Path, *, name: str | None = None, sheet: str | None = None, usual_sheet: str | None = None
    ) -> None:
        """Open a table file and determine its columns.

        `name` is the file's name for `notes`, if `path` is temporary. The default sheet is `usual_sheet`, if the
        workbook has it, and otherwise the one with the most rows.

        Raises:
            DataError: there is no such file or sheet, its format is unknown, or it is damaged, too large or empty.
        """
        self.path, self.name = path, name or path.name
        self.suffix = table_suffix(path)
        self.unit, self.delimiter = "row", ""
        self.n_rows: int | None = None
        self.n_left_out = self.n_empty = 0
        self.cut_off_line: int | None = None
        self.sheets: tuple[str, ...] = ()
        self.sheet: str | None = None
        self._encoding = FileEncoding()
        self._headings: Headings | None = None
        self._columns: dict[str, None] = {}
        self._left_out_range = (0, 0)  # numbers of the first and the last row with too many fields
        refuse_unreachable(path)
        if not path.is_file():
            raise DataError(f"{path}: {'a folder, expected a file' if path.is_dir() else 'no such file'}")
        if self.suffix == ".parquet" or self.suffix in JSON:
            self._open_objects()
        else:
            self._open_cells(sheet, usual_sheet)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names; for JSON, they are complete only after all rows have been read."""
        return tuple(self._columns)

    @property
    def encoding(self) -> str:
        """The encoding of a text file, as in `FileEncoding`."""
        return self._encoding.name

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was corrected or left out in the part of the table read so far."""
        notes = list(self._headings.notes if self._headings else ())
        if self.encoding in _ENCODINGS:
            notes.insert(0, f"The file is not UTF-8; it was read as {_ENCODINGS[self.encoding]}.")
        if len(self.sheets) > 1:
            others = listed([name for name in self.sheets if name != self.sheet][:5])
            notes.insert(0, f"Sheet '{shown(self.sheet, limit=40)}' was read; other sheets: {others}.")
        if n := self.n_empty:
            notes.append(f"{n:,} empty {self.unit}{'s were' if n > 1 else ' was'} left out.")
        if n := self.n_left_out:
            notes.append(
                f"{n:,} row{'s' * (n > 1)} with more fields than columns {'were' if n > 1 else 'was'} left out (the "
                f"first is row {self._left_out_range[0]:,}); quote fields that contain the delimiter."
            )
        if self.cut_off_line is not None:
            notes.append(
                f"The file ends inside a quoted field, as if it had been cut off: its last row, which begins in line "
                f"{self.cut_off_line:,}, was left out."
            )
        return tuple(notes)

    def rows(self, columns: Sequence[str] | None = None, *, flat: bool = True) -> Iterator[Row]:
        """Yield all rows, in order.

        Args:
            columns: the columns to read from a Parquet file; the default is all columns.
            flat: convert nested objects to separate columns.

        Raises:
            DataError: the file is damaged, or many rows have more fields than there are columns.
        """
        n_rows, first = 0, 0 if self._headings is None else max(self._headings.row, 0)
        last = first
        for row in self._objects(columns, flat=flat) if self._headings is None else self._cells(self._headings):
            n_rows, last = n_rows + 1, row.number
            yield row
        self.n_rows = n_rows
        self.n_empty = max(last, self._left_out_range[1]) - first - n_rows - self.n_left_out
        if not n_rows:
            raise DataError(f"{self.path}: no rows")
        if self.n_left_out > MAX_TOO_WIDE * (n_rows + self.n_left_out):
            raise self.too_wide_error()

    def code_books(self) -> Iterator[tuple[str, list[list[object]]]]:
        """Yield (name, rows of cells) of each other sheet that is small enough to be a code book."""
        for sheet in self.sheets:
            rows = [] if sheet == self.sheet else list(itertools.islice(self._book.rows(sheet), MAX_CODE_BOOK_ROWS + 1))
            if 0 < len(rows) <= MAX_CODE_BOOK_ROWS:
                yield sheet, [cells for _, cells in rows]

    def too_wide_error(self) -> DataError:
        """The error for rows with too many fields."""
        first, last = self._left_out_range
        rows = f"row {first:,}" if first == last else f"rows {first:,} to {last:,} ({self.n_left_out:,} rows)"
        return DataError(
            f"{self.path}, {rows}: more fields than the {len(self.columns)} columns; quote fields that contain the "
            "delimiter"
        )

    def chunks(self, size: int, *, flat: bool = True) -> Iterator[list[Row]]:
        """Yield all rows in lists of `size` rows; the last list may be shorter."""
        rows = self.rows(flat=flat)
        while chunk := list(itertools.islice(rows, size)):
            yield chunk

    @cached_property
    def sample(self) -> dict[str, list[object]]:
        """The values of each column in at most SAMPLED_ROWS random rows, in order; long values are cut.

        Of very wide tables, fewer rows are drawn. All rows are read once, so `n_rows` is known afterwards.
        """
        n = max(1, min(SAMPLED_ROWS, _MAX_SAMPLED_CELLS // len(self._columns)))
        random_number = random.Random(0).random
        sample: list[Row] = []
        for count, row in enumerate(self.rows()):
            index = count if count < n else int(random_number() * (count + 1))  # reservoir sampling (Vitter 1985, R)
            if index < n:
                values = {name: _cut(value) for name, value in row.values.items()}
                sample[index : index + 1] = [Row(row.number, values)]
        sample.sort(key=lambda row: row.number)
        return {name: [row.values.get(name) for row in sample] for name in self._columns}

    def schema(self) -> Any:
        """The Arrow types of the columns: those stored in Parquet, strings for text files, else types for all values.

        Raises:
            DataError: a column contains values of different types.
        """
        if self.suffix == ".parquet":
            return open_parquet(self.path).schema_arrow
        if not (self.suffix in JSON or self.sheet is not None):
            return pa.schema([(name, pa.string()) for name in self._columns])
        schema = pa.schema([])
        for chunk in self.chunks(10_000):
            names = dict.fromkeys(name for row in chunk for name in row.values)
            try:
                arrays = [(name, pa.array([row.values.get(name) for row in chunk]).type) for name in names]
                schema = pa.unify_schemas([schema, pa.schema(arrays)], promote_options="permissive")
            except (pa.ArrowException, UnicodeEncodeError, OverflowError, RecursionError) as error:
                raise DataError(
                    f"{self.path}, from {self.unit} {chunk[0].number} on: a column contains values of different types "
                    f"or invalid Unicode ({reason_of(error)}), which Parquet cannot store; write .jsonl instead"
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
            flattened = flatten(values)
            if not self._columns.keys() >= flattened.keys():
                self._columns.update(dict.fromkeys(flattened))
                refuse_wide(self.columns, file=str(self.path))
            yield Row(number, flattened if flat else values)

    def _open_cells(self, sheet: str | None, usual_sheet: str | None) -> None:
        if self.suffix in EXCEL:
            self._book = Workbook(self.path)
            self.sheets = self._book.sheets
            self.sheet = sheet or (usual_sheet if usual_sheet in self.sheets else self.sheets[0])
        else:
            self._dialect = find_dialect(self.path, self._encoding, suffix=self.suffix)
            self.delimiter = self._dialect.delimiter
        head = list(_head(self._numbered_cells()))
        self._headings = find_headings(head, file=str(self.path), is_sheet=self.sheet is not None)
        self._columns = dict.fromkeys(name for name in self._headings.names if name is not None)

    def _numbered_cells(self) -> Iterator[CellRow]:
        """Yield the non-empty rows, without a last one that was cut off, unless there is hardly another row."""
        if self.sheet is not None:
            rows = self._book.rows(self.sheet)
        else:
            rows = delimited_rows(self.path, self._dialect, self._encoding)
        n_filled = 0
        try:
            for number, cells in rows:
                if any(map(is_filled, cells)):
                    n_filled += 1
                    yield number, cells
        except CutOffError as error:
            if n_filled < 2:
                raise
            self.cut_off_line = error.line

    def _cells(self, headings: Headings) -> Iterator[Row]:
        names, width = headings.names, len(headings.names)
        self.n_left_out = 0
        for number, cells in self._numbered_cells():
            if number <= headings.row:
                continue
            if any(map(is_filled, cells[width:])):
                self._left_out_range = (self._left_out_range[0] if self.n_left_out else number, number)
                self.n_left_out += 1
                continue
            padded = [*cells, *[None] * (width - len(cells))]
            yield Row(number, {name: cell for name, cell in zip(names, padded, strict=False) if name is not None})


def flatten(values: Values) -> Values:
    """The values, with nested objects flattened to keys such as `outer.inner`."""
    if not any(isinstance(value, dict) for value in values.values()):
        return values
    flattened: Values = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            flattened |= {f"{name}.{inner_name}": inner for inner_name, inner in flatten(value).items()}
        else:
            flattened[name] = value
    return flattened


def _head(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the first HEAD_ROWS rows, or fewer if they are long."""
    size = 0
    for row in itertools.islice(rows, HEAD_ROWS):
        yield row
        cells = row[1].values() if isinstance(row[1], dict) else row[1]
        size += sum(len(cell) for cell in cells if isinstance(cell, str))
        if size > MAX_ROW_CHARACTERS:
            return


def _cut(value: object) -> object:
    return value[:MAX_SAMPLED_LENGTH] if isinstance(value, str) else value
