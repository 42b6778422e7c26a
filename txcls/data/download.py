"""Download published data sets into the cache and verify their checksums."""

import os
from collections.abc import Callable
from pathlib import Path

from txcls.data.types import DatasetInfo
from txcls.errors import DownloadError


def cache_folder() -> Path:
    """The folder $TXCLS_CACHE, or else the platform's cache folder."""
    if folder := os.environ.get("TXCLS_CACHE"):
        return Path(folder).expanduser()
    import pooch

    return Path(pooch.os_cache("txcls"))


def fetched_folder(info: DatasetInfo) -> Path | None:
    """The folder of a downloaded data set; None if the set is missing or incomplete."""
    folder = cache_folder() / info.name
    return folder if info.files and all((folder / file.name).is_file() for file in info.files) else None


def fetch(info: DatasetInfo, *, on_file: Callable[[str], object] = lambda _: None) -> Path:
    """Download the files that are not in the cache yet, and return their folder.

    A file appears in the folder only when it is complete and its checksum has been verified. `on_file` is called with
    the address of each file that is downloaded.

    Raises:
        DownloadError: the set has nothing to download, the server or the connection failed, a checksum is wrong, or the
            cache is not writable.
    """
    import pooch

    if info.by_hand:
        raise DownloadError(f"{info.name} cannot be downloaded automatically: {info.by_hand}")
    if not info.files:
        raise DownloadError(f"{info.name} has nothing to download: it ships with txcls")
    pooch.get_logger().setLevel("ERROR")
    folder = cache_folder() / info.name
    downloads = pooch.create(
        folder,
        base_url="",
        registry={file.name: file.checksum for file in info.files},
        urls={file.name: file.url for file in info.files},
        retry_if_failed=2,
    )
    for file in info.files:
        if not (folder / file.name).is_file():
            on_file(file.url)
        try:
            downloads.fetch(file.name, downloader=pooch.HTTPDownloader(timeout=30))
        except OSError as error:  # includes the exceptions of requests
            raise DownloadError(
                f"{file.url}: {error}; check the connection, and that {folder} is writable (TXCLS_CACHE sets another)"
            ) from None
        except ValueError:
            raise DownloadError(
                f"{file.url}: not the published file (its checksum is not {file.checksum}); try again later, or "
                "download the file yourself and give its location with --data PATH"
            ) from None
    return folder
