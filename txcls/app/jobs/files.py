"""Small files between pages and workers: written whole or not at all, and read without trust in their completeness."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from txcls.runtime.files import replacing

MOST_BYTES = 64 << 20
"""Largest JSON file that is read."""


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Replace a JSON file; a reader finds the one before or the new one, never a part."""
    with replacing(path, flush=False) as temporary:
        temporary.write_text(json.dumps(values), encoding="utf-8")


def read(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if there is no such file, or no whole one."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def append(path: Path, values: Mapping[str, Any]) -> None:
    """Add a line to a JSON Lines file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(values) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file, without a last line that is still being written."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return []
        lines = path.read_bytes().split(b"\n")[:-1]
    except OSError:
        return []
    rows = []
    for line in lines:
        with suppress(ValueError):
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)]


def touch(path: Path) -> None:
    """Set the time of a file to now, and make it if it is missing."""
    with suppress(OSError):
        path.touch(mode=0o600)
        os.utime(path)
