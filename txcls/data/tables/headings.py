"""The names of a table's columns: found below title lines, with missing and repeated names replaced."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from txcls.data.columns import is_number, is_usual_name
from txcls.data.limits import MAX_COLUMNS
from txcls.errors import DataError
from txcls.wording import listed, shown

CellRow = tuple[int, list[object]]
"""A row's number and its cells."""
_MAX_TITLE_ROWS = 20


@dataclass(frozen=True)
class Headings:
    """The columns of a table of cells.

    Attributes:
        names: the name of the column at each position; None for a column that is left out.
        row: number of the row with the names, which is followed by the data; -1 if there is none.
        notes: sentences on what was changed.
    """

    names: tuple[str | None, ...]
    row: int
    notes: tuple[str, ...]


def is_filled(cell: object) -> bool:
    """Whether a cell contains anything but whitespace."""
    return cell is not None and cell == cell and not (isinstance(cell, str) and not cell.strip())


def find_headings(head: Sequence[CellRow], *, file: str, is_sheet: bool) -> Headings:
    """Find the column names: in the first row or below title lines; there are none if the first row is already data.

    Args:
        head: the first non-empty rows.
        file: for messages.
        is_sheet: cells without a heading are unnamed columns; in a text file they come from extra delimiters.

    Raises:
        DataError: there are no rows, or too many columns.
    """
    if not head:
        raise DataError(f"{file}: empty; expected a line with the columns' names, then rows")
    notes: list[str] = []
    above = _title_rows(head)
    if above:
        title = next(str(cell) for cell in head[0][1] if is_filled(cell))
        notes.append(
            f"Row {head[0][0]} is a title ('{shown(title, limit=40)}'); the column names are in row {head[above][0]}."
        )
    row, cells = head[above]
    below = head[above + 1 :]
    names = [_heading(cell) for cell in cells]
    if is_sheet:
        widest = max(at for _, cells in head[above:] for at, cell in enumerate(cells, start=1) if is_filled(cell))
        names = (names + [""] * (widest - len(names)))[:widest]
    refuse_wide(names, file=file)
    if _is_a_row(names, below):
        notes.append(
            "The first line looks like a row, not like column names: it was read as a row, and columns are numbered."
        )
        row, below = -1, head
        names = [f"column {number}" for number in range(1, len(names) + 1)]
    elif not below:
        raise DataError(f"{file}: no rows below the column names {listed(names)}")
    return Headings(_named(names, below, notes), row, tuple(notes))


def refuse_wide(columns: Sequence[str], *, file: str) -> None:
    """Raise DataError if there are more than MAX_COLUMNS columns."""
    if len(columns) > MAX_COLUMNS:
        raise DataError(f"{file}: {len(columns):,} columns, expected {MAX_COLUMNS:,} at most; is it a table?")


def _heading(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _title_rows(head: Sequence[CellRow]) -> int:
    """How many title rows precede the column names: rows with far fewer cells than most, followed by one with names."""
    counts = [sum(map(is_filled, cells)) for _, cells in head[:100]]
    wanted = max(2, math.ceil(statistics.median(counts) / 2))
    first = next((at for at, n in enumerate(counts[: _MAX_TITLE_ROWS + 1]) if n >= wanted), 0)
    if any(is_usual_name(_heading(cell)) for _, cells in head[:first] for cell in cells):
        return 0
    names = [cell for cell in head[first][1] if is_filled(cell)]
    are_names = all(isinstance(cell, str) for cell in names) and len(set(names)) == len(names)
    return first if are_names and not _is_a_row([_heading(cell) for cell in head[first][1]], head[first + 1 :]) else 0


def _is_a_row(names: Sequence[str], below: Sequence[CellRow]) -> bool:
    """Whether the first line is already data: one of its cells recurs below as a label does, or is a whole sentence."""
    if any(map(is_usual_name, names)) or not any(names):
        return False
    columns = [[str(cells[at]).strip() for _, cells in below if at < len(cells) and is_filled(cells[at])]
               for at in range(len(names))]  # fmt: skip
    for name, values in zip(names, columns, strict=True):
        if values and name and not is_number(name) and all(map(is_number, values)):
            return False  # a name above a column of numbers
    if any(len(name.split()) >= 6 and not name.endswith(("?", ":")) for name in names):
        return True
    return any(
        name and values.count(name) >= 2 and len(set(values)) <= max(2, len(values) // 2)
        for name, values in zip(names, columns, strict=True)
    )


def _named(names: Sequence[str], below: Sequence[CellRow], notes: list[str]) -> tuple[str | None, ...]:
    """The names, with repeated ones numbered; unnamed columns are named by their position, or left out if empty."""
    seen: Counter[str] = Counter()
    columns: list[str | None] = []
    nameless = []
    for at, name in enumerate(names):
        if not name and not any(at < len(cells) and is_filled(cells[at]) for _, cells in below):
            columns.append(None)
            continue
        if not name:
            name = f"column {at + 1}"
            nameless.append(name)
        seen[name] += 1
        columns.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    if repeated := [name for name, n in seen.items() if n > 1]:
        notes.append(f"Several columns are called {listed(repeated)}; they were numbered.")
    if empty := columns.count(None):
        were = "were" if empty > 1 else "was"
        notes.append(f"{empty} column{'s' * (empty > 1)} without a name or a value {were} dropped.")
    if nameless:
        notes.append(f"Columns without a name were called {listed(nameless)}.")
    return tuple(columns)
