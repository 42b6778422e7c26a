"""A user's own table: CSV, TSV, JSON Lines or Parquet, with one column of texts and one of labels.

Every problem is a DataError that names the file, the line (or row) and the column. A frame's index holds the line on
which each row begins (its row number in Parquet), so that later checks can still say where something is.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txcls.config import DataConfig
from txcls.data.rows import csv_rows, json_lines, parse_json, read_text
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

TEXT_NAMES = (
    *("text", "sentence", "message", "content", "utterance", "comment", "review", "body", "document", "headline"),
    *("title", "description", "question", "query", "input", "tweet"),
)
"""Usual names of a text column, the likeliest first; case does not matter."""
LABEL_NAMES = (
    *("label", "class", "category", "target", "intent", "sentiment", "topic", "section", "tag", "output", "y"),
    *("labels", "label_text", "class_name", "rating", "stars"),
)
"""Usual names of a label column, the likeliest first."""

_SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json", ".parquet")
_ENDINGS = (*_SUFFIXES, *(f"{suffix}.gz" for suffix in _SUFFIXES))
_DELIMITERS = ",;\t|"


def open_table(config: DataConfig, path: Path) -> Dataset:
    """A table file as training rows, or a folder that holds one named train.* and perhaps one named test.*.

    Raises:
        DataError: no such file, a format not known, columns not found, a row without text or label, or one class only.
    """
    files = _split_files(path) if path.is_dir() else {"train": path}
    train = _labelled(files["train"], config)
    names = {label for _, label in train}
    if len(names) < 2:
        raise DataError(
            f"{files['train']}: all {len(train):,} rows have the label {next(iter(names))!r}; "
            "wanted at least two classes to tell apart"
        )
    classes = tuple(sorted(names, key=_natural))
    readers: dict[SplitName, Callable[[], LabelledTexts]] = {"train": partial(_select, train, classes)}
    if "test" in files:
        readers["test"] = partial(_read_test, files["test"], config, classes)
    return Dataset(
        info=DatasetInfo(name="table", title=f"{path.name}, a table of your own"),
        classes=classes,
        source=", ".join(file.name for file in files.values()),
        splits=tuple(readers),
        readers=readers,
    )


def read_table(path: Path) -> "pd.DataFrame":
    """All rows and columns; those of CSV and TSV as strings, the others as they were written.

    Raises:
        DataError: no such file, a format not known, or a damaged, ragged or empty table.
    """
    import pandas as pd

    suffix = table_suffix(path)
    if not path.is_file():
        raise DataError(f"{path}: {'a folder, wanted a file' if path.is_dir() else 'no such file'}")
    if suffix == ".parquet":
        frame = _read_parquet(path)
    elif is_json(suffix):
        lines, objects = _read_json(path)
        frame = pd.DataFrame(objects, index=pd.Index(lines, name="line"), dtype=object)
    else:
        lines, header, rows = _read_delimited(path, tabs=suffix in (".tsv", ".tab"))
        frame = pd.DataFrame(rows, columns=pd.Index(header), index=pd.Index(lines, name="line"), dtype=object)
    if not len(frame):
        raise DataError(f"{path}: no rows")
    frame.columns = frame.columns.map(str)
    refuse_repeated(frame.columns, path)
    return frame


def refuse_repeated(columns: Iterable[str], path: Path) -> None:
    """Raise DataError where two columns have the same name."""
    if repeated := sorted(name for name, n in Counter(columns).items() if n > 1):
        raise DataError(f"{path}: column {repeated[0]!r} comes twice; rename one of them")


def find_text_column(columns: Sequence[str], *, path: Path, text_column: str | None) -> str:
    """The name of the column with the texts: the one asked for, or the one with a usual name, or the only one.

    Raises:
        DataError: there is no such column, or none looks like it.
    """
    found = _find_column(columns, text_column, TEXT_NAMES, path=path, what="text")
    if found is None:
        if len(columns) != 1:
            raise _unclear(columns, path=path, what="text")
        found = columns[0]
    return found


def find_columns(frame: "pd.DataFrame", *, path: Path, config: DataConfig) -> tuple[str, str]:
    """The names of the text and the label column: those configured, or usual names, or the other one of two.

    Raises:
        DataError: a column asked for is not there, or none looks like it.
    """
    columns = list(frame.columns)
    text = _find_column(columns, config.text_column, TEXT_NAMES, path=path, what="text")
    label = _find_column(columns, config.label_column, LABEL_NAMES, path=path, what="label")
    if len(columns) == 2 and text != label:
        text = text or next(column for column in columns if column != label)
        label = label or next(column for column in columns if column != text)
    if text is None:
        raise _unclear(columns, path=path, what="text")
    if label is None:
        raise _unclear(columns, path=path, what="label")
    if text == label:
        raise DataError(f"{path}: column {text!r} was to be both text and label; wanted two columns")
    return text, label


def _find_column(
    columns: Sequence[str], asked: str | None, usual: Sequence[str], *, path: Path, what: str
) -> str | None:
    if asked is not None:
        if asked not in columns:
            raise DataError(f"{path}: no column {asked!r} for the {what}; there are {_listed(columns)}")
        return asked
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _unclear(columns: Sequence[str], *, path: Path, what: str) -> DataError:
    return DataError(
        f"{path}: which column holds the {what}? There are {_listed(columns)}; name it with --{what}-column, or for "
        f"training with --set data.{what}_column=NAME"
    )


def _listed(columns: Iterable[str]) -> str:
    names = [repr(column if len(column) <= 40 else column[:40] + "…") for column in columns]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def table_suffix(path: Path) -> str:
    """The format that the file's name says, as one of the suffixes in lower case.

    Raises:
        DataError: a format not known.
    """
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in _SUFFIXES:
        raise DataError(f"{path}: format not known by its name; wanted {', '.join(_SUFFIXES)} (text formats also .gz)")
    return suffix


def is_json(suffix: str) -> bool:
    """Whether the rows of such a file are JSON objects."""
    return suffix in (".json", ".jsonl", ".ndjson")


def _split_files(folder: Path) -> dict[SplitName, Path]:
    files: dict[SplitName, Path] = {}
    splits: tuple[SplitName, ...] = ("train", "test")
    for split in splits:
        found = sorted(
            file
            for file in folder.iterdir()
            if file.name.startswith(f"{split}.") and file.name.lower().endswith(_ENDINGS)
        )
        if len(found) > 1:
            raise DataError(f"{folder}: {' and '.join(file.name for file in found)}: which is it? Name the file itself")
        if found:
            files[split] = found[0]
    if "train" not in files:
        raise DataError(
            f"{folder}: no train file there; wanted train{', train'.join(_SUFFIXES)}, or name the file itself"
        )
    return files


def _labelled(path: Path, config: DataConfig) -> list[tuple[str, str]]:
    """(text, label) of every row."""
    frame = read_table(path)
    text, label = find_columns(frame, path=path, config=config)
    _check_texts(frame, text, path=path)
    labels = [_label(value) for value in frame[label].tolist()]
    if empty := [i for i, name in enumerate(labels) if not name]:
        raise _missing(frame, empty, label, path=path, what="label")
    return list(zip(frame[text].tolist(), labels, strict=True))


def _check_texts(frame: "pd.DataFrame", column: str, *, path: Path) -> None:
    values: list[Any] = frame[column].tolist()
    absent = [i for i, value in enumerate(values) if value is None or value != value]
    if absent:
        raise _missing(frame, absent, column, path=path, what="text")
    for line, value in zip(frame.index, values, strict=True):
        if not isinstance(value, str):
            raise not_a_text(value, f"{path}, {frame.index.name} {line}", column)
    if empty := [i for i, value in enumerate(values) if not value.strip()]:
        raise _missing(frame, empty, column, path=path, what="text")


def not_a_text(value: object, where: str, column: str) -> DataError:
    """The error for a text column's value that is no string; `where` names file and line."""
    if value is None or value != value:
        return DataError(f"{where}: no text in column {column!r}; fill it in or remove the row")
    return DataError(
        f"{where}: column {column!r} holds {str(value)[:40]!r} ({type(value).__name__}), wanted a text; "
        "name another column"
    )


