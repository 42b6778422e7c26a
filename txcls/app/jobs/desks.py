"""Desks: a private folder per visitor, found by a secret token and removed some time after the last visit.

A desk's folder is named by a hash of its token, so that neither a listing of the folder nor a path that appears in a
message gives the token away. Nothing lists desks to a visitor.
"""

import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from txcls.app.jobs import files
from txcls.app.jobs.tickets import Lane
from txcls.app.shell.limits import limits
from txcls.errors import ConfigError

TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
"""The form of a token: 24 random bytes."""
SWEEP_SECONDS = 30.0
"""How often abandoned desks are looked for."""
LANES = ("read", "plan", "train", "batch")
_SEEN = "seen"


def root() -> Path:
    """The folder of everything that visitors bring: $TXCLS_JOBS, or one for this user in the system's temporary folder.

    Raises:
        ConfigError: it cannot be made, or others can read it or own it.
    """
    given = os.environ.get("TXCLS_JOBS")
    folder = Path(given) if given else Path(tempfile.gettempdir()) / f"txcls-{_user()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
    except OSError as error:
        raise ConfigError(f"TXCLS_JOBS={folder}: cannot use it ({error.strerror}); name another folder") from None
    if not stat.S_ISDIR(state.st_mode) or (hasattr(os, "getuid") and state.st_uid != os.getuid()):
        raise ConfigError(f"TXCLS_JOBS={folder}: it is not a folder of this user's own; name another one")
    if state.st_mode & 0o077:
        raise ConfigError(f"TXCLS_JOBS={folder}: other users may read it; make it private with chmod 700")
    return folder


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def lane(name: str) -> Lane:
    """The queue of one kind of work, one of `LANES`."""
    return Lane(root() / "lanes" / name)


@dataclass(frozen=True, slots=True)
class Desk:
    """A visitor's folder; `token` opens it."""

    token: str
    folder: Path

    @classmethod
    def new(cls) -> "Desk":
        """An empty desk with a new token."""
        sweeping()
        desk = cls._of(secrets.token_urlsafe(24))
        desk.folder.mkdir(mode=0o700, parents=True)
        for name in ("jobs", "own"):
            (desk.folder / name).mkdir(mode=0o700)
        files.touch(desk.folder / _SEEN)
        return desk

    @classmethod
    def find(cls, token: str) -> "Desk | None":
        """The desk that a token opens; None if there is none, or no longer."""
        if not TOKEN.fullmatch(token):
            return None
        desk = cls._of(token)
        if not (desk.folder / _SEEN).is_file():
            return None
        desk.seen()
        return desk

    @classmethod
    def _of(cls, token: str) -> "Desk":
        name = hashlib.blake2b(token.encode(), digest_size=16).hexdigest()
        return cls(token, root() / "desks" / name)

    @property
    def own(self) -> Path:
        """The folder of the visitor's checkpoints."""
        return self.folder / "own"

    @property
    def exists(self) -> bool:
        """Whether it has not been removed."""
        return (self.folder / _SEEN).is_file()

    def job(self, kind: str) -> Path:
        """The folder of the visitor's job of a kind."""
        return self.folder / "jobs" / kind

    def seen(self) -> None:
        """Note that the visitor is here; written at most every five seconds."""
        with suppress(OSError):
            if time.time() - (self.folder / _SEEN).stat().st_mtime > 5:
                files.touch(self.folder / _SEEN)

    def remove(self) -> None:
        """Stop what works on it, and delete everything."""
        for job in (self.folder / "jobs").glob("*"):
            files.touch(job / "cancel")
        _delete(self.folder)


def _delete(folder: Path) -> None:
    """Delete a desk: first the file by which it is found."""
    with suppress(OSError):
        (folder / _SEEN).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    for forget in _listeners:
        forget(folder)


_listeners: list[Callable[[Path], None]] = []


def on_removal(forget: Callable[[Path], None]) -> None:
    """Have a function called with the folder of each desk that is removed by this process."""
    _listeners.append(forget)


def sweep(now: float | None = None) -> int:
    """Remove the desks that nobody has visited for `keep_seconds` and that nothing works on; returns how many."""
    removed = 0
    for folder in (root() / "desks").glob("*"):
        try:
            age = (now or time.time()) - (folder / _SEEN).stat().st_mtime
        except FileNotFoundError:
            age = (now or time.time()) - folder.stat().st_mtime + limits().keep_seconds - 60  # a minute for a new one
        except OSError:
            continue
        if age > limits().keep_seconds and not _is_busy(folder):
            _delete(folder)
            removed += 1
    return removed


def _is_busy(folder: Path) -> bool:
    """Whether a worker is running or waiting on a desk; it is given its time, which is limited."""
    for job in (folder / "jobs").glob("*/job.json"):
        found = files.read(job) or {}
        if found.get("lane") in LANES and lane(found["lane"]).ahead(str(found.get("ticket"))) is not None:
            return True
    return False


@cache
def sweeping() -> threading.Thread:
    """A thread that sweeps from now on for as long as the process lives."""

    def run() -> None:
        while True:
            with suppress(OSError, ConfigError):
                sweep()
            time.sleep(SWEEP_SECONDS)

    thread = threading.Thread(target=run, name="txcls-sweep", daemon=True)
    thread.start()
    return thread
