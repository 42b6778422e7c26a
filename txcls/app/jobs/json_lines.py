"""Small files with which workers and pages communicate: written atomically, but readers accept incomplete ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from txcls.runtime.files import replacing

MAX_JSON_BYTES = 64 << 20
"""Maximum size of a JSON file that is read."""


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Replace a JSON file atomically: readers find the old or the new file, never a partial one."""
    with replacing(path, flush=False) as temporary:
        temporary.write_text(json.dumps(values), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if the file is missing or incomplete."""
    try:
        return _object_from(path.read_bytes()) if path.stat().st_size <= MAX_JSON_BYTES else None
    except OSError:
        return None


def append_line(path: Path, values: Mapping[str, Any]) -> None:
    """Add a line to a JSON Lines file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a JSON Lines file, without an incomplete last line."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1] if path.stat().st_size <= MAX_JSON_BYTES else []
    except OSError:
        return []
    return [row for row in map(_object_from, lines) if row is not None]


def _object_from(line: bytes) -> dict[str, Any] | None:
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return values if isinstance(values, dict) else None
