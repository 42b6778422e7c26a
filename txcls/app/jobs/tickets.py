"""Turns among processes: of each lane one worker runs at a time on this host, the others wait in their order.

A ticket is a file that its worker holds locked (flock) for as long as it lives. The lock ends with the process, however
that ends, so the tickets tell which workers live and who is next, without a process that watches over them, and also
after the app itself was started anew.
"""

import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from txcls.app.shell.limits import BusyError

if sys.platform != "win32":
    import fcntl

HAS_LOCKS = sys.platform != "win32"
"""Whether this system has the locks that workers need."""


@dataclass(frozen=True)
class Lane:
    """A queue of workers; `folder` holds their tickets."""

    folder: Path

    def take(self, *, most_waiting: int) -> tuple[str, int]:
        """(name, handle) of a new ticket at the end of the queue, locked by the open handle, which a worker inherits.

        Raises:
            BusyError: `most_waiting` others wait already.
        """
        with self._gate():
            ahead = len(self._living())
            if ahead > most_waiting:
                raise BusyError(
                    f"{ahead - 1} others are waiting already, the most that may (TXCLS_MAX_QUEUED). Try again later."
                )
            name = f"{time.time_ns():020}-{secrets.token_hex(4)}"
            handle = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return name, handle

    def ahead(self, name: str) -> int | None:
        """How many workers are ahead of this ticket's, the running one included; None if its worker has ended."""
        with self._gate():
            living = self._living()
        return living.index(name) if name in living else None

    def _living(self) -> list[str]:
        """The tickets of living workers in their order; those of others are removed."""
        living = []
        for name in sorted(path.name for path in self.folder.iterdir() if not path.name.startswith(".")):
            if self._is_held(name):
                living.append(name)
            else:
                with suppress(OSError):
                    (self.folder / name).unlink()
        return living

    def _is_held(self, name: str) -> bool:
        try:
            handle = os.open(self.folder / name, os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    @contextmanager
    def _gate(self) -> Iterator[None]:
        """Only one process at a time takes or counts tickets."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.folder / ".gate", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
