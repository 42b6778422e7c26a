"""The types of data sets: labelled rows, their origin, and how they are read."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from txcls.data.labels import label_name, natural_order
from txcls.errors import DataError

SplitName = Literal["train", "validation", "test", "new", "oos_train", "oos_validation", "oos_test"]
"""`new` has texts of a kind that never occurs in training; the `oos` splits have out-of-scope texts, which belong to
none of the classes."""

OUT_OF_SCOPE = "oos"
"""The only class of an `oos` split; never among a data set's classes."""

Roles = Mapping[str, Sequence[tuple[int, int]]]
"""The roles of words in a text: the character ranges [start, end) for each role."""


@dataclass(frozen=True)
class LabelledTexts:
    """Texts, the class index of each, and the names of the C classes."""

    texts: Sequence[str]
    labels: Sequence[int]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise ValueError(f"{len(self.texts)} texts but {len(self.labels)} labels")
        if self.labels and not 0 <= min(self.labels) <= max(self.labels) < len(self.classes):
            raise ValueError(f"labels {min(self.labels)} to {max(self.labels)}, but {len(self.classes)} classes")

    def __len__(self) -> int:
        return len(self.texts)

    def subset(self, indices: Iterable[int]) -> "LabelledTexts":
        """The rows with these indices, in this order, with the same classes."""
        rows = list(indices)
        return LabelledTexts([self.texts[i] for i in rows], [self.labels[i] for i in rows], self.classes)


def labelled_texts(texts: Sequence[str], names: Sequence[str], classes: tuple[str, ...] | None = None) -> LabelledTexts:
    """Labelled texts from texts and their class names; the default for `classes` is all names in natural order.

    Raises:
        KeyError: a name is not among the classes.
    """
    if classes is None:
        classes = tuple(sorted(set(names), key=natural_order))
    ids = {name: index for index, name in enumerate(classes)}
    return LabelledTexts(texts, [ids[name] for name in names], classes)


def join_rows(parts: Iterable[LabelledTexts]) -> LabelledTexts:
    """The rows of all parts, which have the same classes."""
    texts, labels, classes = zip(*((part.texts, part.labels, part.classes) for part in parts), strict=True)
    return LabelledTexts([*itertools.chain(*texts)], [*itertools.chain(*labels)], classes[0])


def rows_in_classes(
    rows: LabelledTexts, classes: tuple[str, ...], *, match_normalised: bool = False
) -> tuple[LabelledTexts, npt.NDArray[np.int64]]:
    """The rows whose class is one of `classes`, relabelled with its index there, and the indices of these rows.

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


@dataclass(frozen=True)
class RemoteFile:
    """A published file."""

    name: str
    """Its path in the data set's cache folder, such as `train/label`."""
    url: str
    checksum: str
    """`sha256:…` or `md5:…`."""


@dataclass(frozen=True)
class DatasetInfo:
    """A data set's description, origin, terms of use and published files."""

    name: str
    title: str
    homepage: str = ""
    terms: str = ""
    files: tuple[RemoteFile, ...] = ()
    """The files that `fetch` downloads."""
    by_hand: str = ""
    """How to get a set that cannot be downloaded automatically."""
    examples: str = "news"
    """Which group of `examples.yaml` has its example texts."""
    is_labelled: bool = True
    """Whether it has classes; a set without classes is for pre-training only."""

    @property
    def is_shipped(self) -> bool:
        """Whether it is part of the package."""
        return not self.files and not self.by_hand


@dataclass(frozen=True)
class Dataset:
    """An opened data set; `load` reads its rows."""

    info: DatasetInfo
    classes: tuple[str, ...]
    source: str
    """The source for display: a file name, never a full path."""
    splits: tuple[SplitName, ...]
    read: Callable[[SplitName], LabelledTexts] = field(repr=False)
    description: str = ""
    """What to know when interpreting results, for example that some rows are missing."""
    roles: Callable[[SplitName], Sequence[Roles]] | None = field(default=None, repr=False)
    """Returns the roles of the words in each text of a split, in row order; None if they are not known."""

    def load(self, split: SplitName) -> LabelledTexts:
        """The rows of one split; the only class of an `oos` split is OUT_OF_SCOPE.

        Raises:
            DataError: there is no such split, or its file cannot be read.
        """
        if split not in self.splits:
            raise DataError(
                f"{self.info.name}: no {split} split in {self.source}; the splits are {', '.join(self.splits)}"
            )
        return self.read(split)
