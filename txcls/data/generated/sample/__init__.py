"""The sample set that ships with the package; see README.md beside it for what it is."""

from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.tables.delimited import csv_rows
from txcls.data.tables.lines import read_text
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError

INFO = DatasetInfo(
    name="sample",
    title="Everyday messages on six subjects, written by hand for this project",
    terms="CC0 1.0",
    citation="the txcls authors",
)

_Row = tuple[str, str, str]
_COLUMNS = ["text", "label", "split"]
_SPLITS: tuple[SplitName, ...] = ("train", "test")


def open_sample(config: DataConfig, path: Path | None) -> Dataset:
    """The shipped messages.csv, or another file of the same form, or the folder that holds one.

    Raises:
        DataError: the file is not of that form.
    """
    if path is None:
        with resources.as_file(resources.files(__name__) / "messages.csv") as shipped:
            rows = _read(shipped)
        source = "the txcls package"
    else:
        file = path / "messages.csv" if path.is_dir() else path
        rows = _read(file)
        source = file.name
    classes = tuple(sorted({label for _, label, _ in rows}))
    splits = tuple(split for split in _SPLITS if any(row[2] == split for row in rows))
    readers = {split: partial(_select, rows, classes, split) for split in splits}
    return Dataset(info=INFO, classes=classes, source=source, splits=splits, readers=readers)


def _read(path: Path) -> Sequence[_Row]:
    lines = csv_rows(read_text(path), path)
    if (header := next(lines, (1, []))[1]) != _COLUMNS:
        raise DataError(f"{path}: columns {', '.join(header)!r}, wanted 'text, label, split'")
    rows: list[_Row] = []
    for number, row in lines:
        if len(row) != len(_COLUMNS):
            raise DataError(f"{path}, row {number}: {len(row)} fields, wanted text, label, split")
        text, label, split = row
        if not text.strip() or not label.strip() or split not in _SPLITS:
            raise DataError(f"{path}, row {number}: wanted a text, a label and `train` or `test`, got {row!r}")
        rows.append((text, label, split))
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows


def _select(rows: Sequence[_Row], classes: tuple[str, ...], split: SplitName) -> LabelledTexts:
    chosen = [(text, classes.index(label)) for text, label, of in rows if of == split]
    return LabelledTexts([text for text, _ in chosen], [label for _, label in chosen], classes)
