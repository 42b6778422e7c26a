"""A checkpoint as one zip file, packed to be taken away, and unpacked with distrust.

An archive is hostile until shown otherwise: names in it only choose among the files of a checkpoint, never where
anything is written; what is not one of these is refused, and so is what unpacks to more than a checkpoint takes.
"""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from txcls.checkpoint.checkpoint import Checkpoint, load_checkpoint
from txcls.checkpoint.files import FILES, SNAPSHOTS, new_folder
from txcls.errors import CheckpointError
from txcls.wording import shown

MEMBERS = (*FILES, SNAPSHOTS, "README.md")
"""The names of files that an archive may hold, in one folder or in none."""
MAX_BYTES = 64 << 20
"""Most bytes that an archive may unpack to."""
MAX_MEMBERS = 50
"""Most entries of an archive, folders included."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def pack(folder: Path) -> bytes:
    """The checkpoint in this folder as a zip archive, its files in a folder of the same name.

    Raises:
        CheckpointError: a file is missing.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in MEMBERS:
            file = folder / name
            if file.is_file():
                archive.write(file, f"{folder.name}/{name}")
            elif name in FILES:
                raise CheckpointError(f"checkpoint {folder.name} lacks {name}; train it again")
    return out.getvalue()


def unpack(
    file: Path, root: Path, *, name: str, check: Callable[[Checkpoint], object] = lambda checkpoint: None
) -> Checkpoint:
    """Check the checkpoint in an archive and write it to the folder `root/name`, which must not exist.

    Args:
        file: the zip archive.
        root: an existing folder.
        name: of the new folder; the archive's own is not used.
        check: raises CheckpointError for a checkpoint that is not wanted.

    Raises:
        CheckpointError: it is no zip archive, holds anything but one checkpoint, unpacks to too much, or is no
            classifier that a text can be given; nothing is left behind.
        ValueError: `name` is not a plain name.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.60}: wanted letters, digits, _ . and -, at most 40")
    target = root / name
    try:
        with new_folder(target) as folder:
            _extract(file, folder)
            checkpoint = load_checkpoint(folder)
            if checkpoint.config.objective != "classify":
                raise CheckpointError("it is a language model; wanted a classifier")
            check(checkpoint)
    except CheckpointError as error:
        raise CheckpointError(re.sub(r"\S*/(?=[\w.-]+\.(?:json|jsonl|safetensors)\b)", "", str(error))) from None
    except OSError as error:
        raise CheckpointError(f"{file.name}: cannot write its files ({error.strerror})") from None
    return load_checkpoint(target)


def _extract(file: Path, folder: Path) -> None:
    """Write the members of an archive under their plain names."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = _checked(archive, file)
            left = MAX_BYTES
            for name, entry in entries.items():
                with archive.open(entry) as packed, (folder / name).open("wb") as target:
                    while chunk := packed.read(1 << 20):
                        if (left := left - len(chunk)) < 0:
                            raise _too_much(file)
                        target.write(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise CheckpointError(
            f"{file.name}: not a readable zip archive ({reason:.200}); download the checkpoint again"
        ) from None


def _checked(archive: zipfile.ZipFile, file: Path) -> dict[str, zipfile.ZipInfo]:
    """The entry of each file of the checkpoint, by its plain name."""
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise CheckpointError(f"{file.name}: {len(entries):,} entries, wanted those of one checkpoint")
    if sum(entry.file_size for entry in entries) > MAX_BYTES:
        raise _too_much(file)
    found: dict[str, zipfile.ZipInfo] = {}
    folders = set()
    for entry in entries:
        path = PurePosixPath(entry.filename)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if entry.is_dir():
            continue
        if path.is_absolute() or ".." in path.parts or "\\" in entry.filename or "\0" in entry.orig_filename:
            raise _refused(file, entry, "points outside of the archive")
        if kind not in (0, stat.S_IFREG):
            raise _refused(file, entry, "is not a plain file")
        if entry.flag_bits & 0x1:
            raise _refused(file, entry, "is encrypted")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _refused(file, entry, "is compressed in a way that is not read")
        if path.name not in MEMBERS or len(path.parts) > 2:
            raise _refused(file, entry, f"is no file of a checkpoint ({', '.join(MEMBERS)})")
        if path.name in found:
            raise _refused(file, entry, "comes twice")
        folders.add(path.parent)
        found[path.name] = entry
    if missing := [name for name in FILES if name not in found]:
        raise CheckpointError(f"{file.name}: no checkpoint, since it lacks {', '.join(missing)}")
    if len(folders) > 1:
        raise CheckpointError(f"{file.name}: its files are in several folders; pack one checkpoint")
    return found


def _refused(file: Path, entry: zipfile.ZipInfo, why: str) -> CheckpointError:
    return CheckpointError(f"{file.name}: refused, since '{shown(entry.filename, limit=60)}' {why}")


def _too_much(file: Path) -> CheckpointError:
    return CheckpointError(f"{file.name}: refused, since it unpacks to more than {MAX_BYTES >> 20} MB")


__all__ = ["MAX_BYTES", "pack", "unpack"]
