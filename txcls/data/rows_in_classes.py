"""Labelled texts with the ids of given classes."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from txcls.data.labels import label_name, natural_order
from txcls.data.types import LabelledTexts


def labelled_texts(texts: Sequence[str], names: Sequence[str], classes: tuple[str, ...] | None = None) -> LabelledTexts:
    """Labelled texts from texts and their class names; the default for `classes` is all names in natural order.

    Raises:
        KeyError: a name is not among the classes.
    """
    if classes is None:
        classes = tuple(sorted(set(names), key=natural_order))
    ids = {name: index for index, name in enumerate(classes)}
    return LabelledTexts(texts, [ids[name] for name in names], classes)


def joined(parts: Iterable[LabelledTexts]) -> LabelledTexts:
    """The rows of all parts, which have the same classes."""
    texts, labels, classes = zip(*((part.texts, part.labels, part.classes) for part in parts), strict=True)
    return LabelledTexts([*itertools.chain(*texts)], [*itertools.chain(*labels)], classes[0])


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
