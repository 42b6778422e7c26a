"""Text files, plain or gzipped, as rows with their line numbers; problems name file and line."""

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, TextIO, cast

from txcls.errors import DataError

MAX_BYTES = 1 << 30
"""What a file may hold once it is unpacked: a small one can unpack to more than fits into memory."""


LONGEST_FIELD = 1 << 26
"""Characters that a field may hold in a file read row by row: a quote that is never closed would take all the rest."""


def read_text(path: Path, *, encodings: tuple[str, ...] = ("utf-8-sig",)) -> str:
    """The file's text, in the first encoding that fits; a byte-order mark is dropped.

    Raises:
        DataError: the file is missing, not readable, damaged, larger than MAX_BYTES, or in none of the encodings.
    """
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            raw = (gzip.GzipFile(fileobj=file) if is_gzip else file).read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{path}: cannot read it ({reason})") from None
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


@contextmanager
def open_text(path: Path, *, newline: str = "") -> Iterator[TextIO]:
    """A text file of any size to be read piece by piece: UTF-8, or what its byte-order mark says, plain or gzipped.

    Raises:
        DataError: the file is missing, not readable, damaged, or in another encoding; also while it is read.
    """
    try:
        with _unpacked(path) as raw, io.TextIOWrapper(raw, encoding=_encoding(path), newline=newline) as text:
            yield text
    except UnicodeDecodeError:
        raise DataError(f"{path}, {_first_bad_byte(path)}; save the file as UTF-8") from None
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{path}: cannot read it ({reason})") from None


def _unpacked(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return cast("IO[bytes]", gzip.open(path)) if is_gzip else path.open("rb")


def _encoding(path: Path) -> str:
    with _unpacked(path) as raw:
        return "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _first_bad_byte(path: Path) -> str:
    encoding, line = _encoding(path), 1
    decoder = codecs.getincrementaldecoder(encoding)()
    with _unpacked(path) as raw:
        for block in (*iter(partial(raw.read, 1 << 20), b""), b""):
            try:
                line += decoder.decode(block, final=not block).count("\n")
            except UnicodeDecodeError as error:
                line += error.object.count(b"\n", 0, error.start)
                return f"line {line}: byte 0x{error.object[error.start]:02x} is not {encoding.removesuffix('-sig')}"
    return f"not {encoding}"


def parse_json(text: str, where: str) -> Any:
    """The value that the text holds; `where` (the file) leads the message.

    Raises:
        DataError: it is not JSON, or nested too deeply to be data.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}, line {error.lineno}: not JSON ({error.msg})") from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"{where}: JSON that cannot be read ({error})") from None


def json_lines(text: str | Iterable[str], path: Path) -> Iterator[tuple[int, Any]]:
    """(line, its value) of JSON Lines, a whole text or line by line, without empty lines.

    Raises:
        DataError: a line is not JSON.
    """
    for number, line in enumerate(text.split("\n") if isinstance(text, str) else text, start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (RecursionError, ValueError) as error:
                reason = getattr(error, "msg", None) or error
                raise DataError(f"{path}, line {number}: not JSON ({reason}); wanted one object per line") from None


def csv_rows(
    text: str | Iterable[str], path: Path, *, delimiter: str = ",", quoted: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """(line on which the row begins, its fields) of a whole text or of its lines, without empty lines.

    `quoted=False` takes quotes as they stand.

    Raises:
        DataError: a quoted field is never closed, or is not followed by a delimiter.
    """
    longest = len(text) + 1 if isinstance(text, str) else LONGEST_FIELD
    csv.field_size_limit(max(csv.field_size_limit(), longest))  # one for the whole process, 131,072 at first
    lines = io.StringIO(text, newline="") if isinstance(text, str) else text
    if quoted:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}; quote fields that hold quotes or delimiters") from None
