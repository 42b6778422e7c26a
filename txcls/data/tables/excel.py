"""Rows of cells from the sheets of an Excel workbook (.xlsx), only values, with formulas as last computed; and back."""

import itertools
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any

import openpyxl
from openpyxl.cell import WriteOnlyCell
from openpyxl.utils.escape import unescape
from openpyxl.utils.exceptions import InvalidFileException

from txcls.data.limits import (
    MAX_COLUMNS,
    MAX_EMPTY,
    MAX_FIELD_CHARACTERS,
    MAX_SHEETS,
    MAX_SPARSE,
    MAX_WORKBOOK_BYTES,
)
from txcls.data.tables.text_files import refuse_zip_bomb
from txcls.errors import DataError, reason_of
from txcls.wording import listed

_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, SyntaxError, OSError, EOFError, LookupError, ValueError, TypeError),
    *(AttributeError, ArithmeticError, RuntimeError, InvalidFileException),
)
"""Errors raised for damaged files; invalid XML raises SyntaxError, and encrypted files RuntimeError."""
MAX_SHEET_ROWS = 1_048_576
"""Number of rows of a sheet in Excel."""
_MAX_CELL_CHARACTERS = 32_767
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MAX_EXACT = 10**15
"""Excel keeps 15 digits of a number; integers from this one on, such as identifiers, are written as text."""
_COUNTED_ROWS = 2000
"""Maximum number of rows counted in each sheet to find the largest sheet."""


class DateText(str):
    """A date as text, with the cell's value, so that it is a date again in a workbook."""

    value: date

    def __new__(cls, value: date) -> "DateText":
        """Write the date, and the time unless it is midnight."""
        text = super().__new__(cls, str(value).removesuffix(" 00:00:00"))
        text.value = value
        return text


def write_workbook(file: IO[bytes], columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a workbook with one sheet, in which numbers, booleans and `DateText` keep their type.

    All else is text, also what begins with `=`: no formula runs. Characters that a workbook forbids are removed, and
    texts are cut after 32,767 characters, as many as a cell can hold.
    """
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("classified")
    for cells in itertools.chain([columns], rows):
        sheet.append([_typed(sheet, value) for value in cells])
    book.save(file)


def _typed(sheet: Any, value: object) -> Any:
    """A value as a cell of `write_workbook`."""
    if isinstance(value, DateText):
        moment = value.value
        return moment.date() if isinstance(moment, datetime) and moment.time() == time.min else moment
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < _MAX_EXACT):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    cell = WriteOnlyCell(sheet, value="")
    cell.value = _FORBIDDEN.sub("", str(value))[:_MAX_CELL_CHARACTERS]
    cell.data_type = "s"
    return cell


class Workbook:
    """A workbook that is read row by row; `sheets` are the names of the non-empty sheets, the largest first."""

    def __init__(self, path: Path) -> None:
        """Open the workbook.

        Raises:
            DataError: it is not a readable workbook, unpacks to too many bytes, has too many sheets, or is empty.
        """
        self.path = path
        _check_size(path)
        with _damage_as_data_error(path), warnings.catch_warnings(action="ignore"):  # about styles and extensions
            self._book: Any = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        titles = [sheet.title for sheet in self._book.worksheets if hasattr(sheet, "reset_dimensions")]  # no charts
        if len(titles) > 1:
            sizes = {title: sum(1 for _ in itertools.islice(self.rows(title), _COUNTED_ROWS)) for title in titles}
            titles = sorted((title for title in titles if sizes[title]), key=lambda title: -sizes[title])
        elif titles and next(self.rows(titles[0]), None) is None:
            titles = []
        if not titles:
            raise DataError(f"{path}: all sheets are empty")
        self.sheets: tuple[str, ...] = tuple(titles)

    def rows(self, sheet: str) -> Iterator[tuple[int, list[object]]]:
        """Yield (row number from 1, cells up to the last non-empty one) for each non-empty row.

        Raises:
            DataError: there is no such sheet, or it is damaged or spans too many cells.
        """
        if sheet not in self._book.sheetnames:
            raise DataError(f"{self.path}: no sheet {sheet!r:.60}; the sheets are {listed(self.sheets)}")
        worksheet = self._book[sheet]
        worksheet.reset_dimensions()  # the size stated in the file may be far larger than its contents
        n_cells = n_filled = n_empty_rows = 0
        with _damage_as_data_error(self.path):
            for number, cells in enumerate(_without_warnings(worksheet.iter_rows(values_only=True)), start=1):
                n_cells += len(cells) or 1
                if len(cells) > MAX_COLUMNS or (n_cells > MAX_SPARSE and n_filled * 20 < n_cells):
                    raise DataError(
                        f"{self.path}, row {number}: sheet '{sheet:.40}' has {n_cells:,} cells up to here, "
                        f"{len(cells):,} in this row, and only {n_filled:,} are not empty; save what you need as CSV"
                    )
                values = [_value(cell) for cell in cells]
                n_filled += len(values) - values.count(None)
                while values and values[-1] is None:
                    values.pop()
                n_empty_rows = 0 if values else n_empty_rows + 1
                if n_empty_rows > MAX_EMPTY:
                    return
                if any(isinstance(value, str) and len(value) > MAX_FIELD_CHARACTERS for value in values):
                    raise DataError(
                        f"{self.path}, row {number}: a cell of more than {MAX_FIELD_CHARACTERS:,} characters"
                    )
                if values:
                    yield number, values


@contextmanager
def _damage_as_data_error(path: Path) -> Iterator[None]:
    """Convert the errors that damaged files raise to DataError."""
    try:
        yield
    except _DAMAGED as error:
        raise DataError(
            f"{path}: not a readable Excel file ({reason_of(error):.200}); save it as .xlsx or CSV"
        ) from None


def _without_warnings(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield the rows without warnings about invalid dates."""
    while True:
        with warnings.catch_warnings(action="ignore"):
            row = next(rows, None)
        if row is None:
            return
        yield row


def _check_size(path: Path) -> None:
    with _damage_as_data_error(path), zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    n_bytes = sum(entry.file_size for entry in entries)
    refuse_zip_bomb(n_bytes, path.stat().st_size, path)
    if n_bytes > MAX_WORKBOOK_BYTES:
        raise DataError(f"{path}: unpacks to more than {MAX_WORKBOOK_BYTES:,} bytes, the maximum; save it as CSV")
    n_sheets = sum(entry.filename.startswith("xl/worksheets/") and "_rels" not in entry.filename for entry in entries)
    if n_sheets > MAX_SHEETS:
        raise DataError(
            f"{path}: {n_sheets:,} sheets, expected at most {MAX_SHEETS}; save the sheet that you need as CSV"
        )


def _value(cell: object) -> object:
    """The value of a cell: numbers and booleans unchanged, dates as `DateText`, and None for an empty cell."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    if isinstance(cell, datetime | date):
        return DateText(cell)
    text = str(cell)
    if "_x" in text:  # escaped control characters, such as _x000D_ for a carriage return
        text = unescape(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.strip() else None
