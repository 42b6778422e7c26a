"""The rows of any table file, as a checkpoint can be measured on them: `evaluate CHECKPOINT --data other.csv`."""

from dataclasses import dataclass
from pathlib import Path

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.data.tables.own_rows import read_own_rows
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, listed


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of a file that a checkpoint can be measured on, and sentences on how the file was read."""

    rows: LabelledTexts
    notes: tuple[str, ...]


def rows_of_file(checkpoint: Checkpoint, path: Path, *, name: str | None = None) -> FileRows:
    """All labelled rows of a table file, in the checkpoint's classes; others are left out and counted.

    Labels are compared as they are, or else without case. The columns are those that the checkpoint was trained on, or
    else the one that holds its classes, or guessed. Messages call the file `name`, if given.

    Raises:
        DataError: the file cannot be read, or no row has a label that the checkpoint knows.
    """
    config = checkpoint.config.data
    found, notes = read_own_rows(
        path,
        text_column=config.text_column,
        label_column=config.label_column,
        classes=checkpoint.classes,
        name=name,
    )
    rows = found.labelled
    by_case = {name.casefold(): name for name in reversed(checkpoint.classes)}
    names = tuple(name if name in checkpoint.classes else by_case.get(name.casefold(), name) for name in rows.classes)
    place = {name: index for index, name in enumerate(checkpoint.classes)}
    known = [row for row, label in enumerate(rows.labels) if names[label] in place]
    if not known:
        raise DataError(
            f"{name or path.name}: none of its labels ({listed(rows.classes)}) is a class of {checkpoint.name} "
            f"({listed(checkpoint.classes)})"
        )
    if left := len(rows) - len(known):
        unknown = [name for name in names if name not in place]
        notes = (
            *notes,
            f"{left:,} rows have labels that {checkpoint.name} does not know ({listed(unknown)}); they are left out.",
        )
    kept = LabelledTexts(
        [rows.texts[row] for row in known], [place[names[rows.labels[row]]] for row in known], checkpoint.classes
    )
    return FileRows(kept, notes)
