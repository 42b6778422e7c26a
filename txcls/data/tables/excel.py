"""The sheets of an Excel workbook (.xlsx) as rows of cells; values only, formulas as last computed, no macros."""

import itertools
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
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
from txcls.data.tables.lines import refuse_zip_bomb
from txcls.errors import DataError
from txcls.wording import listed

_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, SyntaxError, OSError, EOFError, LookupError, ValueError, TypeError),
    *(AttributeError, ArithmeticError, RuntimeError, InvalidFileException),
)
"""Errors raised for damaged files; SyntaxError comes from invalid XML, RuntimeError from encrypted files."""
_COUNTED_ROWS = 2000
"""Number of rows counted in each sheet to find the largest sheet."""


class Workbook:
    """A workbook, whose sheets are read row by row; `sheets` names those that are not empty, the largest first."""

    def __init__(self, path: Path) -> None:
        """Open the workbook.

        Raises:
            DataError: it is not a readable workbook, unpacks to too many bytes, has too many sheets, or is empty.
        """
        self.path = path
        _refuse_bomb(path)
        with self._readable(), warnings.catch_warnings(action="ignore"):  # about styles and extensions
            self._book: Any = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        titles = [sheet.title for sheet in self._book.worksheets if hasattr(sheet, "reset_dimensions")]  # no charts
        if len(titles) > 1:
            sizes = {title: sum(1 for _ in itertools.islice(self.rows(title), _COUNTED_ROWS)) for title in titles}
            titles = sorted((title for title in titles if sizes[title]), key=lambda title: -sizes[title])
        elif titles and next(self.rows(titles[0]), None) is None:
            titles = []
        if not titles:
            raise DataError(f"{path}: no sheet holds anything")
        self.sheets: tuple[str, ...] = tuple(titles)

    def rows(self, sheet: str) -> Iterator[tuple[int, list[object]]]:
        """Yield (row number from 1, cells up to the last filled one) for each row that is not empty.

        Raises:
            DataError: there is no such sheet, it is damaged, or it spans too many cells.
        """
        if sheet not in self._book.sheetnames:
            raise DataError(f"{self.path}: no sheet {sheet!r:.60}; there are {listed(self.sheets)}")
        cells_of = self._book[sheet]
        cells_of.reset_dimensions()  # the size that the file declares may be far larger than its contents
        spanned = filled = empty = 0
        with self._readable():
            for number, cells in enumerate(_quietly(cells_of.iter_rows(values_only=True)), start=1):
                spanned += len(cells) or 1
                if len(cells) > MAX_COLUMNS or (spanned > MAX_SPARSE and filled * 20 < spanned):
                    raise DataError(
                        f"{self.path}, row {number}: sheet '{sheet:.40}' spans {spanned:,} cells, in this row "
                        f"{len(cells):,}, of which {filled:,} hold something; save what you need of it as CSV"
                    )
                values = [None if cell is None else _value(cell) for cell in cells]
                filled += len(values) - values.count(None)
                while values and values[-1] is None:
                    values.pop()
                empty = 0 if values else empty + 1
                if empty > MAX_EMPTY:
                    return
                if any(isinstance(value, str) and len(value) > MAX_FIELD_CHARACTERS for value in values):
                    raise DataError(
                        f"{self.path}, row {number}: a cell of more than {MAX_FIELD_CHARACTERS:,} characters"
                    )
                if values:
                    yield number, values

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn the errors that damaged files cause into DataError."""
        try:
            yield
        except _DAMAGED as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(
                f"{self.path}: not a readable Excel file ({reason:.200}); save it as .xlsx or CSV"
            ) from None


def _quietly(rows: Iterator[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """The rows, without warnings about invalid dates."""
    while True:
        with warnings.catch_warnings(action="ignore"):
            row = next(rows, None)
        if row is None:
            return
        yield row


def _refuse_bomb(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except _DAMAGED as error:
        raise DataError(f"{path}: not a readable Excel file ({error}); save it as .xlsx or CSV") from None
    unpacked = sum(entry.file_size for entry in entries)
    refuse_zip_bomb(unpacked, path.stat().st_size, path)
    if unpacked > MAX_WORKBOOK_BYTES:
        raise DataError(f"{path}: unpacks to more than {MAX_WORKBOOK_BYTES:,} bytes, the maximum; save it as CSV")
    sheets = sum(entry.filename.startswith("xl/worksheets/") and "_rels" not in entry.filename for entry in entries)
    if sheets > MAX_SHEETS:
        raise DataError(
            f"{path}: {sheets:,} sheets, expected {MAX_SHEETS} at most; save the sheet that you need as CSV"
        )


def _value(cell: object) -> object:
    """A cell's value: numbers and booleans unchanged, dates and text as text, empty cells as None."""
    if cell is None or isinstance(cell, bool | int | float):
        return cell
    if isinstance(cell, datetime | date):
        return str(cell).removesuffix(" 00:00:00")
    text = str(cell)
    if "_x" in text:  # the escapes of control characters in a workbook, such as _x000D_ for a carriage return
        text = unescape(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.strip() else None
