"""Replace a file atomically: after a crash or on a full disk, readers find the old or the new file, never a part."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
