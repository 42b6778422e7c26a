"""The data sets by name, and the one way to open them: `open_dataset`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from txcls.config import DataConfig
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


_Opener = Callable[[DataConfig, Path | None], Dataset]


def _openers() -> Mapping[str, _Opener]:
    from txcls.data import ag_news, sample

    return {"sample": sample.open_sample, "ag_news": ag_news.open_ag_news}


def _infos() -> Mapping[str, DatasetInfo]:
    from txcls.data import ag_news, sample

    return MappingProxyType({"sample": sample.INFO, "ag_news": ag_news.INFO})


def dataset_names() -> tuple[str, ...]:
    """Names of the data sets that txcls knows; `table`, for a file of one's own, is none of them."""
    return tuple(_infos())


def dataset_info(name: str) -> DatasetInfo:
    """What is known of a data set without opening it.

    Raises:
        DataError: there is none of that name.
    """
    infos = _infos()
    if name not in infos:
        raise DataError(f"no data set named {name!r}; there are {', '.join(infos)}, and `table` for a file of your own")
    return infos[name]


def open_dataset(config: DataConfig, *, path: Path | None = None) -> Dataset:
    """Open the configured data set.

    Args:
        config: its name, and for `table` the columns.
        path: folder or file in the published format (or the table); None finds it: `sample` in the package, published
            sets in $TXCLS_DATA/<name> or in the download cache.

    Raises:
        DataError: there is no such data set, it is not on this machine, or its files are not what they should be.
    """
    if config.dataset == "table":
        from txcls.data.table import open_table

        if path is None:
            raise DataError("data set `table` is a file of your own: say which with --data PATH")
        return open_table(config, path)
    info = dataset_info(config.dataset)
    if path is None and info.files:
        path = _find(info)
    return _openers()[config.dataset](config, path)


def is_available(name: str) -> bool:
    """Whether a data set is on this machine.

    Raises:
        DataError: there is none of that name.
    """
    info = dataset_info(name)
    return not info.files or _folder_of(info) is not None


def _folder_of(info: DatasetInfo) -> Path | None:
    from txcls.data.download import fetched_folder

    root = os.environ.get("TXCLS_DATA")
    if root and (Path(root) / info.name).is_dir():
        return Path(root) / info.name
    return fetched_folder(info)


def _find(info: DatasetInfo) -> Path:
    if (folder := _folder_of(info)) is not None:
        return folder
    raise DataError(
        f"{info.name} is not on this machine: download it with `txcls data fetch {info.name}`, or say where it is "
        f"with --data PATH"
    )
