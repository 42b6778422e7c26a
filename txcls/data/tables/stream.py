"""CSV, TSV, JSON Lines and Parquet tables of any size, read a few rows at a time in constant memory.

A first pass, `survey`, counts and checks all rows, so that a bad one is reported before any work is done.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from txcls.data.limits import MAX_COLUMNS
from txcls.data.tables.lines import csv_rows, json_items, json_lines, open_text, refuse_unreachable
from txcls.data.tables.parquet import Row, open_parquet, parquet_rows
from txcls.data.tables.table import (
    check_text,
    delimited_rows,
    find_text_column,
    is_json,
    json_objects,
    refuse_columns,
    sniff_delimiter,
    table_suffix,
)
from txcls.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

SNIFFED = 100_000
"""Characters used to guess the delimiter."""


@dataclass(frozen=True)
class Survey:
    """The result of one pass over a table."""

    rows: int
    columns: tuple[str, ...]
    text_column: str
    schema: "pa.Schema"
    """Arrow types of the columns: as in a Parquet file, strings for CSV and TSV, inferred from the values for JSON."""


class TableStream:
    """The rows of one file; every iteration starts from the beginning."""

    def __init__(self, path: Path) -> None:
        """Open the file and detect its dialect.

        Raises:
            DataError: no such file, unknown format, or no header.
        """
        self.path = path
        self.suffix = table_suffix(path)
        refuse_unreachable(path)
        if not path.is_file():
            raise DataError(f"{path}: {'a folder, wanted a file' if path.is_dir() else 'no such file'}")
        self._read: Callable[[], Iterator[tuple[int, Row]]]
        self.places = "line"
        """The unit of row numbers in messages for this file."""
        if self.suffix == ".parquet":
            self.places, self._read = "row", self._parquet_rows
        elif is_json(self.suffix):
            with open_text(path) as text:
                is_array = text.read(SNIFFED).lstrip().startswith("[")
            self.places, self._read = ("item", self._json_array) if is_array else ("line", self._json_rows)
        else:
            self._read = self._delimited_rows
            self._delimiter, self._quoted = self._dialect()

    def rows(self) -> Iterator[Row]:
        """All rows in their order."""
        return (row for _, row in self._read())

    @property
    def is_json(self) -> bool:
        """Whether the rows are JSON objects, whose columns may differ."""
        return is_json(self.suffix)

    def numbered_rows(self, columns: list[str] | None = None) -> Iterator[tuple[int, Row]]:
        """(line, item or row number, values) of all rows; of a Parquet file only the named columns are read."""
        return self._parquet_rows(columns) if self.suffix == ".parquet" else self._read()

    def refuse_columns(self, columns: Sequence[str]) -> None:
        """Raise DataError if two columns have the same name, or there are too many."""
        refuse_columns(columns, self.path)

    def parts(self, size: int, *, wanted: Callable[[int], bool]) -> Iterator[tuple[int, list[Row]]]:
        """(number from 0, rows) of the wanted pieces of `size` rows; the last piece may be shorter."""
        rows = self.rows()
        for number in itertools.count():
            if wanted(number):
                if not (part := list(itertools.islice(rows, size))):
                    return
                yield number, part
            elif next(itertools.islice(rows, size - 1, size), None) is None:
                return

    def survey(self, *, text_column: str | None = None, typed: bool = False) -> Survey:
        """Count and check all rows.

        Args:
            text_column: the column with the texts; None looks for a usual name.
            typed: also infer the Arrow types of JSON values, which takes longer.

        Raises:
            DataError: a damaged or ragged row, a row without a text, no rows, or no column that looks like texts.
        """
        import pyarrow as pa

        if self.suffix == ".parquet":
            file = open_parquet(self.path)
            refuse_columns(file.schema_arrow.names, self.path)
            column = find_text_column(file.schema_arrow.names, path=self.path, text_column=text_column)
            counted = 0
            for place, row in self._parquet_rows([column]):
                self._check_text(place, row, column)
                counted = place
            return self._not_empty(Survey(counted, tuple(file.schema_arrow.names), column, file.schema_arrow))
        columns: dict[str, None] = {}  # in order of first occurrence
        schema = pa.schema([])
        numbered = self._read()
        counted, column = 0, ""
        while piece := list(itertools.islice(numbered, 10_000)):
            for _, row in piece if is_json(self.suffix) or not columns else ():
                columns.update(dict.fromkeys(row))
                if len(columns) > MAX_COLUMNS:
                    self.refuse_columns(list(columns))
            column = column or find_text_column(list(columns), path=self.path, text_column=text_column)
            for place, row in piece:
                self._check_text(place, row, column)
            if typed and is_json(self.suffix):
                schema = self._widened(schema, [row for _, row in piece], piece[0][0])
            counted += len(piece)
        if not is_json(self.suffix):
            schema = pa.schema([(name, pa.string()) for name in columns])
        return self._not_empty(Survey(counted, tuple(columns), column, schema))

    def _not_empty(self, survey: Survey) -> Survey:
        if not survey.rows:
            raise DataError(f"{self.path}: no rows")
        return survey

    def _check_text(self, place: int, row: Row, column: str) -> None:
        check_text(row.get(column), f"{self.path}, {self.places} {place}", column)

    def _widened(self, schema: "pa.Schema", rows: list[Row], place: int) -> "pa.Schema":
        """The common types of the columns so far and of these rows."""
        import pyarrow as pa

        try:
            own = pa.schema([(name, pa.array([row.get(name) for row in rows]).type) for name in _names(rows)])
            return pa.unify_schemas([schema, own], promote_options="permissive")
        except (pa.ArrowException, UnicodeEncodeError, OverflowError, RecursionError) as error:
            raise DataError(
                f"{self.path}, from {self.places} {place} on: one column holds values of different kinds "
                f"or no valid Unicode ({str(error).splitlines()[0]}), which Parquet cannot; write .jsonl instead"
            ) from None

    def _dialect(self) -> tuple[str, bool]:
        """The delimiter, and whether quotes are special (in TSV they may be ordinary characters)."""
        if self.suffix not in (".tsv", ".tab"):
            with open_text(self.path) as text:
                return sniff_delimiter(text.read(SNIFFED)), True
        try:
            with open_text(self.path) as text:
                for _ in csv_rows(text, self.path, delimiter="\t"):
                    pass
        except DataError:
            return "\t", False
        return "\t", True

    def _delimited_rows(self) -> Iterator[tuple[int, Row]]:
        with open_text(self.path) as text:
            numbered = csv_rows(text, self.path, delimiter=self._delimiter, quoted=self._quoted)
            rows = delimited_rows(numbered, self.path)
            _, header = next(rows)
            refuse_columns(header, self.path)
            for line, fields in rows:
                yield line, dict(zip(header, fields, strict=True))

    def _json_rows(self) -> Iterator[tuple[int, Row]]:
        with open_text(self.path, newline="\n") as text:
            yield from json_objects(json_lines(text, self.path), self.path, "line")

    def _json_array(self) -> Iterator[tuple[int, Row]]:
        with open_text(self.path) as text:
            yield from json_objects(json_items(text, self.path), self.path, "item")

    def _parquet_rows(self, columns: list[str] | None = None) -> Iterator[tuple[int, Row]]:
        return parquet_rows(self.path, columns)


def _names(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))
