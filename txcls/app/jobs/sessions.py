"""A visitor's session: a private folder located by a secret token, and removed some time after the last visit.

    ROOT/sessions/NAME/       files/ uploads · jobs/KIND/ · own/CHECKPOINT/ · kept/ training rows · downloads/
    ROOT/sessions/NAME.seen   time of the last visit; created before the folder, and removed before it

NAME is a hash of the token, so neither a listing of ROOT nor a path in a message reveals the token. Times are from
`time.monotonic`, which all processes of a machine share and which clock changes do not affect. It starts at zero when
the machine restarts: a stored time later than the current time counts as the time of the restart.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from txcls.app.jobs.disk_quota import room
from txcls.app.jobs.json_lines import read_json, write_json
from txcls.app.shell.limits import limits
from txcls.errors import ConfigError, DataError

TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")
"""The format of a token: 24 random bytes."""
SWEEP_SECONDS = 30.0
"""Seconds between removals of abandoned sessions."""
SEEN_SECONDS = 5.0
"""Minimum number of seconds between two writes of the visit time."""


def root() -> Path:
    """The folder for all visitors' files: $TXCLS_JOBS, or a folder for this user in the system's temporary folder.

    Raises:
        ConfigError: it cannot be created, or others can read it or own it.
    """
    setting = os.environ.get("TXCLS_JOBS")
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    folder = Path(setting) if setting else Path(tempfile.gettempdir()) / f"txcls-{user}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
    except OSError as error:
        raise ConfigError(f"TXCLS_JOBS={folder}: cannot use it ({error.strerror}); name another folder") from None
    if not stat.S_ISDIR(state.st_mode) or (hasattr(os, "getuid") and state.st_uid != os.getuid()):
        raise ConfigError(f"TXCLS_JOBS={folder}: not a folder owned by this user; name another one")
    if state.st_mode & 0o077:
        raise ConfigError(f"TXCLS_JOBS={folder}: other users may read it; make it private with chmod 700")
    return folder


@dataclass(frozen=True, slots=True)
class Session:
    """A visitor's folder; `token` opens it."""

    token: str
    folder: Path

    @classmethod
    def new(cls) -> "Session":
        """Create an empty session with a new token.

        Raises:
            DataError: this server cannot write to its disk.
        """
        session = cls._of(secrets.token_urlsafe(24))
        with _disk_errors_as_data_errors():
            session.folder.parent.mkdir(mode=0o700, exist_ok=True)
            session._note_visit()
            for name in ("files", "jobs", "own", "kept", "downloads"):
                (session.folder / name).mkdir(mode=0o700, parents=True)
            session.folder.chmod(0o700)
        return session

    @classmethod
    def find(cls, token: str) -> "Session | None":
        """The session with this token; None if there is none or it has been removed."""
        if not TOKEN.fullmatch(token):
            return None
        session = cls._of(token)
        if not session.exists:
            return None
        session.visit()
        return session

    @classmethod
    def _of(cls, token: str) -> "Session":
        name = hashlib.blake2b(token.encode(), digest_size=16).hexdigest()
        return cls(token, root() / "sessions" / name)

    @property
    def own(self) -> Path:
        """The folder of the visitor's checkpoints."""
        return self.folder / "own"

    @property
    def exists(self) -> bool:
        """Whether it has not been removed."""
        return _seen_file(self.folder).is_file() and self.folder.is_dir()

    def job(self, kind: str) -> Path:
        """The folder of the visitor's job of a kind."""
        return self.folder / "jobs" / kind

    def visit(self) -> None:
        """Record a visit."""
        if self.exists and _seconds_since_visit(self.folder) > SEEN_SECONDS:
            with suppress(OSError):
                self._note_visit()

    def _note_visit(self) -> None:
        write_json(_seen_file(self.folder), {"at": time.monotonic()})

    def save_upload(self, name: str, data: bytes | memoryview) -> None:
        """Write an uploaded file to `files/name`.

        Raises:
            DataError: the disk quota of the session or of all sessions would be exceeded, or the disk is full.
        """
        left, limit = room(self.folder)
        if len(data) > left:
            raise DataError(f"This file does not fit: {limit}. Remove some of your files, or try again later.")
        file = self.folder / "files" / name
        try:
            with _disk_errors_as_data_errors():
                file.write_bytes(data)
        except DataError:
            file.unlink(missing_ok=True)
            raise

    def remove(self) -> None:
        """Delete everything; workers end when they notice that their job is gone."""
        _delete(self.folder)


def _seen_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.seen")


def _seconds_since_visit(folder: Path) -> float:
    now, at = time.monotonic(), float((read_json(_seen_file(folder)) or {}).get("at", 0.0))
    return now - at if at <= now else now


@contextmanager
def _disk_errors_as_data_errors() -> Iterator[None]:
    """Turn disk errors into a DataError."""
    try:
        yield
    except OSError as error:
        raise DataError(f"This server cannot keep files at the moment ({error.strerror}); try again later.") from None


# Removal

_listeners: list[Callable[[Path], None]] = []


def on_removal(callback: Callable[[Path], None]) -> None:
    """Register a function to call with the folder of each session that this process removes."""
    _listeners.append(callback)


def _delete(folder: Path) -> None:
    _seen_file(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    for callback in _listeners:
        callback(folder)


def sweep(busy_seconds: Callable[[Path], float] = lambda folder: 0.0) -> int:
    """Remove the sessions not visited for `keep_seconds`; return how many.

    `busy_seconds` returns how much longer a session may stay because of its active jobs.
    """
    removed = 0
    sessions = root() / "sessions"
    for entry in sorted(sessions.glob("*")):
        folder = sessions / entry.name.removesuffix(".seen")
        if entry.suffix == ".seen" and _seconds_since_visit(folder) <= limits().keep_seconds + busy_seconds(folder):
            continue
        if entry.suffix == ".seen" or (entry.is_dir() and not _seen_file(entry).exists()):
            with suppress(OSError):
                _delete(folder)
                removed += 1
    return removed


@cache
def start_sweeping(busy_seconds: Callable[[Path], float]) -> threading.Thread:
    """Sweep now and regularly, in a thread that runs until the process ends."""
    sweep(busy_seconds)

    def run() -> None:
        while True:
            time.sleep(SWEEP_SECONDS)
            with suppress(OSError, ConfigError):
                sweep(busy_seconds)

    thread = threading.Thread(target=run, name="txcls-sweep", daemon=True)
    thread.start()
    return thread
