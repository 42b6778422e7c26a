"""Read a table file's rows to evaluate a checkpoint on: `evaluate CHECKPOINT --data other.csv`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.columns import Guess, is_number
from txcls.data.hashes import MIN_KNOWN, KnownTexts, is_sketch_of_part, known_texts, repeats, sketch
from txcls.data.html import are_html, html_note
from txcls.data.rows_in_classes import rows_in_classes
from txcls.data.tables.labelled import TableRows, read_labelled
from txcls.data.tables.table import Table, has_table_suffix
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.training.auto.split_rows import Splits, check_rows, split_rows
from txcls.wording import listed, percentage, shown


class FileRows(NamedTuple):
    """Rows of a file on which a checkpoint is evaluated.

    Attributes:
        notes: sentences about how the file was read.
        about: a description of the rows, which mentions if the checkpoint was trained on some of them.
        is_held_out: whether these are only the rows of the file that training held out.
        n_unknown: number of rows left out because the checkpoint does not know their class.
        learned: share of rows that the checkpoint was trained on, estimated unless the training texts were given; 1 if
            these are all its rows.
        numbers: the number of each row in the file, (N,).
        text_column, label_column: the columns that were read.
        fitted: if `is_held_out`, all other rows, to which the linear baseline was fitted.
    """

    labelled: LabelledTexts
    notes: list[str]
    about: str
    is_held_out: bool
    n_unknown: int
    learned: float
    numbers: list[int]
    text_column: str
    label_column: str
    fitted: LabelledTexts | None = None

    def metrics(self, accuracy: float) -> dict[str, float]:
        """Whether the rows were held out or else the share trained on, and accuracy with unknown classes as errors."""
        metrics: dict[str, float] = {"held_out": True} if self.is_held_out else {"learned": round(self.learned, 4)}
        if self.n_unknown:
            share = accuracy * len(self.labelled) / (len(self.labelled) + self.n_unknown)
            metrics |= {"accuracy_with_unknown": round(share, 6)}
        return metrics


def rows_of_file(
    checkpoint: Checkpoint,
    path: Path | Table,
    *,
    name: str | None = None,
    sheet: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    training_texts: Sequence[str] | None = None,
) -> FileRows:
    """All rows of a table file with labels that are classes of the checkpoint.

    If the checkpoint was trained on these rows by `train FILE`, only those that it held out for testing. Labels that
    differ from a class only in case also match. The file is read like the one that the checkpoint was trained on: the
    same options and, if it has them and no others are given, the same sheet and columns. Messages call the file
    `name`, if given. `path` may be a table that is already open, with its name and sheet. If `training_texts` are
    given, the share of rows trained on is counted instead of estimated.

    Raises:
        DataError: the file cannot be read, or no row has a label that is one of the classes.
    """
    rows, guess = read_labelled(
        path,
        checkpoint.config.data,
        classes=checkpoint.classes,
        name=name,
        sheet=sheet,
        text_column=text_column,
        label_column=label_column,
    )
    notes = [*rows.notes, *(guess.sentences if guess.is_guessed else guess.hints)]
    labelled = rows.labelled
    if (splits := _splits_in_training(checkpoint, labelled)) is not None:
        return _rows_of_training_file(checkpoint, rows, splits, guess, notes, name=name or path.name)
    known, which = rows_in_classes(labelled, checkpoint.classes, match_normalised=True)
    n_unknown, usual = len(labelled) - len(known), checkpoint.config.data.label_column
    # Numbers prove little: a column of counts has many of them too.
    matched = {checkpoint.classes[label] for label in known.labels}
    is_doubtful = label_column is None and guess.label_column != usual and all(map(is_number, matched))
    if not len(known) or (n_unknown and is_doubtful):
        problem = f"none of its labels is a class of {checkpoint.name}"
        if len(known):
            problem = f"no column '{shown(usual or 'label', limit=40)}' with the labels"
        raise DataError(
            f"{name or path.name}: {problem}; texts without labels can be "
            f"classified, but not evaluated. If another column has the labels, choose it: column "
            f"'{shown(guess.label_column, limit=40)}' has {listed(labelled.classes, limit=5)}, and the classes are "
            f"{listed(checkpoint.classes)}"
        )
    if n_unknown:
        known_ids = {labelled.labels[row] for row in which}
        unknown = [label for number, label in enumerate(labelled.classes) if number not in known_ids]
        notes.append(
            f"{n_unknown:,} rows have labels that {checkpoint.name} does not know ({listed(unknown)}); they are left "
            "out."
        )
    if not checkpoint.config.data.strip_html and are_html(known.texts):
        notes.append(html_note(checkpoint.config.data, checkpoint.tokenizer.config.cleaning))
    data = checkpoint.metrics.get("data", {})
    trained_on = known_texts(known.texts, data.get("sketch", ()))
    if training_texts is not None:
        n_learned = int(repeats(known.texts, training_texts).sum())
        trained_on = KnownTexts(n_learned / len(known), n_learned, len(known))
    elif "sketch" not in data and (name or path.name) == data.get("title"):
        trained_on = KnownTexts(0.8, None, len(known))  # an earlier version: its share of training and validation rows
    learned = trained_on.share
    about = f"{len(known):,} rows of {name or path.name}"
    notes += learned_note(checkpoint.name, trained_on)
    about += learned_words(learned)
    numbers = [rows.numbers[row] for row in which]
    return FileRows(known, notes, about, False, n_unknown, learned, numbers, guess.text_column, guess.label_column)


def learned_note(name: str, trained_on: KnownTexts) -> Iterator[str]:
    """Yield what to expect of results on these rows if the checkpoint of this name was trained on some."""
    if trained_on.share >= MIN_KNOWN:
        yield f"{name} was trained on {trained_on}, so these results are better than they would be on new texts."
    elif round(trained_on.share, 3):
        points = f"{100 * trained_on.share:.1f}"
        yield f"{name} was trained on {trained_on}: without these, its accuracy would be at most {points} points lower."


def learned_words(learned: float) -> str:
    """The end of a description of rows, which says what share of them was trained on; "" if it is small."""
    if learned == 1:
        return ", on which it was trained"
    return f", of which it was trained on about {percentage(learned, 0)}" if learned >= MIN_KNOWN else ""


def _splits_in_training(checkpoint: Checkpoint, rows: LabelledTexts) -> Splits | None:
    """How `train FILE` split these rows; None if the checkpoint was trained on other rows.

    If test rows were given separately, those of the result are meaningless.
    """
    data = checkpoint.metrics.get("data", {})
    if "sketch" not in data or "comparison" not in checkpoint.metrics or rows.classes != checkpoint.classes:
        return None
    config = checkpoint.config
    try:
        check_rows(rows)
        splits = split_rows(rows, rows if config.data.test_file else None, seed=config.train.seed)
    except DataError:
        return None
    if data["train_rows"] < len(splits.training):
        is_same = is_sketch_of_part(data["sketch"], splits.training.texts)
        splits = splits.limited_to(data["train_rows"], seed=config.train.seed)
    else:
        is_same = sketch(splits.training.texts)[: len(data["sketch"])] == data["sketch"]
    return splits if is_same else None


def _rows_of_training_file(
    checkpoint: Checkpoint, rows: TableRows, splits: Splits, guess: Guess, notes: list[str], *, name: str
) -> FileRows:
    """The rows that training held out or, if test rows were given separately, all rows."""
    columns = guess.text_column, guess.label_column
    test_file, is_file = checkpoint.config.data.test_file, f"{checkpoint.name} was trained on this file"
    if test_file is None:
        assert splits.test_rows is not None  # since no test rows were given
        n = f"{len(splits.test):,}"
        notes.append(f"{is_file}: only the {n} rows that were held out from training are used.")
        numbers = [rows.numbers[row] for row in splits.test_rows]
        return FileRows(
            splits.test, notes, f"{n} held-out rows of {name}", True, 0, 0.0, numbers, *columns, splits.fitted
        )
    n_rows = len(rows.labelled)
    learned = (checkpoint.metrics["data"]["train_rows"] + len(splits.validation)) / n_rows
    notes.append(
        f"{is_file}, of which no row was held out: the test rows are those of {shown(test_file, limit=80)}. These "
        "results are better than they would be on new texts."
    )
    about = f"{n_rows:,} rows of {name}{learned_words(learned)}"
    return FileRows(rows.labelled, notes, about, False, 0, learned, rows.numbers, *columns)


def require_fitted_rows(checkpoint: Checkpoint, rows: FileRows, data: Path | None) -> None:
    """Raise DataError if `rows` of `data` are of a user's own file but not held out from it, as `--linear` needs."""
    if checkpoint.config.data.dataset != "table" or rows.fitted is not None:
        return
    title = shown(checkpoint.metrics.get("data", {}).get("title", "FILE"), limit=80)
    reason = f"{title}; give --data {_where_now(title, data)}"
    if test_file := checkpoint.config.data.test_file:
        reason = f"{title}; none was held out, since the test rows are those of {shown(test_file, limit=80)}"
    raise DataError(
        f"--linear: needs the rows that were held out from the file {checkpoint.name} was trained on, {reason}"
    )


def which_file(checkpoint: Checkpoint) -> str:
    """What to do if a checkpoint that was trained on the user's own file is to be evaluated without a file."""
    title = shown(checkpoint.metrics.get("data", {}).get("title", "your own file"), limit=80)
    if test_file := checkpoint.config.data.test_file:
        name = shown(test_file, limit=80)
        where = f"give --data {_where_now(name)} or another file"
        return f"{checkpoint.name} was trained on {title} and tested on {name}; {where}"
    where = _where_now(title)
    return f"{checkpoint.name} was trained on {title}; give --data {where} to use its held-out rows, or another file"


def _where_now(name: str, data: Path | None = None) -> str:
    """The quoted path of the file that training read, in the present folder or that of `data`; FILE if not found.

    A checkpoint, which may be published, has only the file's name.
    """
    paths = [folder / Path(name).name for folder in (Path(), *([data.parent] if data else []))]
    return next((f"'{path}'" for path in paths if has_table_suffix(name) and path.is_file()), "FILE")
