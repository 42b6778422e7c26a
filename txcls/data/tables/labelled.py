"""The labelled rows of a table, for training and evaluation, and as the data set `table`."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.columns import AS_IN_TRAINING, Guess, columns_as_in_training, guess_columns, text_columns
from txcls.data.labels import (
    label_key,
    label_name,
    label_notes,
    merged_names,
    names_from_code_book,
    natural_order,
    unexplained_labels,
)
from txcls.data.rows_in_classes import labelled_texts, rows_in_classes
from txcls.data.tables.table import SUFFIXES, Table, has_table_suffix, row_text
from txcls.data.text_notes import text_notes
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError
from txcls.wording import Note, listed, shown


def guess_table(
    table: Table,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    strip_headers: bool = False,
    merge_labels: bool = False,
    code_book: str | None = None,
) -> Guess:
    """The columns to train on, as by `guess_columns`, and the sheet that explains the labels, if there is one.

    `strip_headers` removes e-mail headers from the texts; `merge_labels` merges labels that seem to be spellings of one
    (`label_variants`), and leaves out placeholders such as "n/a"; `code_book` is the sheet to name the classes after.

    Raises:
        DataError: as for `guess_columns`, or the sheet does not explain the labels.
    """
    guess = guess_columns(table.sample, file=table.name, text_column=text_column, label_column=label_column)
    labels = set(filter(None, map(label_name, table.sample[guess.label_column])))
    books = {sheet: names for sheet, rows in table.code_books() if (names := names_from_code_book(rows, labels))}
    if code_book is not None and code_book not in books:
        raise DataError(
            f"{table.name}: sheet '{shown(code_book, limit=40)}' does not explain the labels of column "
            f"'{shown(guess.label_column, limit=40)}'; expected a column with each label once, and their meanings in "
            "the next column"
        )
    guess = replace(
        guess,
        strip_headers=strip_headers,
        merge_labels=merge_labels,
        sheet=None if table.sheet in table.sheets[:1] else table.sheet,
        code_book=code_book or next(iter(books), None),
    )
    if guess.code_book is None:
        return guess
    names = books[guess.code_book]
    if code_book is not None:
        return replace(guess, label_names=names)
    code, name = next(iter(names.items()))
    example = f"'{shown(name, limit=40)}' for '{shown(code, limit=40)}'"
    sentence = f"Sheet '{shown(guess.code_book, limit=40)}' explains the labels, such as {example}."
    hint = Note(sentence, "code-book", code_book=str(guess.code_book))
    return replace(guess, hints=(*guess.hints, hint))


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
    texts: list[str] = []
    names: list[str] = []
    numbers: list[int] = []
    written: dict[tuple[str, str], set[str]] = defaultdict(set)  # labels as in the file, by class and key
    no_text: list[int] = []
    no_label: list[int] = []
    text_column, label_column, config = guess.text_column, guess.label_column, guess.config
    for number, values in table.rows([*text_columns(text_column, table.columns), label_column]):
        label = values.get(label_column)
        where = f"{table.path}, {table.unit} {number}"
        text = row_text(values, text_column, where=where, config=config)
        if not text.strip():
            no_text.append(number)
        elif not (name := guess.class_name(label)):
            no_label.append(number)
        else:
            texts.append(text)
            names.append(name)
            numbers.append(number)
            if isinstance(label, str):
                written[name, label_key(label_name(label))].add(label.strip())
    if not texts:
        raise DataError(
            f"{table.path}: no row has both a text in column '{shown(text_column, limit=40)}' and a label in column "
            f"'{shown(label_column, limit=40)}'"
        )
    notes = [*table.notes]
    for reason, rows in (
        ("without a text", no_text),
        ("without a label", no_label),
    ):
        if len(rows) == 1:
            notes.append(f"1 row {reason} was left out ({table.unit} {rows[0]:,}).")
        elif rows:
            notes.append(f"{len(rows):,} rows {reason} were left out (the first is {table.unit} {rows[0]:,}).")
    if pairs := [f"'{first}' and '{other}'" for first, *others in map(sorted, written.values()) for other in others]:
        more = ", …" if len(pairs) > 8 else ""
        notes.append(f"Labels written in two ways are one class: {', '.join(pairs[:8])}{more}.")
    explained = guess.label_names
    if guess.merge_labels:
        counts = Counter(names)
        merged = merged_names(counts)
        names = [merged.get(name, name) for name in names]
        kept = [index for index, name in enumerate(names) if name]
        texts, numbers, names = ([values[index] for index in kept] for values in (texts, numbers, names))
        explained = {code: merged.get(name, name) for code, name in explained.items()}
        config = config.model_copy(update={"label_names": tuple({**explained, **merged}.items())})
        notes += label_notes(counts, merged=True)
    codes = {name: name for name in names} | {name: code for code, name in config.label_names[::-1] if guess.code_book}
    classes = sorted(set(names), key=lambda name: natural_order(codes[name]))
    if guess.code_book:
        notes += unexplained_labels(classes, explained)
    return TableRows(labelled_texts(texts, names, tuple(classes)), numbers, tuple(notes), config)


def notes_before_training(rows: LabelledTexts, *, merged: bool = False) -> Iterator[str]:
    """Yield warnings about labels and texts before training; for the arguments see `label_notes` and `text_notes`."""
    if not merged:
        yield from label_notes(Counter(rows.classes[label] for label in rows.labels))
    yield from text_notes(rows)


def read_labelled(
    path: Path | Table,
    config: DataConfig | None = None,
    *,
    name: str | None = None,
    sheet: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    classes: Collection[str] = (),
) -> tuple[TableRows, Guess]:
    """The labelled rows of a file, and how its columns were guessed.

    Args:
        path: the file, or its table if it is already open; `name` and `sheet` are then the table's.
        config: how a classifier's table was read; its columns are guessed if it is None or the file lacks them.
        name: the file's name, for notes, if `path` is a temporary file.
        sheet: the sheet of a workbook; the default is the one in `config` or else the one with the most rows.
        text_column, label_column: the columns, if the user named them.
        classes: the classifier's classes; if the file lacks the label column, the column that contains them is used.

    Raises:
        DataError: the file cannot be read, or its columns cannot be guessed.
    """
    known = config or DataConfig(dataset="table")
    table = path if isinstance(path, Table) else Table(path, name=name, sheet=sheet, usual_sheet=known.sheet)
    columns = table.sample
    reasons = {}
    known_text, known_label = columns_as_in_training(columns, known)
    if label_column is None:
        label_column = _column_with_classes(columns, (*classes, *dict(known.label_names)), preferred=known_label)
        reasons["label_reason"] = "recognised by its values, which are classes"
        if label_column is None or label_column == known_label:
            label_column, reasons["label_reason"] = known_label, AS_IN_TRAINING
        elif known.n_columns is not None:  # columns without names are in another order
            known_text = None
    if text_column is None and known_text is not None:
        text_column, reasons["text_reason"] = known_text, AS_IN_TRAINING
    guess = guess_columns(columns, file=table.name, text_column=text_column, label_column=label_column, **reasons)
    if config is not None:
        guess = replace(_as_configured(guess, config), merge_labels=False)  # its names include the merged ones
    return labelled_rows(table, guess), guess


def _as_configured(guess: Guess, config: DataConfig) -> Guess:
    return replace(
        guess,
        strip_html=config.strip_html,
        strip_headers=config.strip_headers,
        label_names=dict(config.label_names),
        merge_labels=config.merge_labels,
        sheet=config.sheet,
    )


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
    """Open a table file with training rows, or a folder with a train.* and optionally a test.* file.

    Raises:
        DataError: no such file, unknown format, no such columns, only one class, or a test row with another class.
    """
    files = _split_files(path) if path.is_dir() else {"train": path}
    table = Table(files["train"], sheet=config.sheet)
    guess = guess_columns(
        table.sample, file=table.name, text_column=config.text_column, label_column=config.label_column
    )
    if guess.strip_html and not config.strip_html:
        hint = "Many texts are HTML; data.strip_html = true reads only their visible text."
        guess = replace(guess, hints=(*guess.hints, hint))
    guess = _as_configured(guess, config)
    train = labelled_rows(table, guess)
    classes = train.labelled.classes
    if len(classes) < 2:
        raise DataError(
            f"{table.path}: all {len(train.labelled):,} rows have the label '{shown(classes[0], limit=40)}'; "
            "expected at least two classes"
        )
    splits: dict[SplitName, LabelledTexts] = {"train": train.labelled}
    if "test" in files:
        test, _ = read_labelled(files["test"], train.config)
        if unknown := [name for name in test.labelled.classes if name not in classes]:
            raise DataError(
                f"{files['test']}: label '{shown(unknown[0], limit=40)}' does not occur in the training rows; their "
                f"labels are {listed(classes)}"
            )
        splits["test"] = rows_in_classes(test.labelled, classes)[0]
    return Dataset(
        info=DatasetInfo(name="table", title=f"{path.name}, your own table"),
        classes=classes,
        source=", ".join(file.name for file in files.values()),
        splits=tuple(splits),
        read=splits.__getitem__,
        description=" ".join((*guess.sentences, *train.notes)).removesuffix("."),
    )


def _split_files(folder: Path) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for split in ("train", "test"):
        matching = sorted(file for file in folder.glob(f"{split}.*") if has_table_suffix(file.name))
        if len(matching) > 1:
            raise DataError(f"{folder}: several {split} files ({listed(file.name for file in matching)}); keep one")
        if matching:
            files[split] = matching[0]
    if "train" not in files:
        raise DataError(
            f"{folder}: no train file in this folder; expected train{', train'.join(SUFFIXES)}, or give the file itself"
        )
    return files
