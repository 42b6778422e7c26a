"""Class names and ids: naming labels, ordering classes, and converting rows to the ids of given classes."""

import re
from collections.abc import Sequence
from datetime import date, datetime

import numpy as np
import numpy.typing as npt

from txcls.data.types import LabelledTexts

_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0+")


def label_name(value: object) -> str:
    """A label as a name, the same from Python and from any file.

    3.0 and "3.0" (from a numeric column with gaps) become "3", True "true", a date "2020-01-31", a missing value "",
    and a list "a; b".
    """
    if isinstance(value, str):
        text = value.strip()
        return match[1] if (match := _WHOLE_NUMBER.fullmatch(text)) else text
    if isinstance(value, list):
        return "; ".join(filter(None, map(label_name, value)))
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime | date):
        return str(value).removesuffix(" 00:00:00")
    return str(value).strip()


def natural_order(label: str) -> tuple[int, int, str]:
    """Sort key: whole numbers by value, then other names alphabetically."""
    is_number = label.isascii() and label.removeprefix("-").isdigit() and len(label) < 19
    return (0, int(label), label) if is_number else (1, 0, label)


def labelled_texts(texts: Sequence[str], names: Sequence[str], classes: tuple[str, ...] | None = None) -> LabelledTexts:
    """Labelled rows from texts and their class names; `classes=None` takes the names in natural order.

    Raises:
        KeyError: a name is not among the classes.
    """
    known = tuple(sorted(set(names), key=natural_order)) if classes is None else classes
    ids = {name: number for number, name in enumerate(known)}
    return LabelledTexts(texts, [ids[name] for name in names], known)


def rows_in_classes(
    rows: LabelledTexts, classes: tuple[str, ...], *, loosely: bool = False
) -> tuple[LabelledTexts, npt.NDArray[np.int64]]:
    """The rows whose class is among `classes`, with ids in `classes`, and the indices of these rows.

    With `loosely`, other class names are matched too if they are equal after `label_name`, ignoring case.
    """
    ids = {name: number for number, name in enumerate(classes)}
    if loosely:
        loose = {label_name(name).casefold(): number for number, name in reversed(list(enumerate(classes)))}
        ids |= {
            name: loose[key]
            for name in rows.classes
            if name not in ids and (key := label_name(name).casefold()) in loose
        }
    known = np.array([row for row, label in enumerate(rows.labels) if rows.classes[label] in ids], dtype=np.int64)
    return LabelledTexts(
        [rows.texts[row] for row in known], [ids[rows.classes[rows.labels[row]]] for row in known], classes
    ), known
