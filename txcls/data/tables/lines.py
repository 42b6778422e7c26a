"""Text files, plain or packed, as lines and JSON values; problems name file and line. Nothing is read at once that was
not asked for, so memory is bounded by the longest row.
"""

import bz2
import codecs
import gzip
import io
import itertools
import json
import lzma
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO, cast

from txcls.data.limits import DEEPEST, LONGEST_JSON, LONGEST_ROW, MAX_BYTES, MAX_EMPTY, MAX_RATIO, RATIO_FROM
from txcls.errors import DataError

_BLANK = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
_LINE_ENDS = ("\n", "\r", "\r\n")
_PACKINGS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_BLOCK = 1 << 16
_WINDOWS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
"""Windows-1252, with Latin-1 for the five bytes that it leaves undefined: it fits every file."""


@dataclass
class Encoding:
    """The encoding of a text file, as far as it has been read.

    Attributes:
        strict: refuse a file that is not UTF-8 (or UTF-16 with a byte-order mark), instead of reading it from the first
            byte on that is not UTF-8 as Windows-1252.
        name: "utf-8", "utf-8-sig", "utf-16" or "cp1252".
    """

    strict: bool = True
    name: str = "utf-8"


def refuse_unreachable(path: Path) -> None:
    """Raise DataError if the path cannot be accessed: a name too long, a folder without permission, …"""
    try:
        path.stat()
    except FileNotFoundError:
        return  # the reader will say what it wanted
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot read it ({getattr(error, 'strerror', None) or error})") from None


def refuse_swollen(unpacked: int, packed: int, path: Path) -> None:
    """Raise DataError if the compression ratio is too high for a text."""
    if unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed:
        raise DataError(
            f"{path}: refused, since it unpacks to more than {MAX_RATIO} times its size, which texts do not; unpack it "
            "yourself if you trust it"
        )


def read_text(path: Path) -> str:
    """The whole text of a file: UTF-8 or as its byte-order mark says.

    Raises:
        DataError: the file is missing, unreadable, damaged, larger than MAX_BYTES, or in another encoding.
    """
    blocks, size = [], 0
    with open_text(path) as text:
        while block := text.read(1 << 20):
            blocks.append(block)
            if (size := size + len(block)) > MAX_BYTES:
                raise DataError(
                    f"{path}: holds more than {MAX_BYTES:,} characters, the most that is read; split the file"
                )
    return "".join(blocks)


@contextmanager
def open_text(
    path: Path, *, newline: str = "", encoding: Encoding | None = None, packings: Container[str] = ("gzip",)
) -> Iterator[TextIO]:
    """Open a text file of any size for reading in pieces, plain or packed.

    Args:
        path: the file.
        newline: as for `open`.
        encoding: how other encodings than UTF-8 are dealt with; it learns the file's. None refuses them.
        packings: what is unpacked: gzip, bzip2, xz. The latter two may ask for much memory, so they are not for files
            from strangers.

    Raises:
        DataError: the file is missing, unreadable, damaged, or in another encoding; also while reading.
    """
    try:
        with (
            _unpacked(path, packings) as raw,
            io.BufferedReader(_AsUtf8(raw, path, encoding or Encoding()), _BLOCK) as utf8,
            io.TextIOWrapper(utf8, encoding="utf-8", newline=newline) as text,
        ):
            yield text
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{path}: cannot read it ({reason}); make or fetch the file again") from None


def _unpacked(path: Path, packings: Container[str]) -> IO[bytes]:
    """The file's bytes, unpacked if it is packed, whatever its name."""
    file = path.open("rb")
    start = file.peek(6)
    packing = next((name for magic, name in _PACKINGS.items() if start.startswith(magic)), "")
    return io.BufferedReader(_Unpacked(file, path, packing), _BLOCK) if packing in packings else file


