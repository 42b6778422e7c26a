"""Read a table file's rows to evaluate a checkpoint on: `evaluate CHECKPOINT --data other.csv`."""

from pathlib import Path
from typing import NamedTuple

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.hashes import MIN_KNOWN, known_share, sketch
from txcls.data.rows_in_classes import rows_in_classes
from txcls.data.tables.labelled import read_labelled
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.training.auto.split_rows import check_rows, split_rows
from txcls.wording import listed, percentage, shown


class FileRows(NamedTuple):
    """Rows of a file on which a checkpoint is evaluated.

    Attributes:
        notes: sentences about how the file was read.
        about: a description of the rows, which mentions if the checkpoint was trained on some of them.
        is_held_out: whether these are only the rows of the file that training held out.
        n_unknown: number of rows left out because the checkpoint does not know their class.
        learned: estimated share of rows that the checkpoint was trained on.
    """

    labelled: LabelledTexts
    notes: list[str]
    about: str
    is_held_out: bool
    n_unknown: int
    learned: float

    def with_unknown(self, accuracy: float) -> float:
        """The accuracy if rows of unknown classes count as errors."""
        return accuracy * len(self.labelled) / (len(self.labelled) + self.n_unknown)


def rows_of_file(checkpoint: Checkpoint, path: Path, *, name: str | None = None, sheet: str | None = None) -> FileRows:
    """All rows of a table file with labels that are classes of the checkpoint.

    If the checkpoint was trained on these rows by `train FILE`, only those that it held out for testing. Labels that
    differ from a class only in case also match. The columns are those that the checkpoint was trained on if the file
    has them, otherwise a guess. Messages call the file `name`, if given.

    Raises:
        DataError: the file cannot be read, or no row has a label that is one of the classes.
    """
    rows, guess = read_labelled(path, checkpoint.config.data, classes=checkpoint.classes, name=name, sheet=sheet)
    notes = [*rows.notes, *(guess.sentences if guess.is_guessed else guess.hints)]
    labelled = rows.labelled
    if (held_out := _held_out_rows(checkpoint, labelled)) is not None:
        notes.append(
            f"{checkpoint.name} was trained on this file: only the {len(held_out):,} rows that were held out from "
            "training are used."
        )
        return FileRows(held_out, notes, f"{len(held_out):,} held-out rows of {name or path.name}", True, 0, 0.0)
    known, which = rows_in_classes(labelled, checkpoint.classes, match_normalised=True)
    if not len(known):
        raise DataError(
            f"{name or path.name}: none of its labels ({listed(labelled.classes)}) is a class of {checkpoint.name} "
            f"({listed(checkpoint.classes)})"
        )
    if n_unknown := len(labelled) - len(known):
        known_ids = {labelled.labels[row] for row in which}
        unknown = [label for number, label in enumerate(labelled.classes) if number not in known_ids]
        notes.append(
            f"{n_unknown:,} rows have labels that {checkpoint.name} does not know ({listed(unknown)}); they are left "
            "out."
        )
    data = checkpoint.metrics.get("data", {})
    learned = known_share(known.texts, data.get("sketch", ()))
    if "sketch" not in data and (name or path.name) == data.get("title"):
        learned = 0.8  # a checkpoint of an earlier version: the share of its training and validation rows
    about = f"{len(known):,} rows of {name or path.name}"
    if learned >= MIN_KNOWN:
        share = f"about {percentage(learned, 0)}"
        notes.append(
            f"{checkpoint.name} was trained on {share} of these rows, so these results are better than they would be "
            "on new texts."
        )
        about += f", of which it was trained on {share}"
    return FileRows(known, notes, about, False, n_unknown, learned)


def _held_out_rows(checkpoint: Checkpoint, rows: LabelledTexts) -> LabelledTexts | None:
    """The test rows that `train FILE` held out, if it was trained on exactly these rows; otherwise None."""
    data = checkpoint.metrics.get("data", {})
    if "sketch" not in data or "comparison" not in checkpoint.metrics or rows.classes != checkpoint.classes:
        return None
    try:
        check_rows(rows)
        splits = split_rows(rows, None, seed=checkpoint.config.train.seed)
    except DataError:
        return None
    splits = splits.limited_to(data["train_rows"], seed=checkpoint.config.train.seed)
    return splits.test if sketch(splits.training.texts) == data["sketch"] else None


def which_file(checkpoint: Checkpoint) -> str:
    """What to do if a checkpoint that was trained on the user's own file is to be evaluated without a file."""
    title = checkpoint.metrics.get("data", {}).get("title", "your own file")
    return (
        f"{checkpoint.name} was trained on {shown(title, limit=80)}; give this file with --data FILE to use its "
        "held-out rows, or another file"
    )
