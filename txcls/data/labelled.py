"""Labelled rows from Python or from a table, for training and evaluation."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from txcls.config import DataConfig
from txcls.data.columns import (
    AS_IN_TRAINING,
    SPECIFIED,
    Guess,
    columns_as_in_training,
    guess_columns,
    text_columns,
)
from txcls.data.html import are_html
from txcls.data.labels import label_name, label_notes, merged_names
from txcls.data.table import LeftOut, Table, left_out_note, row_text
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName, labelled_texts
from txcls.errors import DataError, Note, list_names, quote
from txcls.text.checks import check_column, check_texts, is_missing, row_name
from txcls.text.formatting import percentage


def rows_from_python(
    texts: Iterable[str], labels: Iterable[object], *, classes: tuple[str, ...] | None = None, kind: str = ""
) -> LabelledTexts:
    """Labelled rows from two iterables of the same length; `label_name` gives the class name of each label.

    The default for `classes` is all class names among the labels. `kind` describes the rows in messages.

    Raises:
        TypeError: a text is not a string, or a label is a list or bytes; the message gives the row number, from 0.
        ValueError: texts and labels differ in number.
        DataError: a row has no text or no label, a label is not among `classes`, or there are no rows.
    """
    text_kind, label_kind = f"{kind}texts", f"{kind}labels"
    checked_texts = check_texts(texts, name=text_kind)
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "M":
        labels = list(labels)  # tolist() of nanoseconds would be numbers
    values = check_column(labels, name=label_kind)
    if len(checked_texts) != len(values):
        raise ValueError(
            f"got {len(checked_texts):,} {text_kind} and {len(values):,} {label_kind}; expected one label for each text"
        )
    if not checked_texts:
        raise DataError(f"got no {text_kind}; expected texts and their labels")
    for row, text in enumerate(checked_texts):
        if not text.strip():
            raise DataError(f"{row_name(texts, row, name=text_kind)} is empty; fill it in or leave the row out")
    names = [_class_name(value, row_name(labels, row, name=label_kind)) for row, value in enumerate(values)]
    for row, name in enumerate(names):
        if classes is not None and name not in classes:
            where = row_name(labels, row, name=label_kind)
            raise DataError(f"{where} is {name!r:.60}; the classes are {list_names(classes)}")
    return labelled_texts(checked_texts, names, classes)


def _class_name(value: object, where: str) -> str:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # item() of nanoseconds would be a number
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a NumPy scalar
    if isinstance(value, bytes | list | dict | set):
        raise TypeError(f"{where} is a {type(value).__name__}; expected one label, such as a string or a number")
    if is_missing(value) or not (name := label_name(value)):
        raise DataError(f"{where}: no label; fill it in or leave the row out")
    return name


def dataset_from_rows(
    rows: LabelledTexts,
    validation: LabelledTexts | None = None,
    *,
    source: str = "your own texts, passed from Python",
) -> Dataset:
    """A data set of rows in memory; without `validation`, training holds out some of `rows`.

    Raises:
        DataError: the rows have fewer than two classes.
    """
    if len(rows.classes) < 2:
        raise DataError(f"all {len(rows):,} rows have the label {rows.classes[0]!r:.60}; expected at least two classes")
    splits: dict[SplitName, LabelledTexts] = {"train": rows}
    if validation is not None:
        splits["validation"] = validation
    info = DatasetInfo(name="table", title=source)
    return Dataset(info, rows.classes, "rows passed from Python", tuple(splits), read=splits.__getitem__)


MAX_READ_ROWS, MIN_LABELLED = 5000, 0.5
"""Maximum number of texts checked, and minimum share with a line beginning with the label for a warning."""


@dataclass(frozen=True, eq=False)
class TableRows:
    """N labelled texts of a table, their row numbers in the file, and sentences on what was left out or changed.

    `config` reads other tables in the same way; its `label_names` include the labels that were merged or dropped.
    """

    labelled: LabelledTexts
    numbers: list[int]
    notes: tuple[str, ...]
    config: DataConfig


def labelled_rows(table: Table, guess: Guess) -> TableRows:
    """The rows with a text and a label; numbers and dates become text, and `label_name` gives the class names.

    Raises:
        DataError: no row has a text and a label, or a text is a list or an object.
    """
    config, text_column, label_column = guess.config, guess.text_column, guess.label_column
    known_names = dict(config.label_names)
    rows: list[tuple[int, str, str]] = []
    left_out: dict[str, list[int]] = defaultdict(list)
    columns = [*text_columns(text_column, table.columns), label_column]
    uncalculated, renamed = table.rows_with_uncalculated_formulas(columns), Counter[str]()
    for number, values in table.rows(columns):
        text = row_text(values, text_column, where=f"{table.path}, {table.unit} {number}", config=config)
        name = label_name(values.get(label_column))
        if number in uncalculated and not (text.strip() and name):
            left_out["with an uncalculated formula"].append(number)
        elif not text.strip():
            left_out["without a text"].append(number)
        elif new_name := known_names.get(name, name):
            rows.append((number, text, new_name))
            renamed.update([name] * (name != new_name))
        else:
            left_out["with a placeholder as label" if name else "without a label"].append(number)
    if not rows:
        raise DataError(
            f"{table.path}: no row has both a text in column {quote(text_column)} and a label in column "
            f"{quote(label_column)}"
        )
    kinds = (LeftOut(len(lines), kind, f"{table.unit} {lines[0]:,}") for kind, lines in left_out.items())
    notes = [*table.notes, *left_out_note([*table.left_out, *kinds])]
    if renamed:
        name, _ = renamed.most_common(1)[0]
        counted = f"{renamed.total():,} labels are merged as in training"
        notes.append(Note(f"{counted}, such as {quote(name)} as {quote(known_names[name])}.", "merged"))
    if config.merge_labels and not known_names:  # names from training include the merged ones
        counts = Counter(name for *_, name in rows)
        merged = merged_names(counts)
        rows = [(number, text, new) for number, text, name in rows if (new := merged.get(name, name))]
        config = config.model_copy(update={"label_names": tuple(merged.items())})
        notes += label_notes(counts, merged=True)
    numbers, texts, names = map(list, zip(*rows, strict=True))
    return TableRows(labelled_texts(texts, names), numbers, tuple(notes), config)


def notes_before_training(rows: LabelledTexts, *, merged: bool = False) -> Iterator[str]:
    """Yield warnings about labels, and about problems in at most MAX_READ_ROWS random texts, each with its remedy.

    `merged` is passed to `label_notes`. HTML is noted only in texts from Python, since tables are read without it.
    """
    if not merged:
        yield from label_notes(Counter(rows.classes[label] for label in rows.labels))
    sample = rows.subset(np.random.default_rng(0).permutation(len(rows))[:MAX_READ_ROWS].tolist())
    if are_html(sample.texts):
        yield "Many texts are HTML. Keep only their visible text, with txcls.data.html.without_html(text)."
    names = [rows.classes[label].casefold() for label in sample.labels]
    lines = ([line.strip() for line in text.casefold().splitlines()] for text in sample.texts)
    begins = [any(line.startswith(name) for line in text) for text, name in zip(lines, names, strict=True)]
    if (share := sum(begins) / max(len(begins), 1)) >= MIN_LABELLED:
        example = rows.classes[sample.labels[begins.index(True)]]
        yield (
            f"Remove the label from the texts unless new ones have it too: {percentage(share, 0)} of them, or one of "
            f"their lines, begin with it, such as {quote(example)}."
        )


def read_labelled(
    path: Path,
    config: DataConfig | None = None,
    *,
    sheet: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    classes: Collection[str] = (),
) -> tuple[TableRows, Guess]:
    """The labelled rows of a file, and how its columns were guessed.

    Args:
        config: how a classifier's table was read; its columns are guessed if it is None or the file lacks them.
        sheet: the sheet of a workbook; the default is the one in `config` or else the one with the most rows.
        text_column, label_column: the columns, if the user named them.
        classes: the classifier's classes; if the file lacks the label column, the column that contains them is used.

    Raises:
        DataError: the file cannot be read, or its columns cannot be guessed.
    """
    known = config or DataConfig(dataset="table")
    table = Table(path, sheet=sheet, usual_sheet=known.sheet)
    columns = table.sample
    text_reason = label_reason = SPECIFIED
    known_text, known_label, _ = columns_as_in_training(columns, known)
    if label_column is None:
        label_column = _column_with_classes(columns, (*classes, *dict(known.label_names)), preferred=known_label)
        label_reason = "recognised by its values, which are classes"
        if label_column is None or label_column == known_label:
            label_column, label_reason = known_label, AS_IN_TRAINING
        elif known.n_columns is not None:  # columns without names are in another order
            known_text = None
    if text_column is None and known_text is not None:
        text_column, text_reason = known_text, AS_IN_TRAINING
    guess = guess_columns(
        columns,
        file=table.name,
        text_column=text_column,
        label_column=label_column,
        text_reason=text_reason,
        label_reason=label_reason,
    )
    return _read_as_configured(table, guess, known) if config is not None else (labelled_rows(table, guess), guess)


def _read_as_configured(table: Table, guess: Guess, config: DataConfig) -> tuple[TableRows, Guess]:
    """The rows of the guessed columns, read with the other settings of `config`, and the guess with these settings."""
    same = {name: getattr(config, name) for name in ("strip_html", "label_names", "merge_labels", "sheet")}
    guess = replace(guess, config=guess.config.model_copy(update=same))
    return labelled_rows(table, guess), guess


def _column_with_classes(
    columns: Mapping[str, Sequence[object]], classes: Collection[str], *, preferred: str | None
) -> str | None:
    """The column with the largest fraction of values among these classes; None if it is below one half.

    `preferred` is returned instead if half of its values are classes.
    """
    known = {label_name(name).casefold() for name in classes}

    def share(column: str) -> float:
        labels = [label for value in columns[column] if (label := label_name(value))]
        return sum(label.casefold() in known for label in labels) / max(len(labels), 1)

    best = preferred if preferred is not None and share(preferred) >= 0.5 else max(columns, key=share)
    return best if share(best) >= 0.5 else None


def table_dataset(config: DataConfig, path: Path) -> Dataset:
    """Open a table file with training rows.

    Raises:
        DataError: no such file, unknown format, or no such columns.
    """
    table = Table(path, sheet=config.sheet)
    guess = guess_columns(
        table.sample, file=table.name, text_column=config.text_column, label_column=config.label_column
    )
    train, guess = _read_as_configured(table, guess, config)
    rows = train.labelled
    return Dataset(
        info=DatasetInfo(name="table", title=f"{path.name}, your own table"),
        classes=rows.classes,
        source=path.name,
        splits=("train",),
        read=lambda _: rows,
        description=" ".join((*guess.sentences, *train.notes)).removesuffix("."),
    )
