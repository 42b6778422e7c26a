"""One reader for all tables (formats: `table_formats.py`): column names, found below title lines, and rows."""

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from txcls.config import DataConfig
from txcls.data.columns import MAX_SAMPLED_LENGTH, is_common_name, is_number, number_column, text_columns
from txcls.data.files import COMPRESSED
from txcls.data.html import reduce_html
from txcls.data.labels import label_name
from txcls.data.table_formats import JSON, SHEETS, open_source
from txcls.errors import DataError, Note, list_names, quote, sanitize

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", *JSON, ".parquet", *SHEETS)
"""The file name suffixes of tables; text formats may also have `.gz`, `.bz2` or `.xz` after it."""
MAX_SHARE_TOO_WIDE = 0.1
"""Maximum fraction of rows with too many fields; in a file with more, the delimiter must be wrong."""
SAMPLED_ROWS = 5000
"""Maximum number of rows sampled to inspect the columns."""
HEAD_ROWS = 1000
"""Number of rows from which a table's columns are determined."""
_MAX_SAMPLED_CELLS = 1_000_000
_MAX_TITLE_ROWS = 20

CellRow = tuple[int, list[object]]
"""The number and the cells of a row."""

Values = dict[str, Any]


class LeftOut(NamedTuple):
    """How many rows of one kind are left out, and where the first of them is; "" if that is not known."""

    n: int
    kind: str
    first: str = ""


class Row(NamedTuple):
    """A row of a table: its number as in a spreadsheet, and its values keyed by column."""

    number: int
    values: Values


def table_suffix(path: Path) -> str:
    """The file's format according to its name: one of SUFFIXES.

    Raises:
        DataError: unknown format.
    """
    if has_table_suffix(path.name):
        return _suffix(path.name)
    raise DataError(
        f"{path}: unknown format; expected a name that ends in {', '.join(SUFFIXES)} (text formats also .gz); save "
        "other workbooks as .xlsx"
    )


def has_table_suffix(name: str) -> bool:
    """Whether a file name has the suffix of a table."""
    return _suffix(name) in SUFFIXES


def _suffix(name: str) -> str:
    """The suffix of a file name in lower case; for a compressed file, the one before `.gz`, `.bz2` or `.xz`."""
    path = Path(name.lower())
    return (Path(path.stem) if path.suffix in COMPRESSED else path).suffix


def row_text(values: Values, column: str, *, where: str, config: DataConfig) -> str:
    """The text of a row: one cell, or several (`subject + body`) joined by line breaks; of HTML, only visible text.

    Raises:
        DataError: a cell contains a list or an object.
    """
    cells = []
    for name in text_columns(column, values):
        value = values.get(name)
        if isinstance(value, list | dict | bytes):
            raise DataError(
                f"{where}: column {quote(name)} contains {quote(value)} "
                f"({type(value).__name__}), expected a text; choose another column"
            )
        cells.append(reduce_html(value if isinstance(value, str) else label_name(value), config))
    return "\n".join(cell for cell in cells if cell.strip())


@dataclass(frozen=True)
class Headings:
    """The column names of a table of cells.

    Attributes:
        names: the name of each column; None for a column that is left out.
        row: the number of the row with the names, which is followed by the data; -1 if there is no such row.
        notes: sentences on what was changed.
        cells: the contents of the row with the names.
    """

    names: tuple[str | None, ...]
    row: int
    notes: tuple[str, ...]
    cells: tuple[str, ...] = ()

    def is_repeated(self, cells: Sequence[object]) -> bool:
        """Whether a row repeats the column names, as happens when several exports are joined."""
        return self.row >= 0 and tuple(map(_heading, cells)) == self.cells


def is_filled(cell: object) -> bool:
    """Whether a cell contains anything but whitespace."""
    return cell is not None and cell == cell and not (isinstance(cell, str) and not cell.strip())


def find_headings(head: Sequence[CellRow], *, file: str, is_sheet: bool) -> Headings:
    """Find the column names in the first row or below title lines; there are none if the first row is already data.

    Args:
        head: the first non-empty rows.
        file: the file's name in messages.
        is_sheet: in a sheet, cells without a heading form an unnamed column; in text, they come from extra delimiters.

    Raises:
        DataError: there are no rows.
    """
    if not head:
        raise DataError(f"{file}: empty; expected a line with the column names, then rows")
    notes: list[str] = []
    n_titles = _count_title_rows(head)
    if n_titles:
        title = next(str(cell) for cell in head[0][1] if is_filled(cell))
        title = sanitize(title, limit=40)
        names_are = f"the column names are in row {head[n_titles][0]}"
        notes.append(Note(f"Row {head[0][0]} is a title ('{title}'); {names_are}.", "detail"))
    row, cells = head[n_titles]
    below = head[n_titles + 1 :]
    names = [_heading(cell) for cell in cells]
    if is_sheet:
        width = max(n for _, cells in head[n_titles:] for n, cell in enumerate(cells, start=1) if is_filled(cell))
        names = (names + [""] * (width - len(names)))[:width]
    if _is_data_row(names, below):
        notes.append("The first line looks like data, not like column names, so the columns are numbered.")
        row, below = -1, head
        names = [number_column(number) for number in range(1, len(names) + 1)]
    elif not below:
        raise DataError(f"{file}: no rows below the column names {list_names(names)}")
    return Headings(_complete_names(names, below, notes), row, tuple(notes), tuple(map(_heading, cells)))


