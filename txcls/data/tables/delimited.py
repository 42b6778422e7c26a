"""CSV, TSV, other delimited text and fastText's `__label__x text`, as rows of cells with spreadsheet row numbers."""

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from txcls.data.limits import MAX_FIELD_CHARACTERS, MAX_ROW_CHARACTERS, SNIFFED_CHARACTERS
from txcls.data.tables.lines import Encoding, bounded_lines, open_text
from txcls.errors import DataError

_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'"?sep=([,;|:^~\t])"?[ \t]*(?:\r\n|\n|\r)', re.IGNORECASE)
"""A first line that names the delimiter for Excel, which does not count this line as a row."""
_LABEL = "__label__"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the fields of a text file are written."""

    delimiter: str
    """The character between fields; "" for fastText's lines."""
    quoted: bool = True
    """Whether quotes are special; in tab-separated files they may be ordinary characters."""
    starts_at: int = 0
    """Number of characters before the first row: a line that names the delimiter."""


def find_dialect(path: Path, encoding: Encoding, *, suffix: str) -> Dialect:
    """The dialect of a file, from its beginning; a tab-separated file is read whole to see whether quotes are special.

    The `suffix` .tsv or .tab means tabs; a .txt file must contain a delimiter.

    Raises:
        DataError: the file cannot be read, contains NUL bytes, or is a .txt without columns.
    """
    with open_text(path, encoding=encoding) as text:
        beginning = text.read(SNIFFED_CHARACTERS)
    if "\x00" in beginning:
        raise DataError(f"{path}: holds NUL bytes; is it a text file? Save it as CSV (UTF-8)")
    if beginning.lstrip().startswith(_LABEL):
        return Dialect("")
    if line := _SEPARATOR_LINE.match(beginning):
        return Dialect(line[1], starts_at=line.end())
    delimiter = "\t" if suffix in (".tsv", ".tab") else _sniff_delimiter(beginning)
    if suffix == ".txt" and delimiter not in beginning:
        raise DataError(
            f"{path}: a text file without columns; expected columns between tabs, as Excel's Unicode text has, or "
            f"lines such as `{_LABEL}class text`"
        )
    if delimiter == "\t":
        try:
            with open_text(path, encoding=encoding) as text:
                for _ in csv_rows(text, path, delimiter="\t"):
                    pass
        except DataError:
            return Dialect("\t", quoted=False)
    return Dialect(delimiter)


def _sniff_delimiter(text: str) -> str:
    """The delimiter with which most of the first rows have as many fields as the first row that has several."""

    def agreement(delimiter: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            widths = [len(row) for row, _ in zip(reader, range(50), strict=False)]
        except csv.Error:
            return 0, 0
        first = next((width for width in widths if width > 1), 0)
        return (sum(width == first for width in widths), first) if first else (0, 0)

    return max(_DELIMITERS, key=agreement)


def delimited_rows(path: Path, dialect: Dialect, encoding: Encoding) -> Iterator[tuple[int, list[object]]]:
    """Yield (row number from 1, fields) for each non-empty row; fastText's lines give label and text.

    Raises:
        DataError: as for `csv_rows` and `open_text`.
    """
    with open_text(path, encoding=encoding) as text:
        text.read(dialect.starts_at)
        if dialect.delimiter:
            for number, fields in csv_rows(text, path, delimiter=dialect.delimiter, quoted=dialect.quoted):
                yield number, [*fields]
            return
        yield 0, ["label", "text"]
        for number, line in enumerate(bounded_lines(text, path), start=1):
            if words := line.split():
                labels = list(itertools.takewhile(lambda word: word.startswith(_LABEL), words))
                rest = line.split(maxsplit=len(labels))[len(labels) :]
                yield number, [";".join(label.removeprefix(_LABEL) for label in labels), "".join(rest).rstrip()]


def csv_rows(text: TextIO, path: Path, *, delimiter: str = ",", quoted: bool = True) -> Iterator[tuple[int, list[str]]]:
    """Yield (row number from 1, fields) for each non-empty row; empty rows are counted, line breaks in a field are not.

    Raises:
        DataError: a quoted field is never closed, or is not followed by a delimiter, or a field is longer than
            MAX_FIELD_CHARACTERS or a row than MAX_ROW_CHARACTERS.
    """
    in_row = 0

    def lines() -> Iterator[str]:
        nonlocal in_row
        for line in bounded_lines(text, path):
            if (in_row := in_row + len(line)) > MAX_ROW_CHARACTERS:
                raise csv.Error(f"a row longer than {MAX_ROW_CHARACTERS:,} characters")
            yield line

    reader = csv.reader(
        lines(), delimiter=delimiter, strict=quoted, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    )
    line = 1
    try:
        for number in itertools.count(1):
            csv.field_size_limit(MAX_FIELD_CHARACTERS)  # a process-wide setting, which other code may have changed
            row = next(reader, None)
            if row is None:
                return
            if row:
                yield number, row
            line, in_row = reader.line_num + 1, 0
    except csv.Error as error:
        problem = f"a field longer than {MAX_FIELD_CHARACTERS:,} characters" if "field limit" in str(error) else error
        raise DataError(f"{path}, line {line}: {problem}; quote fields that hold quotes or delimiters") from None
