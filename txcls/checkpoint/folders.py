"""Checkpoint folders on disk: where they are, how they are replaced atomically, and recovery after a killed save.

A save writes to the hidden folder `.NAME.saving-X` next to the checkpoint's folder, and renames it to `.NAME.saved-X`
when it is complete. It then renames the older checkpoint to `.NAME.old-X` and the new one to NAME. The writing process
holds a lock (flock) on its hidden folder, which distinguishes a save in progress from a killed one. The parent folder
is locked while folders are renamed or read, so a reader gets the old or the new checkpoint, never a mixture. Without
such locks, as on some file systems, saving works too, but unfinished folders of killed saves are not removed.
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

from txcls.errors import CheckpointError, reason_of

if sys.platform != "win32":
    import fcntl

FILES = ("model.safetensors", "config.json", "tokenizer.json", "labels.json", "metrics.json", "history.jsonl")
"""The files of a checkpoint, apart from its README.md."""
SNAPSHOTS = "snapshots.safetensors"
"""Weights recorded during training; only some checkpoints have this file."""
LINEAR = "linear.skops"
"""A linear model fitted to the same rows, which `train FILE` saves unless the Transformer is better."""
TOKEN_COUNTS = "token_counts.json"
"""How often each token occurs in training texts; checkpoints of earlier versions lack this file."""
_NEXT_TO_PACKAGE = Path(__file__).resolve().parents[2] / "checkpoints"
ENCODER = "encoder"
"""Name of the shipped pre-trained model."""
GPT2_FILES = ("config.json", "model.safetensors", "vocab.json", "merges.txt")
"""The files of a published GPT-2 model."""
MAX_NAME = 35
"""Maximum number of characters in a name made from a file's name; `load.unpack` may append a number to it."""
LOCK_SECONDS = 10.0
"""How long reading, listing and replacing wait for a lock before they continue without it."""

_WATCHED = tuple(dict.fromkeys((*FILES, SNAPSHOTS, TOKEN_COUNTS, *GPT2_FILES, "README.md")))
_HIDDEN = re.compile(r"\.(?P<name>.+)\.(?P<state>saving|saved|old)-[0-9a-f]{16}", re.DOTALL)


def checkpoint_root() -> Path:
    """The folder of named checkpoints: $TXCLS_CHECKPOINTS, ./checkpoints, or the one next to the package."""
    if configured := os.environ.get("TXCLS_CHECKPOINTS"):
        return Path(configured)
    in_working_folder = Path("checkpoints")
    return in_working_folder if in_working_folder.is_dir() or not _NEXT_TO_PACKAGE.is_dir() else _NEXT_TO_PACKAGE


def encoder_folder() -> Path | None:
    """The pre-trained encoder, among the named checkpoints or else next to the package; None if it is missing."""
    folders = (checkpoint_root() / ENCODER, _NEXT_TO_PACKAGE / ENCODER)
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def fingerprint(path: Path) -> str:
    """A hash of the state of a checkpoint folder; it changes whenever a file is replaced, even by an older one.

    Raises:
        CheckpointError: there is no such folder.
    """
    try:
        if not path.is_dir():
            raise CheckpointError(f"no checkpoint folder {str(path)!r:.200}")
        states = []
        for name in _WATCHED:
            with suppress(FileNotFoundError):
                stat = (path / name).stat()
                states.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint folder {str(path)!r:.200} cannot be read: {reason_of(error)}") from None
    return hashlib.blake2b(repr(states).encode(), digest_size=16).hexdigest()


