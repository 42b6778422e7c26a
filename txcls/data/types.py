"""What a data set is: rows with labels, where they come from, and how they are read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from txcls.errors import DataError

SplitName = Literal["train", "validation", "test", "oos_train", "oos_validation", "oos_test"]
"""The `oos` splits hold texts that belong to none of the classes (out of scope)."""

OUT_OF_SCOPE = "oos"
"""The one class of the rows in an `oos` split; it is never among a data set's classes."""


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
    """One published file: where it is, its checksum (SHA-256 where both are known), its size in bytes if known.

    Raises:
        ValueError: neither checksum is given.
    """

    name: str
    """Under which it is kept; may hold folders (`train/label`)."""
    url: str
    md5: str = ""
    size: int | None = None
    sha256: str = ""

    def __post_init__(self) -> None:
        if not (self.md5 or self.sha256):
            raise ValueError(f"{self.name}: wanted an MD5 or SHA-256 checksum, without which a download is not checked")

    @property
    def checksum(self) -> str:
        """`algorithm:digest`."""
        return f"sha256:{self.sha256}" if self.sha256 else f"md5:{self.md5}"


@dataclass(frozen=True)
class DatasetInfo:
    """What a data set is, where it comes from, on which terms, and which files it is published as."""

    name: str
    title: str
    homepage: str = ""
    terms: str = ""
    citation: str = ""
    files: tuple[RemoteFile, ...] = ()
    """What `fetch` downloads."""
    by_hand: str = ""
    """How to get a set that cannot be downloaded without its publisher's leave."""
    settings: tuple[str, ...] = ()
    """The fields of DataConfig that are for this data set and not for all."""

    @property
    def is_shipped(self) -> bool:
        """Whether it comes with the package."""
        return not self.files and not self.by_hand


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

    @property
    def has_validation(self) -> bool:
        """Whether there is a validation split of its own."""
        return "validation" in self.splits

    def load(self, split: SplitName) -> LabelledTexts:
        """The rows of one split. Those of an `oos` split have OUT_OF_SCOPE for their only class.

        Raises:
            DataError: there is no such split, or its file cannot be read.
        """
        if split not in self.readers:
            raise DataError(f"{self.info.name}: no {split} split in {self.source}; there is {', '.join(self.splits)}")
        return self.readers[split]()