def _heading(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _count_title_rows(head: Sequence[CellRow]) -> int:
    """The number of title rows above the column names; they have far fewer cells than most rows."""
    counts = [sum(map(is_filled, cells)) for _, cells in head[:100]]
    min_cells = max(2, math.ceil(statistics.median(counts) / 2))
    first = next((index for index, n in enumerate(counts[: _MAX_TITLE_ROWS + 1]) if n >= min_cells), 0)
    if any(is_common_name(_heading(cell)) for _, cells in head[:first] for cell in cells):
        return 0
    names = [cell for cell in head[first][1] if is_filled(cell)]
    are_names = all(isinstance(cell, str) for cell in names) and len(set(names)) == len(names)
    is_data = _is_data_row([_heading(cell) for cell in head[first][1]], head[first + 1 :])
    return first if are_names and not is_data else 0


def _is_data_row(names: Sequence[str], below: Sequence[CellRow]) -> bool:
    """Whether the line with the names is already data: a cell is a sentence, or recurs below like a label.

    Two cells with common names of columns, or one that does not recur, show that it is not.
    """
    common = [index for index, name in enumerate(names) if is_common_name(name)]
    columns = [
        [str(cells[index]).strip() for _, cells in below if index < len(cells) and is_filled(cells[index])]
        for index in range(len(names))
    ]
    if len(common) > 1 or any(names[index] not in columns[index] for index in common) or not any(names):
        return False
    for name, values in zip(names, columns, strict=True):
        if values and name and not is_number(name) and all(map(is_number, values)):
            return False  # a name above a column of numbers
    if any(len(name.split()) >= 6 and not name.endswith(("?", ":")) for name in names):
        return True
    return any(
        name and values.count(name) >= 2 and len(set(values)) <= max(2, len(values) // 2)
        for name, values in zip(names, columns, strict=True)
    )


def _complete_names(names: Sequence[str], below: Sequence[CellRow], notes: list[str]) -> tuple[str | None, ...]:
    """The names, with repeated ones numbered; unnamed columns are numbered, or None if they are empty."""
    counts: Counter[str] = Counter()
    columns: list[str | None] = []
    new_names = []
    for index, name in enumerate(names):
        if not name and not any(index < len(cells) and is_filled(cells[index]) for _, cells in below):
            columns.append(None)
            continue
        if not name:
            name = number_column(index + 1)
            new_names.append(name)
        counts[name] += 1
        columns.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    if repeated := [name for name, n in counts.items() if n > 1]:
        notes.append(f"Several columns are named {list_names(repeated)}; a number was added to the names.")
    if n_empty := columns.count(None):
        were = "s without a name or values were" if n_empty > 1 else " without a name or values was"
        notes.append(f"{n_empty} column{were} dropped.")
    if new_names:
        notes.append(f"Columns without a name were named {list_names(new_names)}.")
    return tuple(columns)


class Table:
    """An opened table file; its rows can be read repeatedly, one at a time.

    `notes` says what was corrected, such as title lines above the column names. Values are strings as in the file; from
    JSON, Parquet and Excel also numbers, booleans and None. Nested objects become separate columns:
    {"ticket": {"subject": …}} has the column `ticket.subject`.

    Attributes:
        suffix: the format, one of SUFFIXES; `unit`, `delimiter`, `encoding`, `sheet` are those of `Source`.
        n_rows: the number of rows; for formats other than Parquet, None until all rows have been read.
        n_left_out, n_headings, n_empty: the number of rows left out because they have more fields than there are
            columns, repeat the column names, or are empty; the last is 0 until all rows have been read.
    """

    def __init__(self, path: Path, *, sheet: str | None = None, usual_sheet: str | None = None) -> None:
        """Open a table file and determine its columns.

        The default sheet is `usual_sheet`, if the workbook has it, and otherwise the visible one with the most rows.

        Raises:
            DataError: there is no such file or sheet, its format is unknown, or it is damaged or empty.
        """
        self.path, self.name = path, path.name
        if path.is_dir():
            raise DataError(f"{path}: a folder, expected a file")
        self.suffix = table_suffix(path)
        if not path.is_file():
            raise DataError(f"{path}: no such file")
        if sheet is not None and self.suffix not in SHEETS:
            raise DataError(f"{path}: no workbook, so it has no sheet {sheet!r:.60}; leave out the sheet")
        self._source = source = open_source(path, self.suffix, sheet=sheet, usual_sheet=usual_sheet)
        self.unit, self.delimiter, self.encoding = source.unit, source.delimiter, source.encoding
        self.sheet = source.sheet
        self.n_rows: int | None = None
        self.n_left_out = self.n_headings = self.n_empty = 0
        self._too_wide = (0, 0)  # numbers of the first and the last row with too many fields
        self._headings: Headings | None = None
        self._columns: dict[str, None] = {}
        if source.are_cells:
            filled = ((number, cells) for number, cells in source.rows(None) if any(map(is_filled, cells)))
            head = list(itertools.islice(filled, HEAD_ROWS))
            self._headings = find_headings(head, file=str(path), is_sheet=self.sheet is not None)
            self._columns = dict.fromkeys(name for name in self._headings.names if name is not None)
            return
        for _ in itertools.islice(self._objects(None, flat=True), HEAD_ROWS):
            pass
        if not self._columns:
            raise DataError(f"{path}: no rows")
        self.n_rows = source.n_rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names; for JSON, they are complete only after all rows have been read."""
        return tuple(self._columns)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was corrected or left out in the part of the table read so far."""
        return (*self._source.notes, *(self._headings.notes if self._headings else ()))

    @property
    def left_out(self) -> list[LeftOut]:
        """What was left out of the part of the table read so far."""
        kinds = (
            LeftOut(self.n_headings, "repeated headings"),
            LeftOut(self.n_empty, "empty"),
            LeftOut(self.n_left_out, "with more fields than columns", f"row {self._too_wide[0]:,}"),
        )
        return [kind for kind in kinds if kind.n]

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
        self.n_empty = max(last, self._too_wide[1]) - first - n_rows - self.n_left_out - self.n_headings
        if not n_rows:
            raise DataError(f"{self.path}: no rows")
        if self.n_left_out > MAX_SHARE_TOO_WIDE * (n_rows + self.n_left_out):
            first, last = self._too_wide
            rows = f"row {first:,}" if first == last else f"rows {first:,} to {last:,} ({self.n_left_out:,} rows)"
            raise DataError(
                f"{self.path}, {rows}: more fields than the {len(self.columns)} columns; quote fields that contain "
                "the delimiter"
            )

    def rows_with_uncalculated_formulas(self, columns: Collection[str]) -> set[int]:
        """The numbers of the rows in which one of these columns has a formula that was never calculated.

        Raises:
            DataError: one of them has such formulas and no values.
        """
        names = dict(enumerate(self._headings.names, 1)) if self._headings else {}
        cells = [(row, names[column]) for row, column in self._source.uncalculated if names.get(column) in columns]
        for name in {str(name) for _, name in cells}:
            if not any(map(is_filled, self.sample[name])):
                raise DataError(
                    f"{self.path}: the formulas in column {quote(name)} were never calculated; open the file in a "
                    "spreadsheet program and save it, or choose another column"
                )
        return {row for row, _ in cells}

    @cached_property
    def sample(self) -> dict[str, list[object]]:
        """The values of each column in at most SAMPLED_ROWS random rows, in order; long values are cut.

        Fewer rows are drawn from very wide tables. All rows are read once, so `n_rows` is known afterwards.
        """
        n = max(1, min(SAMPLED_ROWS, _MAX_SAMPLED_CELLS // len(self._columns)))
        random_number = random.Random(0).random
        sample: list[Row] = []
        for count, row in enumerate(self.rows()):
            index = count if count < n else int(random_number() * (count + 1))  # reservoir sampling (Vitter 1985, R)
            if index < n:
                values = {
                    name: value[:MAX_SAMPLED_LENGTH] if isinstance(value, str) else value
                    for name, value in row.values.items()
                }
                sample[index : index + 1] = [Row(row.number, values)]
        sample.sort(key=lambda row: row.number)
        return {name: [row.values.get(name) for row in sample] for name in self._columns}

    def _objects(self, columns: Sequence[str] | None, *, flat: bool) -> Iterator[Row]:
        for number, values in self._source.rows(columns):
            if not isinstance(values, dict):
                raise DataError(
                    f"{self.path}, {self.unit} {number}: expected an object with the columns as keys, got "
                    f"{quote(values)}"
                )
            flattened = flatten(values)
            if not self._columns.keys() >= flattened.keys():
                self._columns.update(dict.fromkeys(flattened))
            yield Row(number, flattened if flat else values)

    def _cells(self, headings: Headings) -> Iterator[Row]:
        names, width = headings.names, len(headings.names)
        self.n_left_out = self.n_headings = 0
        for number, cells in self._source.rows(None):
            if number <= headings.row or not any(map(is_filled, cells)):
                continue
            if any(map(is_filled, cells[width:])):
                self._too_wide = (self._too_wide[0] if self.n_left_out else number, number)
                self.n_left_out += 1
                continue
            if headings.is_repeated(cells):
                self.n_headings += 1
                continue
            padded = [*cells, *[None] * (width - len(cells))]
            yield Row(number, {name: cell for name, cell in zip(names, padded, strict=False) if name is not None})


def left_out_note(kinds: Sequence[LeftOut]) -> list[Note]:
    """A sentence on what was left out of a table, if anything was."""
    brief = ", ".join(f"{n:,} {kind}" for n, kind, _ in kinds)
    whole = ", ".join(f"{n:,} {kind}" + f" ({'first: ' * (n > 1)}{at})" * bool(at) for n, kind, at in kinds)
    return [Note(f"Rows left out: {whole}.", "left-out", brief=f"Left out: {brief}.")] if whole else []


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
