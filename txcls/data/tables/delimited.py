"""Rows of CSV, TSV, other delimited text, and fastText's `__label__x text`, numbered as in a spreadsheet."""

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from txcls.data.limits import MAX_FIELD_CHARACTERS, MAX_ROW_CHARACTERS, SNIFFED_CHARACTERS
from txcls.data.tables.text_files import FileEncoding, bounded_lines, open_text
from txcls.errors import DataError

_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'"?sep=([,;|:^~\t])"?[ \t]*(?:\r\n|\n|\r)', re.IGNORECASE)
"""A first line that tells Excel the delimiter; Excel does not count it as a row."""
_LABEL_PREFIX = "__label__"
MIN_ALIKE = 0.5
"""Minimum share of rows with the same number of fields if the first row has only one, or in a .txt file."""
MAX_CUT_LINES = 100
"""Maximum number of lines of a last row without a closing quote; more would not be a row that was cut off, but rows
after a quote by mistake."""


class CutOffError(DataError):
    """A file ends inside a quoted field of its last row, which begins in line `line`."""

    def __init__(self, path: Path, line: int) -> None:
        super().__init__(
            f"{path}, line {line:,}: the file ends inside a quoted field of this row, as if it had been cut off; "
            "remove the row, or add the closing quote"
        )
        self.line = line


@dataclass(frozen=True, slots=True)
class Dialect:
    """The format of a delimited text file."""

    delimiter: str
    """The character between fields; "" for fastText's format."""
    quote: str = '"'
    """The character around fields that contain delimiters; "" if quotes are ordinary characters, as they may be in
    tab-separated files, except those around a whole field."""
    start: int = 0
    """Number of characters before the first row, in a line that names the delimiter."""


def find_dialect(path: Path, encoding: FileEncoding, *, suffix: str) -> Dialect:
    """Detect the dialect of a file from its beginning; whether double quotes enclose fields with tabs, from all of it.

    With the `suffix` .tsv or .tab, the delimiter is a tab; a .txt file must have columns.

    Raises:
        DataError: the file cannot be read, contains NUL bytes, or is a .txt file without columns.
    """
    with open_text(path, encoding=encoding) as text:
        beginning = text.read(SNIFFED_CHARACTERS)
    if "\x00" in beginning:
        raise DataError(f"{path}: contains NUL bytes; is it a text file? Save it as CSV (UTF-8)")
    if beginning.lstrip().startswith(_LABEL_PREFIX):
        return Dialect("")
    if line := _SEPARATOR_LINE.match(beginning):
        return Dialect(line[1], start=line.end())
    delimiter, quote, alike = _sniff(beginning, "\t" if suffix in (".tsv", ".tab") else _DELIMITERS)
    if suffix == ".txt" and alike < MIN_ALIKE:
        raise DataError(
            f"{path}: a text file without columns; expected columns separated by tabs, as in Excel's Unicode text, or "
            f"lines such as `{_LABEL_PREFIX}class text`"
        )
    if delimiter == "\t" and quote == '"':
        try:
            with open_text(path, encoding=encoding) as text:
                for _ in csv_rows(text, path, delimiter="\t"):
                    pass
        except DataError:
            return Dialect("\t", quote="")
    return Dialect(delimiter, quote)


def _sniff(text: str, delimiters: str) -> tuple[str, str, float]:
    """The delimiter and quote for which the most of the first 50 rows have the same number of fields, at least two, and
    the share of these rows.

    The first row must have several fields, or MIN_ALIKE of the rows the same number, below a title. Otherwise there is
    only one column, and the delimiter that occurs in the fewest rows is used. Single quotes are considered only if no
    fewer fields begin with one than with a double quote.
    """

    def score(dialect: tuple[str, str]) -> tuple[bool, int, int, float]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=dialect[0], quotechar=dialect[1])
        try:
            widths = [len(row) for row in itertools.islice(reader, 50) if row]
        except csv.Error:
            return False, 0, 0, 0.0
        n, width = max(((widths.count(width), width) for width in set(widths) if width > 1), default=(0, 0))
        if n and (widths[0] > 1 or n >= MIN_ALIKE * len(widths)):
            return True, n, width, n / len(widths)
        return False, widths.count(1), 1, 0.0

    dialects = [(delimiter, '"') for delimiter in delimiters]
    dialects.extend(
        (delimiter, "'")
        for delimiter in delimiters
        if text.count(f"{delimiter}'") >= max(text.count(f'{delimiter}"'), 1)
    )
    scores = {dialect: score(dialect) for dialect in dialects}
    best = max(dialects, key=scores.__getitem__)
    return *best, scores[best][-1]


def delimited_rows(path: Path, dialect: Dialect, encoding: FileEncoding) -> Iterator[tuple[int, list[object]]]:
    """Yield (row number from 1, fields) for each non-empty row; lines in fastText's format give label and text.

    Raises:
        DataError: as for `csv_rows` and `open_text`.
    """
    with open_text(path, encoding=encoding) as text:
        text.read(dialect.start)
        if dialect.delimiter:
            for number, fields in csv_rows(text, path, delimiter=dialect.delimiter, quote=dialect.quote):
                yield number, [*fields]
            return
        yield 0, ["label", "text"]
        for number, line in enumerate(bounded_lines(text, path), start=1):
            if words := line.split():
                labels = list(itertools.takewhile(lambda word: word.startswith(_LABEL_PREFIX), words))
                rest = line.split(maxsplit=len(labels))[len(labels) :]
                yield number, [";".join(label.removeprefix(_LABEL_PREFIX) for label in labels), "".join(rest).rstrip()]


def _unquoted(field: str) -> str:
    """A field without quotes around it, if all others in it are doubled."""
    inner = field[1:-1]
    is_quoted = len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else field


def csv_rows(text: TextIO, path: Path, *, delimiter: str = ",", quote: str = '"') -> Iterator[tuple[int, list[str]]]:
    """Yield (row number from 1, fields) for each non-empty row; numbers count empty rows but not lines within a field.

    Raises:
        DataError: a quoted field has no closing quote (`CutOffError` if it is near the end) or is not followed by a
            delimiter, a field is longer than MAX_FIELD_CHARACTERS, or a row is longer than MAX_ROW_CHARACTERS.
    """
    row_length = 0

    def lines() -> Iterator[str]:
        nonlocal row_length
        for line in bounded_lines(text, path):
            if (row_length := row_length + len(line)) > MAX_ROW_CHARACTERS:
                raise csv.Error(f"a row longer than {MAX_ROW_CHARACTERS:,} characters")
            yield line

    reader = csv.reader(
        lines(),
        delimiter=delimiter,
        strict=bool(quote),
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
    )
    first_line = 1
    try:
        for number in itertools.count(1):
            csv.field_size_limit(MAX_FIELD_CHARACTERS)  # a global setting that other code may have changed
            row = next(reader, None)
            if row is None:
                return
            if row:
                yield number, row if quote else [*map(_unquoted, row)]
            first_line, row_length = reader.line_num + 1, 0
    except csv.Error as error:
        if "unexpected end of data" in str(error) and reader.line_num - first_line < MAX_CUT_LINES:
            raise CutOffError(path, first_line) from None
        problem = f"a field longer than {MAX_FIELD_CHARACTERS:,} characters" if "field limit" in str(error) else error
        raise DataError(
            f"{path}, line {first_line}: {problem}; quote fields that contain quotes or delimiters"
        ) from None
