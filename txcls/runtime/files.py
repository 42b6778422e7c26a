"""Replacing a file so that a reader, a crash or a full disk finds the old one or the new one, never a part."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, via: Path | None = None, flush: bool = True) -> Iterator[Path]:
    """A temporary file to write, which replaces `path` at the end of the block unless an exception is raised.

    With a fixed name (`via`), what a killed process left is overwritten by the next one. `flush` writes it to disk
    first, so that it survives a loss of power, and a full disk is noticed.

    Raises:
        OSError: it cannot be flushed or renamed; `path` is unchanged.
    """
    temporary = via or path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        yield temporary
        if flush:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
