"""Download published data sets into the cache, verified by checksum."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from txcls.data.cache import cache_folder
from txcls.data.datasets import dataset_info
from txcls.data.types import DatasetInfo, RemoteFile
from txcls.errors import DownloadError

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes received, and its total size (None if unknown)."""

ATTEMPTS = 5
"""How often a broken transfer is resumed before giving up."""
PAUSE = 0.5
"""Seconds before the second attempt; doubled before each further one."""
TIMEOUT = 30.0
"""Seconds without data after which a transfer counts as broken."""

_CHUNK = 1 << 16
_WORTH_ANOTHER_TRY = (408, 416, 429, 500, 502, 503, 504)


def fetch(
    name: str, *, cache: Path | None = None, base_url: str | None = None, progress: Progress | None = None
) -> Path:
    """Download what is not yet cached, and return the folder.

    A broken transfer is resumed, or restarted if the server does not support that. A file appears in the folder only
    when it is complete and its checksum is correct.

    Args:
        name: as `txcls data list` shows it.
        cache: parent folder; `cache_folder()` unless given.
        base_url: folder on another server, such as a mirror.
        progress: called as data arrive.

    Raises:
        DataError: there is no data set of that name.
        DownloadError: it has nothing to download, the server or the connection failed, a checksum is wrong, or the
            cache cannot be written.
    """
    return fetch_files(dataset_info(name), cache=cache, base_url=base_url, progress=progress)


def fetch_files(
    info: DatasetInfo, *, cache: Path | None = None, base_url: str | None = None, progress: Progress | None = None
) -> Path:
    """`fetch` for a data set given by its description."""
    import pooch

    if info.by_hand:
        raise DownloadError(f"{info.name} cannot be downloaded automatically: {info.by_hand}")
    if not info.files:
        raise DownloadError(f"{info.name} has nothing to download: it ships with txcls")
    pooch.get_logger().setLevel("ERROR")  # progress is reported by the caller
    folder = (cache or cache_folder()) / info.name
    for file in info.files:
        url = f"{base_url.rstrip('/')}/{file.name}" if base_url else file.url
        if not url.startswith(("https://", "http://")):
            raise DownloadError(f"{url}: wanted an address that begins with https:// or http://")
        try:
            pooch.retrieve(url, file.checksum, fname=file.name, path=folder, downloader=_Transfer(file, progress))
        except ValueError:
            raise DownloadError(
                f"{url}: not the published file (its checksum is not {file.checksum}); nothing was kept. "
                "Try again later, or get the file by hand and give its location with --data PATH"
            ) from None
        except OSError as error:
            raise DownloadError(
                f"cannot write to {folder} ({error.strerror or error}); set TXCLS_CACHE to a writable folder"
            ) from None
    return folder


class _BrokenError(Exception):
    """The transfer stopped before its end."""


class _Transfer:
    """The download of one file, called by pooch with a temporary file that pooch removes on failure."""

    def __init__(self, file: RemoteFile, progress: Progress | None) -> None:
        self._file = file
        self._progress = progress

    def __call__(self, url: str, output_file: str, pooch: object, check_only: bool = False) -> None:
        problem = ""
        with Path(output_file).open("wb") as target:
            for attempt in range(ATTEMPTS):
                time.sleep(PAUSE * attempt)
                try:
                    self._receive(url, target)
                    return
                except urllib.error.HTTPError as error:
                    error.close()
                    problem = f"the server answered {error.code} {error.reason}"
                    if error.code not in _WORTH_ANOTHER_TRY:
                        break
                    _restart(target)
                except _BrokenError as error:
                    problem = f"{error} after {target.tell():,} bytes"
        raise DownloadError(f"{url}: {problem}; nothing was kept. Check the address and the connection, then try again")

    def _receive(self, url: str, target: BinaryIO) -> None:
        """Continue the transfer at the target's end."""
        here = target.tell()
        request = urllib.request.Request(url, headers={"Range": f"bytes={here}-"} if here else {})
        try:
            response = urllib.request.urlopen(request, timeout=TIMEOUT)
        except urllib.error.HTTPError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenError(f"no connection ({getattr(error, 'reason', None) or error})") from None
        with response:
            if here and not (response.headers.get("Content-Range") or "").startswith(f"bytes {here}-"):
                _restart(target)
                here = 0
            length = response.headers.get("Content-Length")
            total = here + int(length) if length and length.isdigit() else None
            while True:
                try:
                    chunk = response.read(_CHUNK)
                except (OSError, http.client.HTTPException):
                    raise _BrokenError("the connection broke") from None
                if not chunk:
                    break
                target.write(chunk)
                if self._progress:
                    self._progress(self._file.name, target.tell(), total or self._file.size)
            if total is not None and target.tell() < total:
                raise _BrokenError("the connection broke")


def _restart(target: BinaryIO) -> None:
    target.seek(0)
    target.truncate()