def _missing(frame: "pd.DataFrame", rows: Sequence[int], column: str, *, path: Path, what: str) -> DataError:
    more = f" (and {len(rows) - 1:,} more)" if len(rows) > 1 else ""
    return DataError(
        f"{path}, {frame.index.name} {frame.index[rows[0]]}{more}: no {what} in column {column!r}; "
        "fill it in or remove the row"
    )


def _label(value: object) -> str:
    """A label as a name: 3.0 (what an integer column with gaps reads as) is "3", no value is ""."""
    if isinstance(value, str):
        return value.strip()
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _natural(label: str) -> tuple[int, int, str]:
    """Whole numbers by size, before names by alphabet."""
    is_number = label.isascii() and label.removeprefix("-").isdigit() and len(label) < 19
    return (0, int(label), label) if is_number else (1, 0, label)


def _select(rows: Sequence[tuple[str, str]], classes: tuple[str, ...]) -> LabelledTexts:
    index = {name: i for i, name in enumerate(classes)}
    return LabelledTexts([text for text, _ in rows], [index[label] for _, label in rows], classes)


def _read_test(path: Path, config: DataConfig, classes: tuple[str, ...]) -> LabelledTexts:
    rows = _labelled(path, config)
    if unknown := sorted({label for _, label in rows} - set(classes)):
        raise DataError(
            f"{path}: label {unknown[0]!r} does not occur in the training rows; there are {_listed(classes)}"
        )
    return _select(rows, classes)


