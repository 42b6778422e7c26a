"""Write workbooks, in which no cell runs as a formula."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from typing import IO, Any

MAX_SHEET_ROWS = 1_048_576
"""Number of rows of a sheet in Excel."""
_MAX_CELL_CHARACTERS = 32_767
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_MAX_EXACT = 10**15
"""Excel keeps 15 digits of a number; integers from this one on, such as identifiers, are written as text."""


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
    import openpyxl

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
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value="")
    cell.value = _FORBIDDEN.sub("", str(value))[:_MAX_CELL_CHARACTERS]
    cell.data_type = "s"
    return cell
