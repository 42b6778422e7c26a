"""The first sheet of an Excel workbook (.xlsx) as rows of cells; values only, formulas as last computed, no macros."""

import warnings
import zipfile
from pathlib import Path

from txcls.data.limits import LONGEST_FIELD, MAX_BYTES, MAX_ROWS, MOST_EMPTY
from txcls.data.tables.lines import refuse_swollen
from txcls.errors import DataError

_DAMAGED = (zipfile.BadZipFile, OSError, KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError)


def excel_rows(path: Path) -> tuple[list[tuple[int, list[object]]], list[str]]:
    """(row number, cells) of the first sheet that is not empty, and notes on other sheets.

    Raises:
        DataError: it is no readable workbook, or unpacks to more than a table does.
    """
    import openpyxl
    from openpyxl.utils.exceptions import InvalidFileException

    _refuse_swollen(path)
    try:
        with warnings.catch_warnings(action="ignore"):  # on styles and extensions that are of no interest here
            book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
            try:
                sheets = [(sheet.title, _cells(sheet, path)) for sheet in book.worksheets]
            finally:
                book.close()
    except (*_DAMAGED, InvalidFileException, SyntaxError) as error:  # a SyntaxError is of its XML
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path.name}: not a readable Excel file ({reason:.200}); save it as .xlsx or CSV") from None
    filled = [(title, rows) for title, rows in sheets if rows]
    if not filled:
        raise DataError(f"{path.name}: no sheet holds anything")
    title, rows = filled[0]
    others = ", ".join(f"'{name:.40}'" for name, _ in filled[1:6])
    return rows, [f"Only the first sheet, '{title:.40}', was read; there are others: {others}."] if others else []


def _refuse_swollen(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{path.name}: not a readable Excel file ({error}); save it as .xlsx or CSV") from None
    refuse_swollen(unpacked, path.stat().st_size, path)
    if unpacked > MAX_BYTES:
        raise DataError(f"{path.name}: unpacks to more than {MAX_BYTES:,} bytes, the most that is read; split the file")


def _cells(sheet: object, path: Path) -> list[tuple[int, list[object]]]:
    """The rows of a sheet that hold anything, each up to its last filled cell."""
    if not hasattr(sheet, "reset_dimensions"):
        return []  # a chart
    sheet.reset_dimensions()  # what the file claims may be far larger than what it holds
    rows: list[tuple[int, list[object]]] = []
    empty = 0
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):  # type: ignore[attr-defined]
        values = [_value(cell) for cell in cells]
        while values and values[-1] is None:
            values.pop()
        empty = 0 if values else empty + 1
        if empty > MOST_EMPTY or len(rows) > MAX_ROWS:
            break
        if any(isinstance(value, str) and len(value) > LONGEST_FIELD for value in values):
            raise DataError(f"{path.name}, row {number}: a cell of more than {LONGEST_FIELD:,} characters")
        if values:
            rows.append((number, values))
    return rows


def _value(cell: object) -> object:
    """A cell's value: numbers, truth values and text as they are, dates and times as text, empty ones as None."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    text = str(cell)
    return text if text.strip() else None