def _read_delimited(path: Path, *, tabs: bool) -> tuple[list[int], list[str], list[list[str]]]:
    text = read_text(path)
    delimiter = "\t" if tabs else sniff_delimiter(text[:100_000])
    try:
        numbered = list(csv_rows(text, path, delimiter=delimiter))
    except DataError:
        if not tabs:
            raise
        numbered = list(csv_rows(text, path, delimiter=delimiter, quoted=False))
    (_, header), *rows = delimited_rows(numbered, path)
    return [line for line, _ in rows], header, [row for _, row in rows]


def delimited_rows(numbered: Iterable[tuple[int, list[str]]], path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of header and rows, checked to be of one width.

    Raises:
        DataError: there is no header, or a row has another number of fields.
    """
    header: list[str] | None = None
    for line, fields in numbered:
        if header is None:
            header = fields = [name.strip() for name in fields]
        if len(fields) != len(header):
            raise DataError(
                f"{path}, line {line}: {len(fields)} fields, but the header has {len(header)} ({_listed(header)}); "
                "quote fields that hold the delimiter"
            )
        yield line, fields
    if header is None:
        raise DataError(f"{path}: empty; wanted a header line with the columns' names, then rows")


def sniff_delimiter(text: str) -> str:
    """The delimiter by which most of the first rows have as many fields as the header, more than one."""

    def agreement(delimiter: str) -> tuple[int, int]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            widths = [len(row) for row, _ in zip(reader, range(50), strict=False) if row]
        except csv.Error:
            return 0, 0
        if not widths or widths[0] < 2:
            return 0, 0
        return sum(width == widths[0] for width in widths), widths[0]

    return max(_DELIMITERS, key=agreement)


def _read_json(path: Path) -> tuple[list[int], list[dict[str, Any]]]:
    """JSON Lines, or one JSON array of objects."""
    text = read_text(path)
    if text.lstrip().startswith("["):
        numbered = list(enumerate(parse_json(text, str(path)), start=1))
        where = "item"
    else:
        numbered = list(json_lines(text, path))
        where = "line"
    objects = list(json_objects(numbered, path, where))
    return [number for number, _ in objects], [value for _, value in objects]


def json_objects(numbered: Iterable[tuple[int, Any]], path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same, checked to be objects; `where` says what the numbers count.

    Raises:
        DataError: a value is no object.
    """
    for number, value in numbered:
        if not isinstance(value, dict):
            raise DataError(
                f"{path}, {where} {number}: wanted an object with the columns as keys, got {str(value)[:40]!r}"
            )
        yield number, value


def open_parquet(path: Path) -> Any:
    """The Parquet file, to be read in pieces.

    Raises:
        DataError: it is none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
    return file


def _read_parquet(path: Path) -> "pd.DataFrame":
    import pandas as pd

    table = open_parquet(path).read()
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return pd.DataFrame(columns, index=pd.RangeIndex(1, table.num_rows + 1, name="row"), dtype=object)
