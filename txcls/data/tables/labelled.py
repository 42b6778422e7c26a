"""The labelled rows of a table: to train on, to measure a classifier on, and as the data set `table` of presets."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.classes import in_classes, label_name, labelled
from txcls.data.columns import Guess, columns_by_name, guess_columns
from txcls.data.limits import LONGEST_FIELD, MAX_ROWS
from txcls.data.tables.parquet import too_long
from txcls.data.tables.table import SUFFIXES, Table, cell_text, is_table, open_table
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError, listed, shown


@dataclass(frozen=True, eq=False)
class TableRows:
    """N labelled texts of a table.

    Attributes:
        labelled: texts, class ids and classes.
        numbers: the number of each row in the file (N,).
        notes: sentences on how the file was read and what was left out.
    """

    labelled: LabelledTexts
    numbers: Sequence[int]
    notes: tuple[str, ...]


class _LeftOut:
    """Rows that are left out for one reason; in a strict table the first is an error."""

    def __init__(self, table: Table, reason: str, refusal: str) -> None:
        self._table, self._reason, self._refusal = table, reason, refusal
        self._first = self._n = 0

    def add(self, number: int) -> None:
        if self._table.strict:
            raise DataError(f"{self._table.path}, {self._table.unit} {number}: {self._refusal}")
        self._first = self._first or number
        self._n += 1

    def sentences(self) -> list[str]:
        if not self._n:
            return []
        rows = "1 row" if self._n == 1 else f"{self._n:,} rows"
        were, first = ("was", "") if self._n == 1 else ("were", "the first is ")
        return [f"{rows} {self._reason} {were} left out ({first}{self._table.unit} {self._first:,})."]


def labelled_rows(table: Table, *, text_column: str, label_column: str) -> TableRows:
    """The rows with a text and a label; numbers and dates become text, and labels are named by `label_name`.

    Raises:
        DataError: no row has both, there are more than MAX_ROWS, or, if the table is strict, a row lacks one of them or
            its text is a number.
    """
    if table.n_rows is not None and table.n_rows > MAX_ROWS:
        raise _too_many(table, f"{table.n_rows:,} rows, wanted {MAX_ROWS:,} at most")
    missing = "; fill it in or remove the row"
    no_text = _LeftOut(table, "without a text", f"no text in column '{shown(text_column, limit=40)}'{missing}")
    no_label = _LeftOut(table, "without a label", f"no label in column '{shown(label_column, limit=40)}'{missing}")
    long = _LeftOut(table, f"with a text of more than {LONGEST_FIELD:,} characters", "")
    texts: list[str] = []
    names: list[str] = []
    numbers: list[int] = []
    forms: dict[str, str] = {}
    for number, values in table.rows([text_column, label_column]):
        if len(texts) >= MAX_ROWS:
            raise _too_many(table, f"more than {MAX_ROWS:,} rows")
        text, label = _text(table, number, values.get(text_column), text_column), values.get(label_column)
        if not text.strip():
            no_text.add(number)
        elif not (name := label_name(label)):
            no_label.add(number)
        elif len(text) > LONGEST_FIELD:
            if table.strict:
                raise too_long(len(text), f"{table.path}, {table.unit} {number}", text_column)
            long.add(number)
        else:
            texts.append(text)
            names.append(name)
            numbers.append(number)
            if isinstance(label, str):
                forms[label.strip()] = name
    if not texts:
        raise DataError(
            f"{table.path}: no row has both a text in column '{shown(text_column, limit=40)}' and a label in column "
            f"'{shown(label_column, limit=40)}'"
        )
    left_out = [sentence for reason in (no_text, no_label, long) for sentence in reason.sentences()]
    return TableRows(labelled(texts, names), numbers, (*table.notes, *left_out, *_merged(forms)))


def _text(table: Table, number: int, value: object, column: str) -> str:
    where = f"{table.path}, {table.unit} {number}"
    if table.strict and not isinstance(value, str | None) and value == value:
        raise DataError(
            f"{where}: column '{shown(column, limit=40)}' holds '{shown(value, limit=40)}' ({type(value).__name__}), "
            "wanted a text; name another column"
        )
    return cell_text(value, where=where, column=column)


def _merged(forms: dict[str, str]) -> list[str]:
    """A sentence on labels that are written in two ways, 1 and 1.0."""
    pairs = [f"'{name}' and '{form}'" for form, name in forms.items() if form != name and name in forms]
    return [f"Labels written in two ways are one class: {', '.join(pairs[:5])}."] if pairs else []


def _too_many(table: Table, problem: str) -> DataError:
    return DataError(
        f"{table.path}: {problem}, since training holds them in memory; use a part of them (`predict --input` reads "
        "any number)"
    )


def read_labelled(
    path: Path,
    *,
    name: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    classes: Collection[str] = (),
) -> tuple[TableRows, Guess]:
    """The labelled rows of another file for a classifier, and how its columns were found.

    Args:
        path: a table file.
        name: what notes call the file; None for its own name.
        text_column, label_column: the columns that the classifier was trained on; guessed where the file lacks them.
        classes: its classes; where the file lacks the label column it is the one that holds them.

    Raises:
        DataError: the file cannot be read, or its columns cannot be guessed.
    """
    table = open_table(path, name=name)
    columns = table.sample
    guess = guess_columns(
        columns,
        file=table.name,
        text_column=text_column if text_column in columns else None,
        label_column=label_column if label_column in columns else _column_of(columns, classes),
    )
    return labelled_rows(table, text_column=guess.text_column, label_column=guess.label_column), guess


def _column_of(columns: dict[str, list[object]], classes: Collection[str]) -> str | None:
    """The column with the largest share of these classes among its values, if that is at least half of them."""
    known = {label_name(name).casefold() for name in classes}
    best, most = None, 0.5
    for column, values in columns.items():
        labels = [label for value in values if (label := label_name(value))]
        share = sum(label.casefold() in known for label in labels) / max(len(labels), 1)
        if share >= most and (best is None or share > most):
            best, most = column, share
    return best


def table_dataset(config: DataConfig, path: Path) -> Dataset:
    """A table file as training rows, or a folder with a train.* and optionally a test.* file; flaws are refused.

    Raises:
        DataError: no such file, unknown format, columns not found, a row without text or label, only one class, or more
            than MAX_ROWS rows.
    """
    files = _split_files(path) if path.is_dir() else {"train": path}
    train = _strict_rows(files["train"], config)
    if len(train.classes) < 2:
        raise DataError(
            f"{files['train']}: all {len(train):,} rows have the label '{shown(train.classes[0], limit=40)}'; "
            "wanted at least two classes"
        )
    readers: dict[SplitName, Callable[[], LabelledTexts]] = {"train": lambda: train}
    if "test" in files:
        readers["test"] = partial(_test_rows, files["test"], config, train.classes)
    return Dataset(
        info=DatasetInfo(name="table", title=f"{path.name}, a table of your own"),
        classes=train.classes,
        source=", ".join(file.name for file in files.values()),
        splits=tuple(readers),
        readers=readers,
    )


def _split_files(folder: Path) -> dict[SplitName, Path]:
    files: dict[SplitName, Path] = {}
    splits: tuple[SplitName, ...] = ("train", "test")
    for split in splits:
        matching = sorted(
            file for file in folder.iterdir() if file.name.startswith(f"{split}.") and is_table(file.name)
        )
        if len(matching) > 1:
            names = " and ".join(file.name for file in matching)
            raise DataError(f"{folder}: {names}: which is it? Name the file itself")
        if matching:
            files[split] = matching[0]
    if "train" not in files:
        raise DataError(
            f"{folder}: no train file there; wanted train{', train'.join(SUFFIXES)}, or name the file itself"
        )
    return files


def _strict_rows(path: Path, config: DataConfig) -> LabelledTexts:
    table = open_table(path, strict=True)
    columns = (config.text_column, config.label_column)
    text, label = columns_by_name(table.columns, file=str(path), text_column=columns[0], label_column=columns[1])
    return labelled_rows(table, text_column=text, label_column=label).labelled


def _test_rows(path: Path, config: DataConfig, classes: tuple[str, ...]) -> LabelledTexts:
    rows = _strict_rows(path, config)
    if unknown := [name for name in rows.classes if name not in classes]:
        raise DataError(
            f"{path}: label '{shown(unknown[0], limit=40)}' does not occur in the training rows; there are "
            f"{listed(classes)}"
        )
    return in_classes(rows, classes)[0]
