"""Class names and ids: naming labels, sorting class names, and mapping rows to the ids of other classes."""

import re
from collections.abc import Sequence
from datetime import date, datetime

import numpy as np
import numpy.typing as npt

from txcls.data.types import LabelledTexts

_WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)\.0+")


def label_name(value: object) -> str:
    """The class name of a label, the same from Python and from any file.

    3.0 and "3.0" (from a numeric column with gaps) become "3", True becomes "true", a date "2020-01-31", a missing
    value "", and a list "a; b".
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
    """A sort key: whole numbers by value, then other names alphabetically."""
    is_number = label.isascii() and label.removeprefix("-").isdigit() and len(label) < 19
    return (0, int(label), label) if is_number else (1, 0, label)


def labelled_texts(texts: Sequence[str], names: Sequence[str], classes: tuple[str, ...] | None = None) -> LabelledTexts:
    """Labelled texts from texts and their class names; the default for `classes` is all names in natural order.

    Raises:
        KeyError: a name is not among the classes.
    """
    if classes is None:
        classes = tuple(sorted(set(names), key=natural_order))
    ids = {name: index for index, name in enumerate(classes)}
    return LabelledTexts(texts, [ids[name] for name in names], classes)


def rows_in_classes(
    rows: LabelledTexts, classes: tuple[str, ...], *, match_normalised: bool = False
) -> tuple[LabelledTexts, npt.NDArray[np.int64]]:
    """The rows with a class among `classes`, with their ids there, and the indices of these rows.

    With `match_normalised`, class names also match if they are equal after `label_name`, ignoring case.
    """
    ids = {name: index for index, name in enumerate(classes)}
    if match_normalised:
        ids_by_key = {label_name(name).casefold(): index for index, name in reversed(list(enumerate(classes)))}
        ids |= {
            name: ids_by_key[key]
            for name in rows.classes
            if name not in ids and (key := label_name(name).casefold()) in ids_by_key
        }
    known = np.array([row for row, label in enumerate(rows.labels) if rows.classes[label] in ids], dtype=np.int64)
    new_labels = [ids[rows.classes[rows.labels[row]]] for row in known]
    return LabelledTexts([rows.texts[row] for row in known], new_labels, classes), known
