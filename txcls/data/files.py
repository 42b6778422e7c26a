"""Find and open files, plain, compressed or in archives; if one cannot be read, DataError names it.

`replacing` replaces a file atomically: after a crash or on a full disk, readers find the old or the new file.
"""

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import re
import secrets
import string
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO

from txcls.errors import DataError, reason_of

COMPRESSED = (".gz", ".bz2", ".xz")
"""Suffixes of compressed files."""
_OPENERS: dict[bytes, Callable[..., Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""Functions that open compressed files, keyed by the files' first bytes."""
UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""Errors raised for missing and damaged files."""
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLOCK = 1 << 20
MIXED = "utf-8 and cp1252"
"""The encoding of a file in which most lines that are not ASCII are UTF-8, and the others are read as Windows-1252."""
MAX_NOT_ASCII = 0.35
"""Maximum share of letters outside ASCII in a file that is read as Windows-1252: a tenth in French, but nearly all in
Thai that was saved in another encoding."""


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    """Decode bytes that are not UTF-8 as Windows-1252; an error handler for `codecs.register_error`."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error(MIXED, _as_windows_1252)


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file, unpacked if it is compressed, whatever its name."""
    with path.open("rb") as file:
        beginning = file.read(6)
    opener: Any = next((opener for magic, opener in _OPENERS.items() if beginning.startswith(magic)), open)
    opened: IO[bytes] = opener(path, "rb")
    return opened


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file as `open_unpacked` does; DataError, also during reading, if it is missing, unreadable or damaged."""
    try:
        with open_unpacked(path) as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot read it ({reason_of(error)}); create or download the file again") from None


@contextmanager
def open_text(path: Path, *, newline: str = "", encoding: str = "utf-8") -> Iterator[TextIO]:
    """Open a text file of any size, plain or compressed; `newline` as for `open`.

    Raises:
        DataError: (also during reading) the file is missing, unreadable, damaged, or in another encoding.
    """
    errors = "replace" if encoding == "cp1252" else "strict"  # five bytes are not defined
    if encoding == MIXED:
        encoding, errors = "utf-8", MIXED
    try:
        with _opened(path) as raw, io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline=newline) as text:
            yield text
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: byte 0x{error.object[error.start]:02x} is not {encoding.removesuffix('-sig')}; save it as UTF-8"
        ) from None
    except UnicodeError as error:
        raise DataError(f"{path}: {error}; save it as UTF-8") from None


def read_text(path: Path) -> str:
    """The whole text of a file in UTF-8; errors as for `open_text`."""
    with open_text(path, encoding="utf-8-sig") as text:
        return text.read()


def encoding_of(path: Path) -> str:
    """The encoding of a text file: "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", MIXED, or else "cp1252".

    Raises:
        DataError: the file is missing, unreadable or damaged, or in another encoding.
    """
    try:
        with _opened(path) as file:
            block = file.read(_BLOCK)
            if name := next((name for mark, name in _BYTE_ORDER_MARKS.items() if block.startswith(mark)), None):
                return name
            even, odd = block[::2].count(0), block[1::2].count(0)
            if max(even, odd) > len(block) / 4 > 8 * min(even, odd):  # in most scripts, every second byte is zero
                return "utf-16-le" if odd > even else "utf-16-be"
            decoder = codecs.getincrementaldecoder("utf-8")()
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        n_utf8, strange = lines_not_utf8(path)
        if n_utf8 > len(strange):
            return MIXED
        others = block.translate(None, bytes(range(0x80)))
        n_ascii = len(block) - len(block.translate(None, string.ascii_letters.encode()))
        if len(others) > MAX_NOT_ASCII * (n_ascii + len(others)):
            read = others[:8].decode("cp1252", "replace")
            raise DataError(
                f"{path}: not UTF-8 or UTF-16, and Windows-1252 gives letters such as '{read}'; save it as UTF-8"
            ) from None
        return "cp1252"
    return "utf-8"


def lines_not_utf8(path: Path) -> tuple[int, list[int]]:
    """The number of lines that are UTF-8 but not ASCII, and the numbers of the lines that are not UTF-8."""
    n_utf8, strange = 0, []
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                n_utf8 += not line.decode().isascii()
            except UnicodeDecodeError:
                strange.append(number)
    return n_utf8, strange


def parse_json(text: str, where: str) -> Any:
    """Parse a JSON text; messages begin with `where`, the name of the file.

    Raises:
        DataError: it is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if error.lineno > 1 else ""
        raise DataError(f"{where}{line}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise DataError(f"{where}: cannot read this JSON ({problem})") from None


def json_lines(text: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each non-empty line of JSON Lines; errors as for `parse_json`."""
    for number, line in enumerate(text, start=1):
        if line.strip():
            yield number, parse_json(line, f"{path}, line {number}")


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def files_in(path: Path, *, is_wanted: Callable[[Path], bool], hint: str) -> list[Path]:
    """The file itself, or all wanted files below a folder, sorted.

    Raises:
        DataError: there are none; the message includes `hint`.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; {hint}")
    files = sorted(file for file in path.rglob("*") if is_wanted(file) and file.is_file())
    if not files:
        raise DataError(f"{path}: this folder has no such files; {hint}")
    return files


def matching_files(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Yield (match, contents) for each file with a relative path (separated by `/`) that fully matches the pattern.

    Raises:
        DataError: the archive is damaged, or the folder cannot be read.
    """
    try:
        if path.is_dir():
            for file in path.rglob("*"):
                if (match := pattern.fullmatch(file.relative_to(path).as_posix())) and file.is_file():
                    yield match, file.read_bytes()
            return
        with tarfile.open(path) as archive:
            for entry in archive:
                if (match := pattern.fullmatch(entry.name.removeprefix("./"))) and entry.isreg():
                    content = archive.extractfile(entry)
                    assert content is not None  # since it is a regular file
                    yield match, content.read()
    except (tarfile.TarError, ValueError, *UNREADABLE) as error:
        kind = "folder" if path.is_dir() else "tar archive"
        raise DataError(f"{path}: cannot read it as a {kind} ({reason_of(error)}); get it again") from None


@contextmanager
def replacing(path: Path, *, temporary: Path | None = None) -> Iterator[Path]:
    """Yield a temporary file to write, which replaces `path` at the end of the block unless an exception is raised.

    If the file has a fixed name (`temporary`), the next process overwrites a killed process's file. The file is flushed
    to disk before it replaces `path`, to survive a power failure and to detect a full disk.

    Raises:
        OSError: it cannot be flushed or renamed; `path` is unchanged.
    """
    temporary = temporary or path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
