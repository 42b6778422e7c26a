"""Checkpoint folders on disk: where they are, how one takes another's place at once, what a killed save left.

A save writes a hidden folder beside the checkpoint's and renames it twice: from `.NAME.saving-X`, which may be half
written, to `.NAME.saved-X`, which is whole, and from there to NAME, after the older one went to `.NAME.old-X`. A
process that is writing holds a lock (flock) on its hidden folder, which ends with the process, so that anyone can tell
what a kill left from what is being written. Whoever renames holds a lock on the parent folder, and so does whoever
reads, who therefore finds a checkpoint before or after it is replaced, and never between. Where the file system knows
no such locks, none are held.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from txcls.errors import CheckpointError

if sys.platform != "win32":
    import fcntl

FILES = ("model.safetensors", "config.json", "tokenizer.json", "labels.json", "metrics.json", "history.jsonl")
"""What a checkpoint holds, beside its README.md."""
GPT2_FILES = ("config.json", "model.safetensors", "vocab.json", "merges.txt")
"""What a published GPT-2 holds."""
LONGEST_WAIT = 10.0
"""Seconds that reading, listing and replacing wait for each other; a stopped process holds nobody up for longer."""
A_WHILE = 3600.0
"""Seconds after which an unfinished save counts as left by a kill where there are no locks to tell."""

_WATCHED = tuple(dict.fromkeys((*FILES, *GPT2_FILES, "README.md")))
_HIDDEN = re.compile(r"\.(?P<name>.+)\.(?P<state>saving|saved|old)-[0-9a-f]{16}", re.DOTALL)


def checkpoint_root() -> Path:
    """Where checkpoint names are looked up: $TXCLS_CHECKPOINTS, ./checkpoints, or the one beside the package."""
    if configured := os.environ.get("TXCLS_CHECKPOINTS"):
        return Path(configured)
    here = Path("checkpoints")
    beside = Path(__file__).resolve().parent.parent / "checkpoints"
    return here if here.is_dir() or not beside.is_dir() else beside


def fingerprint(path: Path) -> str:
    """What changes whenever a file of the checkpoint folder is replaced, by one with an older date too.

    Raises:
        CheckpointError: there is no such folder.
    """
    try:
        if not path.is_dir():
            raise CheckpointError(f"no checkpoint folder {str(path)!r:.200}")
        states = []
        for name in _WATCHED:
            try:
                found = (path / name).stat()
            except FileNotFoundError:
                continue
            states.append((name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint folder {str(path)!r:.200} cannot be read: {reason(error)}") from None
    return hashlib.blake2b(repr(states).encode(), digest_size=16).hexdigest()


def reason(error: BaseException) -> str:
    """What an error of the operating system says without the path that it is about."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def is_hidden(name: str) -> bool:
    """Whether a folder of that name is none of a person's: unfinished saves, an editor's files, …"""
    return name.startswith(".")


@contextmanager
def reading(root: Path) -> Iterator[None]:
    """While this is open, no folder directly below `root` is replaced by another process of txcls."""
    with _locked(root, shared=True):
        yield


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """An empty folder to write; at the end it takes the place of `target`, unless something was raised.

    A kill at any point leaves the older folder, or the new one, whole: see `settle`.

    Raises:
        OSError: it cannot be made, written to the disk, or put there; what was there before is still there.
    """
    target = target.resolve() if target.is_symlink() else target
    root = target.parent
    root.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.is_dir():
        raise FileExistsError(errno.EEXIST, "a file stands there")
    settle(root)
    temporary, handle = _own_folder(target)
    try:
        yield temporary
        _flush(temporary)
        with _locked(root):
            whole = _hidden(target, "saved")
            temporary.rename(whole)
            temporary = whole  # from here on `settle` puts it in place where this process cannot
            _put(whole, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)


def _hidden(target: Path, state: str) -> Path:
    return target.with_name(f".{target.name}.{state}-{secrets.token_hex(8)}")


def _own_folder(target: Path) -> tuple[Path, int]:
    """A new folder beside `target`, and the handle by which this process holds it."""
    while True:
        temporary = _hidden(target, "saving")
        temporary.mkdir()
        try:
            temporary.chmod(0o755)  # a server may run as another user
            handle = os.open(temporary, os.O_RDONLY)
        except FileNotFoundError:
            continue  # `settle` elsewhere took it for what a kill left, before it was held
        if _hold(handle) is not False and temporary.is_dir():
            return temporary, handle
        os.close(handle)


def _put(new: Path, target: Path) -> None:
    """Put folder `new` in the place of `target`; if that fails, the old folder comes back."""
    old = None
    if target.is_dir():
        old = _hidden(target, "old")
        target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if old is not None and not target.exists():
            old.rename(target)
        raise
    _flush_folder(target.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Have the operating system put the files on disk now, so that a full disk shows before the old folder goes."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    """The same for which names a folder holds, where the system lets folders be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def names_in(root: Path) -> list[str]:
    """What stands in a folder, sorted; nothing where it is missing or cannot be listed."""
    try:
        return sorted(entry.name for entry in root.iterdir())
    except (OSError, ValueError):
        return []


def settle(root: Path) -> None:
    """Finish or remove what killed saves left below `root`; saves that are still running are let be.

    A whole new folder takes its place, a half-written one goes, an old one comes back where nothing took its place.
    Where this process may not write there, all stays as it is.
    """
    if not any(map(_HIDDEN.fullmatch, names_in(root))):
        return
    with _locked(root):
        found = [match for match in map(_HIDDEN.fullmatch, names_in(root)) if match]
        order = ("saved", "old", "saving")  # an old folder is wanted only where no new one is whole
        for match in sorted(found, key=lambda one: order.index(one["state"])):
            with suppress(OSError):  # not ours to write, or gone meanwhile
                _settle_one(match["state"], root / match[0], root / match["name"])


def _settle_one(state: str, entry: Path, target: Path) -> None:
    handle = os.open(entry, os.O_RDONLY)
    try:
        held = _hold(handle)
        if held is False or (held is None and time.time() - os.fstat(handle).st_ctime < A_WHILE):
            return  # somebody is writing it, or there is no telling
        if state == "saved":
            _put(entry, target)
        elif state == "old" and not target.exists():
            entry.rename(target)
        else:
            shutil.rmtree(entry, ignore_errors=True)
    finally:
        os.close(handle)


def _hold(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed: False where another holds it, None where locks are unknown."""
    if sys.platform == "win32":
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _locked(root: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a folder alone or with others, after waiting for those who hold it otherwise."""
    try:
        handle = os.open(root, os.O_RDONLY)
    except (OSError, ValueError):
        yield
        return
    try:
        until = time.monotonic() + LONGEST_WAIT
        while _hold(handle, shared=shared) is False and time.monotonic() < until:
            time.sleep(0.002)
        yield
    finally:
        os.close(handle)


@contextmanager
def alone(file: Path) -> Iterator[bool]:
    """Whether nobody else holds `file`, which is there and held meanwhile; always True where locks are unknown.

    Raises:
        OSError: it cannot be written.
    """
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # who held it before has just removed the folder
        held = _hold(handle) is not False
        if not held or _is_at(handle, file):
            break
        os.close(handle)  # who held it before has just removed it
    try:
        yield held
    finally:
        if held and _is_at(handle, file):
            file.unlink()
            with suppress(OSError):  # not empty
                file.parent.rmdir()
        os.close(handle)


def _is_at(handle: int, file: Path) -> bool:
    """Whether an open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False
