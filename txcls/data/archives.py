"""Read files from a folder or a tar archive. Archives are untrusted: they are streamed, never unpacked to disk."""

import io
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from txcls.data.limits import MAX_BYTES, MAX_TEXT_FILE_BYTES
from txcls.data.tables.text_files import open_unpacked
from txcls.errors import DataError, reason_of

MAX_FILES = 250_000
"""Maximum number of entries in an archive or folder (IMDB's has 100,000)."""
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")

_DAMAGED = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)


def locate(path: Path, *, folders: Sequence[str], archive: str, expected_files: str) -> Path:
    """Find a data set at `path`: a file, a folder with one of these subfolders, or an archive (without suffix) in it.

    Raises:
        DataError: there is none; the message names `expected_files`.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; expected {expected_files}")
    if any((path / name).is_dir() for name in folders):
        return path
    for suffix in SUFFIXES:
        if (file := path / f"{archive}{suffix}").is_file():
            return file
    raise DataError(f"{path}: expected {expected_files}; neither is there")


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def files_in(path: Path, *, is_wanted: Callable[[Path], bool], hint: str) -> list[Path]:
    """The file itself, or all wanted files below a folder, sorted.

    Raises:
        DataError: there are none, or too many; the message includes `hint`.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; {hint}")
    files = sorted(file for file in path.rglob("*") if is_wanted(file) and file.is_file())
    if not files:
        raise DataError(f"{path}: this folder has no such files; {hint}")
    if len(files) > MAX_FILES:
        raise DataError(f"{path}: {len(files):,} files, expected at most {MAX_FILES:,}; join some of them")
    return files


def matching_files(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield (match, contents) for each file with a relative path (separated by `/`) that fully matches the pattern.

    Raises:
        DataError: the archive is damaged or unsafe, or the folder cannot be read.
    """
    return _in_folder(path, pattern) if path.is_dir() else _in_archive(path, pattern)


def _in_folder(folder: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    count = 0
    for subfolder, _, names in os.walk(folder):
        count += len(names)
        if count > MAX_FILES:
            raise DataError(f"{folder}: more than {MAX_FILES:,} files; is this the folder of the data set?")
        for file in (Path(subfolder) / name for name in names):
            if match := pattern.fullmatch(file.relative_to(folder).as_posix()):
                try:
                    with file.open("rb") as opened:
                        raw = opened.read(MAX_TEXT_FILE_BYTES + 1)
                except OSError as error:
                    raise DataError(f"{file}: cannot read it ({reason_of(error)})") from None
                if len(raw) > MAX_TEXT_FILE_BYTES:
                    raise _too_long(str(file))
                yield match, raw


def _in_archive(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    seen: set[str] = set()
    try:
        with open_unpacked(path, any_compression=True) as unpacked:
            stream = _Limited(unpacked, path)
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for count, entry in enumerate(archive, start=1):
                    archive.members.clear()  # type: ignore[attr-defined]  # tarfile keeps all of them in memory
                    if count > MAX_FILES:
                        raise DataError(f"{path}: refused, since it contains more than {MAX_FILES:,} entries")
                    match = pattern.fullmatch(entry.name.removeprefix("./"))
                    if not match or entry.isdir():
                        continue
                    if not entry.isreg() or entry.issparse() or match[0] in seen:
                        raise DataError(f"{path}: {match[0][:80]!r} is a link or occurs twice; get the archive again")
                    seen.add(match[0])
                    if entry.size > MAX_TEXT_FILE_BYTES:
                        raise _too_long(f"{path}, {match[0][:80]}")
                    content = archive.extractfile(entry)
                    assert content is not None  # since it is a regular file
                    yield match, content.read()
                stream.finish(archive.offset)
    except _DAMAGED as error:
        raise DataError(f"{path}: cannot read it as a tar archive ({reason_of(error)}); get it again") from None


def _too_long(where: str) -> DataError:
    return DataError(f"{where}: more than {MAX_TEXT_FILE_BYTES:,} bytes, the maximum for one text; get it again")


class _Limited(io.RawIOBase):
    """The unpacked stream; reading more than MAX_BYTES from it fails."""

    def __init__(self, unpacked: IO[bytes], path: Path) -> None:
        self._unpacked, self._path = unpacked, path
        self._n_read = 0
        self._tail = b""

    def read(self, size: int = -1) -> bytes:
        chunk = self._unpacked.read(size)
        self._n_read += len(chunk)
        if self._n_read > MAX_BYTES:
            raise DataError(f"{self._path}: refused, since it unpacks to more than {MAX_BYTES:,} bytes")
        self._tail = (self._tail + chunk)[-2 * tarfile.RECORDSIZE :]
        return chunk

    def finish(self, offset: int) -> None:
        """Read the rest, which verifies checksums; all bytes after `offset`, where tarfile stopped, must be zero.

        tarfile treats a damaged or missing header as the end of the archive.
        """
        rest = self._tail[len(self._tail) - (self._n_read - offset) :] if self._n_read > offset else b""
        is_all_zero = len(rest) >= tarfile.BLOCKSIZE and not rest.strip(b"\0")
        while chunk := self.read(1 << 16):
            is_all_zero = is_all_zero and not chunk.strip(b"\0")
        if not is_all_zero:
            raise EOFError("it is truncated, or damaged in the middle")
