"""The user's own table as a data set: a text and a label column in CSV, TSV, JSON Lines or Parquet.

Every problem is a DataError that names the file, the line (or row) and the column.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.limits import LONGEST_FIELD, MAX_ROWS, SAMPLE_CHARACTERS, SAMPLE_ROWS
from txcls.data.tables.parquet import Row, open_parquet
from txcls.data.tables.stream import TableStream
from txcls.data.tables.table import ENDINGS, SUFFIXES, check_text, find_columns
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError, listed, shown

_TO_KNOW_COLUMNS = 10_000
"""Rows of a JSON file whose keys determine its columns."""


def open_table(config: DataConfig, path: Path, *, sampled: bool = False) -> Dataset:
    """A table file as training rows, or a folder with a train.* and optionally a test.* file.

    `sampled` reads only the first SAMPLE_ROWS rows of each file; the others may have further labels.

    Raises:
        DataError: no such file, unknown format, columns not found, a row without text or label, only one class, or more
            than MAX_ROWS rows.
    """
    files = _split_files(path) if path.is_dir() else {"train": path}
    train, is_whole = _labelled(files["train"], config, sampled=sampled)
    names = {label for _, label in train}
    if len(names) < 2 and is_whole:
        raise DataError(
            f"{files['train']}: all {len(train):,} rows have the label '{shown(next(iter(names)), limit=40)}'; "
            "wanted at least two classes"
        )
    readers: dict[SplitName, Callable[[], LabelledTexts]] = {}
    if "test" not in files:
        classes = tuple(sorted(names, key=natural_order))
    elif sampled:
        test, whole = _labelled(files["test"], config, sampled=True)
        is_whole = is_whole and whole
        classes = tuple(sorted(names | {label for _, label in test}, key=natural_order))
        readers["test"] = partial(_select, test, classes)
    else:
        classes = tuple(sorted(names, key=natural_order))
        readers["test"] = partial(_read_test, files["test"], config, classes)
    readers = {"train": partial(_select, train, classes), **readers}
    return Dataset(
        info=DatasetInfo(name="table", title=f"{path.name}, a table of your own"),
        classes=classes,
        source=", ".join(file.name for file in files.values()),
        splits=tuple(readers),
        description="" if is_whole else f"a sample: the first {len(train):,} rows; the file has more",
        readers=readers,
    )


def _split_files(folder: Path) -> dict[SplitName, Path]:
    files: dict[SplitName, Path] = {}
    splits: tuple[SplitName, ...] = ("train", "test")
    for split in splits:
        found = sorted(
            file
            for file in folder.iterdir()
            if file.name.startswith(f"{split}.") and file.name.lower().endswith(ENDINGS)
        )
        if len(found) > 1:
            raise DataError(f"{folder}: {' and '.join(file.name for file in found)}: which is it? Name the file itself")
        if found:
            files[split] = found[0]
    if "train" not in files:
        raise DataError(
            f"{folder}: no train file there; wanted train{', train'.join(SUFFIXES)}, or name the file itself"
        )
    return files


@dataclass
class _Missing:
    """Counts rows with a missing value and remembers the first."""

    what: str
    column: str
    where: str
    first: int = 0
    n: int = 0

    def add(self, place: int) -> None:
        self.first = self.first or place
        self.n += 1

    def check(self) -> None:
        if self.n:
            more = f" (and {self.n - 1:,} more)" if self.n > 1 else ""
            raise DataError(
                f"{self.where} {self.first}{more}: no {self.what} in column {self.column!r}; "
                "fill it in or remove the row"
            )


def _labelled(path: Path, config: DataConfig, *, sampled: bool = False) -> tuple[list[tuple[str, str]], bool]:
    """(text, label) of the rows read, and whether these are all rows."""
    table = TableStream(path)
    text, label, numbered = _columns(table, config)
    where = f"{path}, {table.places}"
    no_text, no_label = _Missing("text", text, where), _Missing("label", label, where)
    strange: tuple[int, object] | None = None
    rows: list[tuple[str, str]] = []
    characters, is_whole = 0, True
    for number, (place, row) in enumerate(numbered):
        if sampled and (number >= SAMPLE_ROWS or characters > SAMPLE_CHARACTERS):
            is_whole = False
            break
        if number >= MAX_ROWS:
            raise _too_many(path, None)
        value, name = row.get(text), label_name(row.get(label))
        if not name:
            no_label.add(place)
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            no_text.add(place)
        elif strange is None and (not isinstance(value, str) or len(value) > LONGEST_FIELD):
            strange = place, value
        if not (no_text.n or no_label.n or strange):
            rows.append((str(value), name))
            characters += len(rows[-1][0])
    no_text.check()
    if strange:
        check_text(strange[1], f"{where} {strange[0]}", text)
    no_label.check()
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows, is_whole


def _columns(table: TableStream, config: DataConfig) -> tuple[str, str, Iterator[tuple[int, Row]]]:
    """Names of the text and the label column, and the rows with at least these columns."""
    if table.suffix == ".parquet":
        file = open_parquet(table.path)
        if file.metadata.num_rows > MAX_ROWS:
            raise _too_many(table.path, file.metadata.num_rows)
        table.refuse_columns(file.schema_arrow.names)
        text, label = find_columns(file.schema_arrow.names, path=table.path, config=config)
        return text, label, table.numbered_rows([text, label])
    numbered = table.numbered_rows()
    first = list(itertools.islice(numbered, _TO_KNOW_COLUMNS if table.is_json else 1))
    if not first:
        raise DataError(f"{table.path}: no rows")
    columns = list(dict.fromkeys(name for _, row in first for name in row))
    table.refuse_columns(columns)
    text, label = find_columns(columns, path=table.path, config=config)
    return text, label, itertools.chain(first, numbered)


def _too_many(path: Path, rows: int | None) -> DataError:
    there = f"more than {MAX_ROWS:,} rows" if rows is None else f"{rows:,} rows, wanted {MAX_ROWS:,} at most"
    return DataError(
        f"{path}: {there}, since training holds them in memory; use a part of them (`predict --input` reads any number)"
    )


def label_name(value: object) -> str:
    """A label as a name: 3.0 (from an integer column with gaps) is "3", a missing value is ""."""
    if isinstance(value, str):
        return value.strip()
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def natural_order(label: str) -> tuple[int, int, str]:
    """Sort key: whole numbers by value, then names alphabetically."""
    is_number = label.isascii() and label.removeprefix("-").isdigit() and len(label) < 19
    return (0, int(label), label) if is_number else (1, 0, label)


def _select(rows: Sequence[tuple[str, str]], classes: tuple[str, ...]) -> LabelledTexts:
    index = {name: i for i, name in enumerate(classes)}
    return LabelledTexts([text for text, _ in rows], [index[label] for _, label in rows], classes)


def _read_test(path: Path, config: DataConfig, classes: tuple[str, ...]) -> LabelledTexts:
    rows = _labelled(path, config)[0]
    if unknown := sorted({label for _, label in rows} - set(classes)):
        raise DataError(
            f"{path}: label '{shown(unknown[0], limit=40)}' does not occur in the training rows; there are "
            f"{listed(classes)}"
        )
    return _select(rows, classes)
