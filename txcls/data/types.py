"""What a data set is: rows with labels, where they come from, and how they are read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from txcls.errors import DataError

SplitName = Literal["train", "test"]


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


@dataclass(frozen=True)
class RemoteFile:
    """One published file: where it is, its MD5 as the publisher's readers know it, its size in bytes."""

    name: str
    url: str
    md5: str
    size: int


@dataclass(frozen=True)
class DatasetInfo:
    """What a data set is, where it comes from, on which terms, and which files it is published as."""

    name: str
    title: str
    homepage: str = ""
    terms: str = ""
    citation: str = ""
    files: tuple[RemoteFile, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """An opened data set; the rows themselves are read by `load`."""

    info: DatasetInfo
    classes: tuple[str, ...]
    source: str
    """Where the rows are read from, for people: a file's name, never a whole path."""
    splits: tuple[SplitName, ...]
    description: str = ""
    """What a reader of results must know of the rows, such as that they are a part of those published."""
    readers: Mapping[SplitName, Callable[[], LabelledTexts]] = field(default_factory=dict, repr=False)

    @property
    def has_test(self) -> bool:
        """Whether there is a test split of its own."""
        return "test" in self.splits

    def load(self, split: SplitName) -> LabelledTexts:
        """The rows of one split, read from the files at each call.

        Raises:
            DataError: there is no such split, or its file cannot be read.
        """
        if split not in self.readers:
            raise DataError(f"{self.info.name}: no {split} split in {self.source}; there is {', '.join(self.splits)}")
        return self.readers[split]()