class _Sips:
    """A file that is never read far ahead, so that `tell` reflects what was unpacked."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, 1 << 13))


class _Unpacked(io.RawIOBase):
    """A packed file, which fails beyond the compression ratio of texts."""

    def __init__(self, file: io.BufferedReader, path: Path, packing: str) -> None:
        self._file, self._path = file, path
        sips = cast("IO[bytes]", _Sips(file))
        openers: dict[str, Callable[[IO[bytes]], gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile]] = {
            "gzip": lambda source: gzip.GzipFile(fileobj=source),
            "bzip2": bz2.BZ2File,
            "xz": lzma.LZMAFile,
        }
        self._unpacking = openers[packing](sips)
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self._unpacking.readinto(buffer)
        self._done += n
        refuse_swollen(self._done, self._file.tell(), self._path)
        return n

    def close(self) -> None:
        self._unpacking.close()
        self._file.close()
        super().close()


class _AsUtf8(io.RawIOBase):
    """The bytes of a text file as UTF-8, whatever its encoding."""

    def __init__(self, raw: IO[bytes], path: Path, encoding: Encoding) -> None:
        self._raw, self._path, self._encoding = raw, path, encoding
        self._decoder: codecs.IncrementalDecoder | None = None
        self._ready = b""
        self._line = 1
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._ended:
            block = self._raw.read(_BLOCK)
            self._ended = not block
            self._ready = self._decoded(block).encode()
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _decoded(self, block: bytes) -> str:
        encoding = self._encoding
        if self._decoder is None:
            mark = next((name for mark, name in _MARKS if block.startswith(mark)), "utf-8")
            encoding.name = mark
            self._decoder = codecs.getincrementaldecoder(mark)()
        elif encoding.name == "cp1252":
            return codecs.charmap_decode(block, "strict", _WINDOWS)[0]
        try:
            text = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            if encoding.strict or encoding.name == "utf-16":
                line = self._line + error.object.count(b"\n", 0, error.start)
                raise DataError(
                    f"{self._path}, line {line}: byte 0x{error.object[error.start]:02x} is not "
                    f"{encoding.name.removesuffix('-sig')}; save the file as UTF-8"
                ) from None
            encoding.name = "cp1252"
            right = error.object[: error.start].decode()
            return right + codecs.charmap_decode(error.object[error.start :], "strict", _WINDOWS)[0]
        self._line += text.count("\n")
        return text


_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def bounded_lines(text: str | TextIO, path: Path, *, newline: str = "") -> Iterator[str]:
    """Lines with their line ends.

    Raises:
        DataError: a line is longer than LONGEST_ROW, or more than MAX_EMPTY are empty in a row.
    """
    file = io.StringIO(text, newline=newline) if isinstance(text, str) else text
    empty = 0
    for number in itertools.count(1):
        if not (line := file.readline(LONGEST_ROW + 1)):
            return
        if len(line) > LONGEST_ROW:
            raise DataError(
                f"{path}, line {number}: longer than {LONGEST_ROW:,} characters, the most that is read; is it a table?"
            )
        empty = empty + 1 if len(line) < 3 and line in _LINE_ENDS else 0
        if empty > MAX_EMPTY:
            raise DataError(f"{path}, line {number}: {MAX_EMPTY:,} empty lines before it; is it a table?")
        yield line


def parse_json(text: str, where: str) -> Any:
    """The value of a JSON text; messages start with `where` (the file).

    Raises:
        DataError: it is not JSON, nested too deeply, or longer than LONGEST_JSON.
    """
    if len(text) > LONGEST_JSON:
        raise DataError(f"{where}: {len(text):,} characters of JSON, wanted {LONGEST_JSON:,} at most; split the file")
    try:
        return _shallow(json.loads(text), text)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}, line {error.lineno}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"{where}: JSON that cannot be read ({_reason(error)})") from None


def _shallow(value: Any, text: str) -> Any:
    """The value, unless it is nested so deeply that writing it would overflow the stack.

    Raises:
        ValueError: it is.
    """
    level = [value] if text.count("[") + text.count("{") > DEEPEST else []
    for _ in range(DEEPEST):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _values(outer)]
        if not level:
            return value
    if any(isinstance(inner, dict | list) for inner in level):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    return value


def _values(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested more than {DEEPEST} levels deep"
    return str(getattr(error, "msg", None) or error).partition(";")[0]


def json_lines(text: str | TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    """(line number, value) of JSON Lines, without empty lines.

    Raises:
        DataError: a line is not JSON, nested too deeply, or longer than LONGEST_ROW.
    """
    for number, line in enumerate(bounded_lines(text, path, newline="\n"), start=1):
        if line.strip():
            try:
                value = _shallow(json.loads(line), line)
            except (RecursionError, ValueError) as error:
                raise DataError(
                    f"{path}, line {number}: not JSON ({_reason(error)}); wanted one object per line"
                ) from None
            yield number, value


def json_items(file: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    """(number from 1, value) of the items of a JSON array, read in pieces.

    Raises:
        DataError: it is not JSON, or an item is nested too deeply or longer than LONGEST_ROW.
    """
    decode = json.JSONDecoder().raw_decode
    buffer, at, line, ended = "", 0, 1, False

    def bad(problem: str, place: int) -> DataError:
        return DataError(f"{path}, line {line + buffer.count(chr(10), 0, place)}: not JSON ({problem})")

    def read_on() -> None:
        nonlocal buffer, at, line, ended
        line += buffer.count("\n", 0, at)
        more = file.read(max(_BLOCK, len(buffer) - at))
        buffer, at, ended = buffer[at:] + more, 0, not more

    def next_mark() -> str:
        """The next character that is not whitespace, or "" at the end."""
        nonlocal at
        while True:
            at = _BLANK.match(buffer, at).end()  # type: ignore[union-attr]  # it matches anywhere
            if at < len(buffer) or ended:
                return buffer[at : at + 1]
            read_on()

    if next_mark() != "[":
        raise bad("Expecting an array", at)
    at += 1
    for number in itertools.count(1):
        if (mark := next_mark()) == "]" and number == 1:
            break
        while True:
            try:
                value, end = decode(buffer, at)
                if end - at <= LONGEST_ROW and (end < len(buffer) or ended):
                    _shallow(value, buffer[at:end])
                    break
            except json.JSONDecodeError as error:
                if ended or not (error.msg.startswith("Unterminated") or error.pos > len(buffer) - 16):
                    raise bad(error.msg, error.pos) from None
            except (RecursionError, ValueError) as error:
                raise DataError(f"{path}, item {number}: JSON that cannot be read ({_reason(error)})") from None
            if len(buffer) - at > LONGEST_ROW:
                raise DataError(f"{path}, item {number}: longer than {LONGEST_ROW:,} characters, the most that is read")
            read_on()
        at = end
        yield number, value
        if (mark := next_mark()) == "]":
            break
        if mark != ",":
            raise bad("Expecting ',' delimiter", at)
        at += 1
    at += 1
    if next_mark():
        raise bad("Extra data", at)
