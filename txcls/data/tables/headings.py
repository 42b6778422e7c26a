"""Column names of a table: found below title lines, with missing and repeated names replaced."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from txcls.data.columns import is_common_name, is_number, numbered
from txcls.errors import DataError
from txcls.wording import listed, shown

CellRow = tuple[int, list[object]]
"""The number and the cells of a row."""
_MAX_TITLE_ROWS = 20


@dataclass(frozen=True)
class Headings:
    """The column names of a table of cells.

    Attributes:
        names: the name of each column; None for a column that is left out.
        row: the number of the row with the names, which is followed by the data; -1 if there is no such row.
        notes: sentences on what was changed.
        cells: the contents of that row.
    """

    names: tuple[str | None, ...]
    row: int
    notes: tuple[str, ...]
    cells: tuple[str, ...] = ()

    def is_repeated(self, cells: Sequence[object]) -> bool:
        """Whether a row has the column names again, as where several exports were joined."""
        return self.row >= 0 and tuple(map(_heading, cells)) == self.cells


def is_filled(cell: object) -> bool:
    """Whether a cell contains anything but whitespace."""
    return cell is not None and cell == cell and not (isinstance(cell, str) and not cell.strip())


def find_headings(head: Sequence[CellRow], *, file: str, is_sheet: bool) -> Headings:
    """Find the column names in the first row or below title lines; there are none if the first row is already data.

    Args:
        head: the first non-empty rows.
        file: the file's name in messages.
        is_sheet: cells without a heading are in an unnamed column; in a text file, they come from extra delimiters.

    Raises:
        DataError: there are no rows.
    """
    if not head:
        raise DataError(f"{file}: empty; expected a line with the column names, then rows")
    notes: list[str] = []
    n_titles = _count_title_rows(head)
    if n_titles:
        title = next(str(cell) for cell in head[0][1] if is_filled(cell))
        title = shown(title, limit=40)
        notes.append(f"Row {head[0][0]} is a title ('{title}'); the column names are in row {head[n_titles][0]}.")
    row, cells = head[n_titles]
    below = head[n_titles + 1 :]
    names = [_heading(cell) for cell in cells]
    if is_sheet:
        width = max(n for _, cells in head[n_titles:] for n, cell in enumerate(cells, start=1) if is_filled(cell))
        names = (names + [""] * (width - len(names)))[:width]
    if _is_data_row(names, below):
        notes.append("The first line looks like data, not like column names, so the columns are numbered.")
        row, below = -1, head
        names = [numbered(number) for number in range(1, len(names) + 1)]
    elif not below:
        raise DataError(f"{file}: no rows below the column names {listed(names)}")
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

    It is not if two of the cells are common names of columns, or one that does not recur.
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
            name = numbered(index + 1)
            new_names.append(name)
        counts[name] += 1
        columns.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    if repeated := [name for name, n in counts.items() if n > 1]:
        notes.append(f"Several columns are named {listed(repeated)}; a number was added to the names.")
    if n_empty := columns.count(None):
        were = "s without a name or values were" if n_empty > 1 else " without a name or values was"
        notes.append(f"{n_empty} column{were} dropped.")
    if new_names:
        notes.append(f"Columns without a name were named {listed(new_names)}.")
    return tuple(columns)
