"""Read lines and JSON values from plain or compressed text files, in chunks; errors name the file and line."""

import bz2
import codecs
import gzip
import io
import itertools
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TextIO

from txcls.data.limits import (
    MAX_BYTES,
    MAX_EMPTY,
    MAX_JSON_CHARACTERS,
    MAX_JSON_DEPTH,
    MAX_RATIO,
    MAX_ROW_CHARACTERS,
    RATIO_FREE_BYTES,
)
from txcls.errors import DataError, reason_of

_BLANK = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
_LINE_ENDINGS = ("\n", "\r", "\r\n")
_GZIP = b"\x1f\x8b"
_OPENERS: dict[bytes, Callable[[IO[bytes]], Any]] = {_GZIP: gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
"""Functions that open compressed files, keyed by the files' first bytes."""
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BLOCK = 1 << 16
_WINDOWS_1252 = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
"""Windows-1252, with Latin-1 for the five undefined bytes, which can decode any file."""


@dataclass
class FileEncoding:
    """The encoding of a text file according to the part read so far: "utf-8", "utf-8-sig", "utf-16" or "cp1252"."""

    name: str = "utf-8"


def refuse_unreachable(path: Path) -> None:
    """Raise DataError if the path cannot be accessed, for example because its name is too long."""
    try:
        path.stat()
    except FileNotFoundError:
        return  # the reader's own message says what it expected
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot read it ({reason_of(error)})") from None


def refuse_zip_bomb(unpacked: int, packed: int, path: Path) -> None:
    """Raise DataError if the compression ratio is too high for text."""
    if unpacked > RATIO_FREE_BYTES and unpacked > MAX_RATIO * packed:
        raise DataError(
            f"{path}: refused, since it unpacks to more than {MAX_RATIO} times its size, which is unusual for texts; "
            "unpack it yourself if you trust it"
        )


def read_text(path: Path) -> str:
    """The whole text of a file in UTF-8, or in the encoding that its byte-order mark indicates.

    Raises:
        DataError: the file is missing, unreadable, damaged, larger than MAX_BYTES, or in another encoding.
    """
    blocks, size = [], 0
    with open_text(path) as text:
        while block := text.read(1 << 20):  # a single read of the maximum would allocate as many bytes
            blocks.append(block)
            if (size := size + len(block)) > MAX_BYTES:
                raise DataError(f"{path}: more than {MAX_BYTES:,} characters, the maximum; split the file")
    return "".join(blocks)


@contextmanager
def open_text(
    path: Path, *, newline: str = "", encoding: FileEncoding | None = None, any_compression: bool = False
) -> Iterator[TextIO]:
    """Open a text file of any size, plain or gzipped.

    Args:
        path: the file.
        newline: as for `open`.
        encoding: is set to the detected encoding; a file that is neither UTF-8 nor UTF-16 with a byte-order mark is
            read as Windows-1252 from its first invalid byte on. With None, such a file is refused.
        any_compression: also decompress bzip2 and xz; not for untrusted files, since this may need a lot of memory.

    Raises:
        DataError: (also during reading) the file is missing, unreadable, damaged, or in another encoding.
    """
    try:
        with (
            open_unpacked(path, any_compression=any_compression) as raw,
            io.BufferedReader(_AsUtf8(raw, path, encoding), _BLOCK) as utf8,
            io.TextIOWrapper(utf8, encoding="utf-8", newline=newline) as text,
        ):
            yield text
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _UNREADABLE as error:
        raise DataError(f"{path}: cannot read it ({reason_of(error)}); create or download the file again") from None


def open_unpacked(path: Path, *, any_compression: bool) -> IO[bytes]:
    """Open a file and unpack it whatever its name; reading fails if the compression ratio is too high for texts."""
    file = path.open("rb")
    beginning = file.peek(6)
    magic = next((magic for magic in _OPENERS if beginning.startswith(magic)), None)
    if magic is None or not (any_compression or magic == _GZIP):
        return file
    return io.BufferedReader(_Unpacked(file, _OPENERS[magic](file), path), _BLOCK)


class _Unpacked(io.RawIOBase):
    def __init__(self, file: io.BufferedReader, unpacked: Any, path: Path) -> None:
        self._file, self._unpacked, self._path, self._n_bytes = file, unpacked, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n: int = self._unpacked.readinto(buffer)
        self._n_bytes += n
        refuse_zip_bomb(self._n_bytes, self._file.tell(), self._path)
        return n

    def close(self) -> None:
        self._unpacked.close()
        self._file.close()
        super().close()


class _AsUtf8(io.RawIOBase):
    """A text file's bytes, converted from their encoding to UTF-8."""

    def __init__(self, raw: IO[bytes], path: Path, encoding: FileEncoding | None) -> None:
        self._raw, self._path = raw, path
        self._is_strict, self._encoding = encoding is None, encoding or FileEncoding()
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
            self._ready = self._decode(block).encode()
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def _decode(self, block: bytes) -> str:
        encoding = self._encoding
        if self._decoder is None:
            names = (name for mark, name in _BYTE_ORDER_MARKS.items() if block.startswith(mark))
            encoding.name = next(names, "utf-8")
            self._decoder = codecs.getincrementaldecoder(encoding.name)()
        elif encoding.name == "cp1252":
            return codecs.charmap_decode(block, "strict", _WINDOWS_1252)[0]
        try:
            text = self._decoder.decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            if self._is_strict or encoding.name == "utf-16":
                line = self._line + error.object.count(b"\n", 0, error.start)
                raise DataError(
                    f"{self._path}, line {line}: byte 0x{error.object[error.start]:02x} is not "
                    f"{encoding.name.removesuffix('-sig')}; save the file as UTF-8"
                ) from None
            encoding.name = "cp1252"
            valid = error.object[: error.start].decode()
            return valid + codecs.charmap_decode(error.object[error.start :], "strict", _WINDOWS_1252)[0]
        self._line += text.count("\n")
        return text


def bounded_lines(text: TextIO, path: Path) -> Iterator[str]:
    """Yield the lines with their line endings.

    Raises:
        DataError: a line is longer than MAX_ROW_CHARACTERS, or more than MAX_EMPTY consecutive lines are empty.
    """
    n_empty = 0
    for number in itertools.count(1):
        if not (line := text.readline(MAX_ROW_CHARACTERS + 1)):
            return
        if len(line) > MAX_ROW_CHARACTERS:
            raise DataError(
                f"{path}, line {number}: longer than {MAX_ROW_CHARACTERS:,} characters, the maximum; is it a table?"
            )
        n_empty = n_empty + 1 if line in _LINE_ENDINGS else 0
        if n_empty > MAX_EMPTY:
            raise DataError(f"{path}, line {number}: {MAX_EMPTY:,} empty lines before it; is it a table?")
        yield line


def parse_json(text: str, where: str) -> Any:
    """Parse a JSON text; messages begin with `where`, the name of the file.

    Raises:
        DataError: it is not JSON, is nested too deeply, or is longer than MAX_JSON_CHARACTERS.
    """
    if len(text) > MAX_JSON_CHARACTERS:
        raise DataError(
            f"{where}: {len(text):,} characters of JSON, expected at most {MAX_JSON_CHARACTERS:,}; split the file"
        )
    return _decode_json(json.loads, text, where=where)


def json_lines(text: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) for each non-empty line of JSON Lines.

    Raises:
        DataError: a line is not JSON, is nested too deeply, or is longer than MAX_ROW_CHARACTERS.
    """
    for number, line in enumerate(bounded_lines(text, path), start=1):
        if line.strip():
            yield number, _decode_json(json.loads, line, where=f"{path}, line {number}")


def json_items(file: TextIO, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (number from 1, value) for each item of a JSON array, with only part of the file in memory.

    Raises:
        DataError: it is not JSON, or an item is nested too deeply or longer than MAX_ROW_CHARACTERS.
    """
    decode = json.JSONDecoder().raw_decode
    buffer, position, mark = file.read(2 * MAX_ROW_CHARACTERS), 0, "["  # the character expected before the next item
    for number in itertools.count(1):
        if len(buffer) - position <= MAX_ROW_CHARACTERS:
            buffer, position = buffer[position:] + file.read(2 * MAX_ROW_CHARACTERS), 0
        where = f"{path}, item {number}"
        position = _skip_blanks(buffer, position)
        if buffer[position : position + 1] == "]" and mark == ",":
            break
        if buffer[position : position + 1] != mark:
            raise DataError(f"{where}: not JSON (expected {mark} before it)")
        position = _skip_blanks(buffer, position + 1)
        if buffer[position : position + 1] == "]" and mark == "[":
            break
        value, end = _decode_json(decode, buffer, position, where=where)
        if end - position > MAX_ROW_CHARACTERS:
            raise DataError(f"{where}: longer than {MAX_ROW_CHARACTERS:,} characters, the maximum")
        yield number, value
        position, mark = end, ","
    if buffer[position + 1 :].strip() or file.read(1):
        raise DataError(f"{path}: not JSON (there is text after the end of the array)")


def _skip_blanks(text: str, position: int) -> int:
    return _BLANK.match(text, position).end()  # type: ignore[union-attr]  # it matches anywhere


def _decode_json(decode: Any, *arguments: Any, where: str) -> Any:
    try:
        result = decode(*arguments)
        _check_depth(result[0] if isinstance(result, tuple) else result)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if error.lineno > 1 else ""
        raise DataError(f"{where}{line}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        problem = f"nested more than {MAX_JSON_DEPTH} levels deep" if isinstance(error, RecursionError) else error
        raise DataError(f"{where}: cannot read this JSON ({problem})") from None
    return result


def _check_depth(value: Any, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Raise RecursionError if a value is nested more deeply, since serialising it could overflow the stack."""
    if isinstance(value, dict | list):
        if not max_depth:
            raise RecursionError
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, max_depth - 1)
