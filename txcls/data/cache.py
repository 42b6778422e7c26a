"""Where downloads and other reproducible files are cached."""

import os
from pathlib import Path

from txcls.data.types import DatasetInfo


def cache_folder() -> Path:
    """$TXCLS_CACHE, or the platform's cache folder."""
    if named := os.environ.get("TXCLS_CACHE"):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("txcls"))


def fetched_folder(info: DatasetInfo, *, cache: Path | None = None) -> Path | None:
    """The folder with the downloaded data set; None if it is missing or incomplete."""
    folder = (cache or cache_folder()) / info.name
    return folder if info.files and all((folder / file.name).is_file() for file in info.files) else None
