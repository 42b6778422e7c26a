"""Where downloads and other things that can be made again are kept."""

import os
from pathlib import Path

from txcls.data.types import DatasetInfo


def cache_folder() -> Path:
    """$TXCLS_CACHE, or the platform's folder for caches."""
    if named := os.environ.get("TXCLS_CACHE"):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("txcls"))


def fetched_folder(info: DatasetInfo, *, cache: Path | None = None) -> Path | None:
    """Where the data set was downloaded to; None if not all of it is there."""
    folder = (cache or cache_folder()) / info.name
    return folder if info.files and all((folder / file.name).is_file() for file in info.files) else None
