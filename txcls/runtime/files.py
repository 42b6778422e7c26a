"""Replacing a file so that a reader, a crash or a full disk finds the old one or the new one, never a part."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, via: Path | None = None, flush: bool = True) -> Iterator[Path]:
    """A temporary file to write, which replaces `path` at the end of the block unless an exception is raised.

    Args:
        path: the file to replace; it need not exist.
        via: the temporary file, on the same file system; None for a random name beside `path`. With a fixed name, what
            a killed process left is overwritten by the next one.
        flush: flush it to disk first, so that it survives a loss of power too, and a full disk is noticed.

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
