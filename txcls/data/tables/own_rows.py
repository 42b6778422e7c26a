"""The rows of a user's own table that can be trained on; empty ones are left out and counted."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from txcls.data.columns import guess_columns
from txcls.data.limits import LONGEST_FIELD
from txcls.data.tables.labelled import label_name, natural_order
from txcls.data.tables.own_table import OwnTable, read_own_table
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, shown


@dataclass(frozen=True, eq=False)
class OwnRows:
    """N labelled texts of a table.

    Attributes:
        labelled: texts, class indices and classes.
        indices: the table's row of each, from 0 (N,); `table.places[index]` is its line in the file.
        no_text, no_label, too_long: table rows that were left out, from 0; a row is in the first list that applies.
        notes: sentences on what was left out.
    """

    labelled: LabelledTexts
    indices: Sequence[int]
    no_text: Sequence[int]
    no_label: Sequence[int]
    too_long: Sequence[int]
    notes: tuple[str, ...]


def own_rows(table: OwnTable, *, text_column: str, label_column: str) -> OwnRows:
    """The rows with a text and a label; numbers in the text column become text, labels are named as in any table.

    Raises:
        DataError: no row has both.
    """
    found: list[tuple[int, str, str]] = []
    no_text, no_label, too_long = [], [], []
    for row, (value, given) in enumerate(zip(table.columns[text_column], table.columns[label_column], strict=True)):
        text = value if isinstance(value, str) else label_name(value)
        label = label_name(given)
        if not text.strip():
            no_text.append(row)
        elif not label:
            no_label.append(row)
        elif len(text) > LONGEST_FIELD:
            too_long.append(row)
        else:
            found.append((row, text, label))
    if not found:
        raise DataError(
            f"{table.name}: no row has both a text in column '{shown(text_column, limit=40)}' and a label in column "
            f"'{shown(label_column, limit=40)}'"
        )
    classes = tuple(sorted({label for _, _, label in found}, key=natural_order))
    index = {name: number for number, name in enumerate(classes)}
    labelled = LabelledTexts([text for _, text, _ in found], [index[label] for _, _, label in found], classes)
    notes = tuple(
        _left_out(table, rows, why)
        for rows, why in (
            (no_text, "without a text"),
            (no_label, "without a label"),
            (too_long, f"with a text of more than {LONGEST_FIELD:,} characters"),
        )
        if rows
    )
    return OwnRows(labelled, [row for row, _, _ in found], no_text, no_label, too_long, notes)


def _left_out(table: OwnTable, rows: Sequence[int], why: str) -> str:
    one = len(rows) == 1
    return (
        f"{len(rows):,} row{'' if one else 's'} {why} {'was' if one else 'were'} left out "
        f"({'' if one else 'the first is '}{table.unit} {table.places[rows[0]]:,})."
    )


def _column_of(table: OwnTable, classes: Collection[str]) -> str | None:
    """The column with the largest share of these classes among its values, if that is at least half of them."""
    known = {name.casefold() for name in classes}
    best, most = None, 0.5
    for name, values in table.columns.items():
        given = [label for value in values if (label := label_name(value))]
        share = sum(label.casefold() in known for label in given) / max(len(given), 1)
        if share >= most and (best is None or share > most):
            best, most = name, share
    return best


def read_own_rows(
    path: Path,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    classes: Collection[str] = (),
    name: str | None = None,
) -> tuple[OwnRows, tuple[str, ...]]:
    """The rows of another file for a classifier of one's own, and sentences on how it was read.

    Args:
        path: a table file.
        text_column, label_column: the columns that the classifier was trained on; guessed where the file lacks them.
        classes: its classes; where the file lacks the label column it is the one that holds them.
        name: what messages call the file; None for its own name.

    Raises:
        DataError: the file cannot be read, or its columns not be guessed.
    """
    table = read_own_table(path, name=name)
    guess = guess_columns(
        table,
        text_column=text_column if text_column in table.columns else None,
        label_column=label_column if label_column in table.columns else _column_of(table, classes),
    )
    rows = own_rows(table, text_column=guess.text_column, label_column=guess.label_column)
    said = guess.sentences if guess.guessed else guess.hints
    return rows, (*table.notes, *said, *rows.notes)
