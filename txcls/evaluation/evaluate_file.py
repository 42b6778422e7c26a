"""The rows of a table file on which a checkpoint can be measured: `evaluate CHECKPOINT --data other.csv`."""

from pathlib import Path

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.classes import in_classes
from txcls.data.tables.labelled import read_labelled
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.wording import listed


def rows_of_file(
    checkpoint: Checkpoint, path: Path, *, name: str | None = None, sheet: str | None = None
) -> tuple[LabelledTexts, list[str]]:
    """All rows of a table file whose label is one of the checkpoint's classes, and sentences on how the file was read.

    Labels are compared as they are, or else ignoring case. The columns are those that the checkpoint was trained on, or
    are guessed. Messages call the file `name`, if given.

    Raises:
        DataError: the file cannot be read, or no row has a label that is one of the classes.
    """
    rows, guess = read_labelled(path, checkpoint.config.data, classes=checkpoint.classes, name=name, sheet=sheet)
    notes = [*rows.notes, *(guess.sentences if guess.guessed else guess.hints)]
    labelled = rows.labelled
    known, which = in_classes(labelled, checkpoint.classes, loosely=True)
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
    return known, notes
