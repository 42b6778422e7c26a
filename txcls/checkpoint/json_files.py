"""Read and write the JSON files of a checkpoint; the types of their values.

The files are untrusted: a file's size is checked before it is read, and its number of values before it is parsed.
Unknown keys are allowed, since later versions may add some.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, FailFast, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from txcls.errors import CheckpointError, reason_of

Json = TypeVar("Json", dict[str, Any], list[Any])
Kind = TypeVar("Kind")

LIMITS = {
    "config.json": (200_000, 2_000),
    "labels.json": (4_000_000, 20_000),
    "metrics.json": (8_000_000, 1_000_000),
    "history.jsonl": (32_000_000, 1_500_000),
    "tokenizer.json": (24_000_000, 2_000_000),
    "token_counts.json": (16_000_000, 1_000_010),
    "vocab.json": (12_000_000, 1_000_000),
    "merges.txt": (12_000_000, 12_000_000),
    "vocab.txt": (12_000_000, 12_000_000),
    "tokenizer_config.json": (2_000_000, 20_000),
}
"""Maximum number of bytes and of values in each file; a parsed value takes far more memory than its text."""

PLAIN = ConfigDict(extra="ignore", allow_inf_nan=False)
"""The pydantic configuration of classes that `validate` reads; their fields have the types below."""
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0)]
Count = Annotated[int, Field(strict=True, ge=0, le=10**15)]
Number = Annotated[float, Field(strict=True, ge=-1e15, le=1e15)]
Positive = Annotated[float, Field(strict=True, ge=0.0, le=1e15)]
Text = Annotated[str, Field(strict=True, max_length=20_000)]
Item = TypeVar("Item")
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
"""The start of the small file that Git stores in place of a large one."""
Many = Annotated[tuple[Item, ...], FailFast()]
"""A tuple of which only the first invalid item is reported; a million error reports would take a gigabyte."""


_LARGE = re.compile(r"[eE]\+?\d{3}")
"""An exponent that may make a number infinite."""


def refuse_pointer(content: bytes, *, where: str) -> None:
    """Check that a file that starts with `content` is not a Git LFS pointer.

    Raises:
        CheckpointError: it is one.
    """
    if content.startswith(LFS_POINTER):
        raise CheckpointError(f"{where}: this is a Git LFS pointer; run git lfs pull")


def read_limited(path: Path) -> str:
    """The text of a file listed in `LIMITS`.

    Raises:
        CheckpointError: it cannot be read, is not UTF-8, or exceeds the limits for its name.
    """
    max_bytes, max_values = LIMITS[path.name]
    try:
        if not path.is_file():  # a device or a pipe could be read forever
            raise CheckpointError(f"{path}: missing, or not a plain file")
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
        refuse_pointer(content, where=str(path))
        if len(content) > max_bytes:
            raise CheckpointError(f"{path}: larger than {max_bytes / 1e6:g} MB, the maximum")
        if (count := sum(map(content.count, (b"[", b"{", b",")))) > max_values:
            raise CheckpointError(f"{path}: about {count:,} values; expected at most {max_values:,}")
        return content.decode("utf-8")
    except (OSError, ValueError) as error:
        kind = "JSON" if path.suffix.startswith(".json") else "text"
        raise CheckpointError(f"{path}: not readable as {kind} ({reason_of(error)!s:.200})") from None


def read_json(path: Path, kind: type[Json]) -> Json:
    """The contents of a JSON file: an object (dict) or a list.

    Raises:
        CheckpointError: as for `read_limited`, or it is not JSON of this kind.
    """
    return parse(read_limited(path), kind, where=str(path))


def parse(text: str, kind: type[Json], *, where: str) -> Json:
    """The value of a JSON text; for errors see `read_json` (messages begin with `where`)."""
    try:
        value = from_json(text, allow_inf_nan=False)  # it refuses lone surrogates and deep nesting, but not 1e999
        if _LARGE.search(text):
            json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise CheckpointError(f"{where}: not readable as JSON ({error!s:.200})") from None
    if not isinstance(value, kind):
        raise CheckpointError(f"{where}: expected a JSON {kind.__name__}, got {type(value).__name__}")
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def validate(kind: type[Kind], values: Any, *, where: str) -> Kind:
    """Validate JSON values as a dataclass or pydantic model, and return the instance.

    Raises:
        CheckpointError: a field is missing or invalid; the message names it.
    """
    try:
        result: Kind = _adapter(kind).validate_python(values)  # type: ignore[arg-type]  # a class is hashable
    except ValidationError as error:
        problems = error.errors(include_url=False)
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise CheckpointError(f"{where}: {'; '.join(map(_describe, problems[:3]))}{more}") from None
    return result


def _describe(problem: Any) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "value_error":
        return f"{field}: {problem['ctx']['error']}" if field else str(problem["ctx"]["error"])
    if problem["type"] == "missing":
        return f"{field}: missing"
    if problem["type"] in ("dataclass_type", "model_type"):
        return f"{field:.200}{': ' if field else ''}expected a JSON object, got {_short(problem['input'])}"
    return f"{field:.200}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {_short(problem['input'])}"


def _short(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**20:
        return f"a number of {len(str(value)) if value.bit_length() < 10_000 else 'thousands of'} digits"
    if isinstance(value, dict | list | str):
        return f"{value!r:.80}" if len(value) <= 100 else f"{type(value).__name__} of {len(value):,}"
    return f"{value!r:.80}"


def is_valid_unicode(value: str) -> bool:
    """Whether a string can be encoded as UTF-8, because it contains no lone surrogate."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def round_numbers(value: Any) -> Any:
    """A JSON value, with its numbers rounded to six decimals."""
    if isinstance(value, dict):
        return {key: round_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value


_NUMBER, _STRING = r"-?\d[\d.eE+-]*", r'"(?:[^"\\]|\\.)*"'
_ON_ONE_LINE = re.compile(
    rf"\[\n\s*(?:{_STRING},\n\s*{_NUMBER}|{_NUMBER}(?:,\n\s*{_NUMBER})*)\n\s*\]"
    rf"|\[\n\s*{_STRING}(?:,\n\s*{_STRING}){{,15}}\n\s*\]"
    rf"|\{{\n\s*{_STRING}: {_NUMBER}(?:,\n\s*{_STRING}: {_NUMBER})*\n\s*\}}"
)
"""A list of numbers or of a few texts, a pair of a text and a number, or an object of numbers, indented."""
_BREAK, _OUTER_BREAK = re.compile(r"\n\s*"), re.compile(r"(?<=[\[{])\n\s*|\n\s*(?=[\]}])")


def write_json(path: Path, value: object, *, indent: int | None = 2) -> None:
    """Write a value as UTF-8 JSON with a final newline; lists and objects of numbers, and short lists of texts, are one
    line each."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if indent is not None:  # the pattern matches nothing inside strings, since JSON strings contain no line breaks
        text = _ON_ONE_LINE.sub(lambda found: _BREAK.sub(" ", _OUTER_BREAK.sub("", found[0])), text)
    path.write_text(text + "\n", encoding="utf-8")
