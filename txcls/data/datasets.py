"""The data sets by name, and the one way to open them: `open_dataset`."""

import os
from collections.abc import Callable
from pathlib import Path

from txcls.config import DataConfig
from txcls.data import ag_news, sample
from txcls.data.cache import fetched_folder
from txcls.data.table import open_table
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, RemoteFile, SplitName
from txcls.errors import DataError

__all__ = [
    "Dataset",
    "DatasetInfo",
    "LabelledTexts",
    "RemoteFile",
    "SplitName",
    "dataset_info",
    "dataset_names",
    "is_available",
    "open_dataset",
]

_Opener = Callable[[DataConfig, Path | None], Dataset]

_KNOWN: tuple[tuple[DatasetInfo, _Opener], ...] = (
    (sample.INFO, sample.open_sample),
    (ag_news.INFO, ag_news.open_ag_news),
)
_INFOS = {info.name: info for info, _ in _KNOWN}
_OPENERS = {info.name: opener for info, opener in _KNOWN}


def dataset_names() -> tuple[str, ...]:
    """Names of the data sets that txcls knows; `table`, for a file of one's own, is none of them."""
    return tuple(_INFOS)


def dataset_info(name: str) -> DatasetInfo:
    """What is known of a data set without opening it.

    Raises:
        DataError: there is none of that name.
    """
    if name not in _INFOS:
        raise DataError(
            f"no data set named {name!r}; there are {', '.join(_INFOS)}, and `table` for a file of your own"
        )
    return _INFOS[name]


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
        if path is None:
            raise DataError("data set `table` is a file of your own: say which with --data PATH")
        return open_table(config, path)
    info = dataset_info(config.dataset)
    if path is None and info.files:
        path = _find(info)
    return _OPENERS[config.dataset](config, path)


def is_available(name: str) -> bool:
    """Whether a data set is on this machine.

    Raises:
        DataError: there is none of that name.
    """
    info = dataset_info(name)
    return not info.files or _folder_of(info) is not None


def _folder_of(info: DatasetInfo) -> Path | None:
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
