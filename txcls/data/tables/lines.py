"""Text files, plain or packed, as rows with their line numbers; problems name file and line."""

import bz2
import codecs
import csv
import gzip
import io
import itertools
import json
import lzma
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO, cast

from txcls.data.limits import (
    DEEPEST,
    LONGEST_FIELD,
    LONGEST_JSON,
    LONGEST_ROW,
    MAX_BYTES,
    MAX_RATIO,
    MOST_EMPTY,
    RATIO_FROM,
)
from txcls.errors import DataError

_BLANK = re.compile(r"[ \t\r\n]*")
_UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
_LINE_ENDS = ("\n", "\r", "\r\n")
_PACKINGS = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}


def read_text(path: Path, *, encodings: tuple[str, ...] = ("utf-8-sig",)) -> str:
    """The file's text, in the first encoding that fits; a byte-order mark is dropped.

    Raises:
        DataError: the file is missing, unreadable, damaged, larger than MAX_BYTES, or in none of the encodings.
    """
    with _readable(path), _unpacked(path) as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise DataError(f"{path}: holds more than {MAX_BYTES:,} bytes of text, the most that is read; split the file")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ("utf-16", *encodings)
    problem = ""
    for encoding in encodings:
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            problem = problem or f"line {line}: byte 0x{raw[error.start]:02x} is not {encoding.removesuffix('-sig')}"
    raise DataError(f"{path}, {problem}; save the file as UTF-8")


def refuse_unreachable(path: Path) -> None:
    """Raise DataError if the path cannot be accessed: a name too long, a folder without permission, …"""
    try:
        path.stat()
    except FileNotFoundError:
        return  # the reader will say what it wanted
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot read it ({getattr(error, 'strerror', None) or error})") from None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn errors while reading the file into DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{path}: cannot read it ({reason}); make or fetch the file again") from None


@contextmanager
def open_text(path: Path, *, newline: str = "", packings: Container[str] = ("gzip",)) -> Iterator[TextIO]:
    """Open a text file of any size for reading in pieces: UTF-8 or as its byte-order mark says, plain or packed.

    Args:
        path: the file.
        newline: as for `open`.
        packings: what is unpacked: gzip, bzip2, xz. The latter two may ask for much memory, so they are not for files
            from strangers.

    Raises:
        DataError: the file is missing, unreadable, damaged, or in another encoding; also while reading.
    """
    with _readable(path):
        try:
            encoding = _encoding(path, packings)
            with _unpacked(path, packings) as raw, io.TextIOWrapper(raw, encoding=encoding, newline=newline) as text:
                yield text
        except UnicodeDecodeError:
            raise DataError(f"{path}, {_first_bad_byte(path, packings)}; save the file as UTF-8") from None


def _unpacked(path: Path, packings: Container[str] = ("gzip",)) -> IO[bytes]:
    """The file's bytes, unpacked if it is packed, whatever its name."""
    file = path.open("rb")
    start = file.peek(6)
    packing = next((name for magic, name in _PACKINGS.items() if start.startswith(magic)), "")
    return io.BufferedReader(_Unpacked(file, path, packing), 1 << 16) if packing in packings else file


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


def refuse_swollen(unpacked: int, packed: int, path: Path) -> None:
    """Raise DataError if the compression ratio is too high for a text."""
    if unpacked > RATIO_FROM and unpacked > MAX_RATIO * packed:
        raise DataError(
            f"{path}: refused, since it unpacks to more than {MAX_RATIO} times its size, which texts do not; unpack it "
            "yourself if you trust it"
        )


def _encoding(path: Path, packings: Container[str]) -> str:
    with _unpacked(path, packings) as raw:
        return "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _first_bad_byte(path: Path, packings: Container[str]) -> str:
    encoding, line = _encoding(path, packings), 1
    decoder = codecs.getincrementaldecoder(encoding)()
    with _unpacked(path, packings) as raw:
        for block in (*iter(partial(raw.read, 1 << 20), b""), b""):
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                line += error.object.count(b"\n", 0, error.start)
                return f"line {line}: byte 0x{error.object[error.start]:02x} is not {encoding.removesuffix('-sig')}"
    return f"not {encoding}"


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
        level = [inner for one in level if isinstance(one, dict | list) for inner in _values(one)]
        if not level:
            return value
    if any(isinstance(one, dict | list) for one in level):
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
    for number, line in enumerate(_lines(text, path, newline="\n"), start=1):
        if line.strip():
            try:
                value = _shallow(json.loads(line), line)
            except (RecursionError, ValueError) as error:
                raise DataError(
                    f"{path}, line {number}: not JSON ({_reason(error)}); wanted one object per line"
                ) from None
            yield number, value


def _lines(text: str | TextIO, path: Path, *, newline: str) -> Iterator[str]:
    """Lines with their line ends, none longer than LONGEST_ROW."""
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
        if empty > MOST_EMPTY:
            raise DataError(f"{path}, line {number}: {MOST_EMPTY:,} empty lines before it; is it a table?")
        yield line


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
        more = file.read(max(1 << 16, len(buffer) - at))
        buffer, at, ended = buffer[at:] + more, 0, not more

    def next_mark() -> str:
        """The next character that is not white space, or "" at the end."""
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


def csv_rows(
    text: str | TextIO, path: Path, *, delimiter: str = ",", quoted: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, fields) of each row, without empty lines.

    With `quoted=False`, quotes are ordinary characters.

    Raises:
        DataError: a quoted field is never closed, or is not followed by a delimiter, or a field is longer than
            LONGEST_FIELD or a row than LONGEST_ROW.
    """
    in_row = 0

    def lines() -> Iterator[str]:
        nonlocal in_row
        for line in _lines(text, path, newline=""):
            if (in_row := in_row + len(line)) > LONGEST_ROW:
                raise csv.Error(f"a row longer than {LONGEST_ROW:,} characters")
            yield line

    kind = {"strict": True} if quoted else {"quoting": csv.QUOTE_NONE}
    reader = csv.reader(lines(), delimiter=delimiter, **kind)
    before = csv.field_size_limit()
    line = 1
    try:
        while True:
            csv.field_size_limit(LONGEST_FIELD)  # a process-wide setting, which other code may have changed
            row = next(reader, None)
            if row is None:
                return
            if row:
                yield line, row
            line, in_row = reader.line_num + 1, 0
    except csv.Error as error:
        problem = f"a field longer than {LONGEST_FIELD:,} characters" if "field limit" in str(error) else error
        raise DataError(f"{path}, line {line}: {problem}; quote fields that hold quotes or delimiters") from None
    finally:
        csv.field_size_limit(before)
