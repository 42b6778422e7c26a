"""Read files from a folder or a streamed tar archive; nothing is unpacked to disk, and archives are untrusted."""

import io
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from txcls.data.limits import MAX_BYTES, MAX_TEXT_FILE_BYTES
from txcls.data.tables.lines import open_unpacked
from txcls.errors import DataError

MAX_FILES = 250_000
"""Maximum number of entries in an archive or folder (IMDB's has 100,000)."""
SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")

_DAMAGED = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)


def locate(path: Path, *, folders: Sequence[str], archive: str, expected_files: str) -> Path:
    """The folder that has one of the subfolders, or the archive (named without its suffix), at or in `path`.

    `expected_files` describes what was expected, for the message.

    Raises:
        DataError: there is neither.
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


def matching_files(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield (match, contents) of each file whose relative path, with `/` as separator, fully matches the pattern.

    Raises:
        DataError: the archive is damaged or unsafe, or the folder cannot be read.
    """
    return _in_folder(path, pattern) if path.is_dir() else _in_archive(path, pattern)


def _in_folder(folder: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    count = 0
    for where, _, names in os.walk(folder):
        count += len(names)
        if count > MAX_FILES:
            raise DataError(f"{folder}: more than {MAX_FILES:,} files; is it the data set's own folder?")
        parent = Path(where)
        prefix = parent.relative_to(folder)
        for name in names:
            if match := pattern.fullmatch((prefix / name).as_posix()):
                try:
                    with (parent / name).open("rb") as file:
                        raw = file.read(MAX_TEXT_FILE_BYTES + 1)
                except OSError as error:
                    raise DataError(f"{parent / name}: cannot read it ({error.strerror or error})") from None
                if len(raw) > MAX_TEXT_FILE_BYTES:
                    raise _too_long(f"{parent / name}")
                yield match, raw


def _in_archive(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    seen: set[str] = set()
    try:
        with open_unpacked(path, any_packing=True) as unpacked:
            stream = _Limited(unpacked, path)
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for count, entry in enumerate(archive, start=1):
                    archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all in memory
                    if count > MAX_FILES:
                        raise DataError(f"{path}: refused, since it holds more than {MAX_FILES:,} entries")
                    match = pattern.fullmatch(entry.name.removeprefix("./"))
                    if not match or entry.isdir():
                        continue
                    if not entry.isreg() or entry.issparse() or match[0] in seen:
                        raise DataError(f"{path}: {match[0][:80]!r} is a link, or comes twice; fetch the archive again")
                    seen.add(match[0])
                    if entry.size > MAX_TEXT_FILE_BYTES:
                        raise _too_long(f"{path}, {match[0][:80]}")
                    content = archive.extractfile(entry)
                    assert content is not None  # since it is a regular file
                    yield match, content.read()
                stream.finish(archive.offset)
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{path}: cannot read it as a tar archive ({reason}); fetch it again") from None


def _too_long(where: str) -> DataError:
    return DataError(f"{where}: more than {MAX_TEXT_FILE_BYTES:,} bytes, the maximum for one text; fetch it again")


class _Limited(io.RawIOBase):
    """The unpacked stream, which fails beyond MAX_BYTES."""

    def __init__(self, unpacked: IO[bytes], path: Path) -> None:
        self._unpacked, self._path = unpacked, path
        self._read = 0
        self._tail = b""

    def read(self, size: int = -1) -> bytes:
        chunk = self._unpacked.read(size)
        self._read += len(chunk)
        if self._read > MAX_BYTES:
            raise DataError(f"{self._path}: refused, since it unpacks to more than {MAX_BYTES:,} bytes")
        self._tail = (self._tail + chunk)[-2 * tarfile.RECORDSIZE :]
        return chunk

    def finish(self, offset: int) -> None:
        """Read to the end, which verifies checksums; everything after `offset`, where tarfile stopped, must be zeros.

        tarfile itself takes a damaged or missing header for the end of the archive.
        """
        rest = self._tail[len(self._tail) - (self._read - offset) :] if self._read > offset else b""
        is_end = len(rest) >= tarfile.BLOCKSIZE and not rest.strip(b"\0")
        while chunk := self.read(1 << 16):
            is_end = is_end and not chunk.strip(b"\0")
        if not is_end:
            raise EOFError("it breaks off or is damaged in the middle")