@contextmanager
def shared_lock(root: Path) -> Iterator[None]:
    """Inside the block, no other txcls process replaces a folder directly below `root`."""
    with _locked(root, shared=True):
        yield


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder to write to, which replaces `target` at the end of the block unless an exception is raised.

    If the process is killed, either the older or the new folder is complete: see `recover_saves`.

    Raises:
        OSError: the folder cannot be created, flushed or renamed; the older folder is unchanged.
    """
    target = target.resolve() if target.is_symlink() else target
    root = target.parent
    root.mkdir(parents=True, exist_ok=True)
    if target.exists() and not target.is_dir():
        raise FileExistsError(errno.EEXIST, "a file with that name exists")
    recover_saves(root)
    temporary, handle = _locked_folder(target)
    try:
        yield temporary
        _flush(temporary)
        with _locked(root):
            # from now on, `recover_saves` completes the save
            temporary = temporary.rename(_hidden_path(target, "saved"))
            _replace(target, temporary)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)


def _hidden_path(target: Path, state: str) -> Path:
    return target.with_name(f".{target.name}.{state}-{secrets.token_hex(8)}")


def _locked_folder(target: Path) -> tuple[Path, int]:
    """A new hidden folder next to `target`, and the handle that holds its lock."""
    while True:
        temporary = _hidden_path(target, "saving")
        temporary.mkdir()
        try:
            temporary.chmod(0o755)  # a server may run as another user
            handle = os.open(temporary, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process's `recover_saves` removed it before it was locked
        if _try_lock(handle) is not False and temporary.is_dir():
            return temporary, handle
        os.close(handle)


def _replace(target: Path, new: Path) -> None:
    """Replace `target` with the folder `new`; if that fails, restore the old folder."""
    old = None
    if target.is_dir():
        old = _hidden_path(target, "old")
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
    """Flush the files to disk, so that a full disk is detected before the old folder is replaced."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    _flush_folder(folder)


def _flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, if the system allows opening folders."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def names_in(root: Path) -> list[str]:
    """The names in a folder, sorted; empty if it is missing or cannot be listed."""
    try:
        return sorted(entry.name for entry in root.iterdir())
    except (OSError, ValueError):
        return []


def checkpoint_name(file: str) -> str:
    """A valid name for the checkpoint trained on a file: `my data.csv` gives `my_data`."""
    stem = file.removesuffix(".gz")
    stem = re.sub(r"\.(csv|tsv|tab|txt|jsonl|ndjson|json|parquet|xlsx|xlsm|zip)$", "", stem, flags=re.IGNORECASE)
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", stem).strip("_.-")
    return stem[:MAX_NAME] or "mine"


def recover_saves(root: Path) -> None:
    """Complete or roll back interrupted saves below `root`; saves in progress are not touched.

    A complete new folder is moved into place, and an incomplete one is removed. The old folder is restored if it was
    not replaced.
    """
    if not any(map(_HIDDEN.fullmatch, names_in(root))):
        return
    with _locked(root):
        matches = [match for match in map(_HIDDEN.fullmatch, names_in(root)) if match]
        order = ("saved", "old", "saving")  # an old folder is restored only if there is no complete new one
        for match in sorted(matches, key=lambda match: order.index(match["state"])):
            with suppress(OSError):  # no permission, or removed in the meantime
                _recover_folder(match["state"], root / match[0], root / match["name"])


def _recover_folder(state: str, entry: Path, target: Path) -> None:
    handle = os.open(entry, os.O_RDONLY)
    try:
        has_lock = _try_lock(handle)
        if has_lock is False or (has_lock is None and (state == "saving" or target.exists())):
            return  # the save is in progress, or may be
        if state == "saved":
            _replace(target, entry)
        elif state == "old" and not target.exists():
            entry.rename(target)
        else:
            shutil.rmtree(entry, ignore_errors=True)
    finally:
        os.close(handle)


def _try_lock(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed; False if it is already locked, None if the system has no
    locks."""
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
    """Lock a folder, exclusively or shared, waiting up to `LOCK_SECONDS` for conflicting locks."""
    try:
        handle = os.open(root, os.O_RDONLY)
    except (OSError, ValueError):
        yield
        return
    try:
        until = time.monotonic() + LOCK_SECONDS
        while _try_lock(handle, shared=shared) is False and time.monotonic() < until:
            time.sleep(0.002)
        yield
    finally:
        os.close(handle)
