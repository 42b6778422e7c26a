"""A checkpoint as one zip file.

Archives are untrusted: the names in an archive select files of a checkpoint, but never determine where files are
written, and the unpacked size is limited.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import FILES, SNAPSHOTS, new_folder
from txcls.checkpoint.load import load_checkpoint
from txcls.errors import CheckpointError
from txcls.wording import shown

MEMBERS = (*FILES, SNAPSHOTS, "README.md")
"""The file names that an archive may contain, in one folder or at the top level."""
MAX_BYTES = 64 << 20
"""Maximum number of bytes that an archive may unpack to."""
MAX_MEMBERS = 50
"""Maximum number of entries in an archive, including folders."""


def pack(folder: Path) -> bytes:
    """The checkpoint folder as a zip archive that contains a folder with the same name.

    Raises:
        CheckpointError: a file is missing.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in MEMBERS:
            if (folder / name).is_file():
                archive.write(folder / name, f"{folder.name}/{name}")
            elif name in FILES:
                raise CheckpointError(f"checkpoint {folder.name} lacks {name}; train it again")
    return out.getvalue()


def unpack(
    file: Path, root: Path, *, name: str, check: Callable[[Checkpoint], object] = lambda checkpoint: None
) -> Checkpoint:
    """Check the checkpoint in an archive and write it to the folder `root/name`, which must not exist.

    `check` may raise CheckpointError to reject a checkpoint.

    Raises:
        CheckpointError: it is not a zip archive, contains anything other than one classifier, or is too large when
            unpacked; nothing is left on disk.
        ValueError: `name` is not a plain name.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        raise ValueError(
            f"{name!r:.60}: expected at most 40 letters, digits, _ . and -, beginning with a letter or digit"
        )
    target = root / name
    try:
        with new_folder(target) as folder:
            _extract(file, folder)
            checkpoint = load_checkpoint(folder)
            if checkpoint.config.objective != "classify":
                raise CheckpointError("it is a language model; expected a classifier")
            check(checkpoint)
    except CheckpointError as error:  # without the temporary folder's path in the message
        raise CheckpointError(re.sub(r"\S*/(?=[\w.-]+\.(?:json|jsonl|safetensors)\b)", "", str(error))) from None
    except OSError as error:
        raise CheckpointError(f"{file.name}: cannot write its files ({error.strerror})") from None
    return load_checkpoint(target)


def _extract(file: Path, folder: Path) -> None:
    """Write the files of an archive to `folder` under their plain names."""
    try:
        with zipfile.ZipFile(file) as archive:
            n_bytes_left = MAX_BYTES
            for name, entry in _members(archive, file.name).items():
                with archive.open(entry) as packed, (folder / name).open("wb") as target:
                    while chunk := packed.read(1 << 20):
                        if (n_bytes_left := n_bytes_left - len(chunk)) < 0:
                            raise CheckpointError(f"{file.name}: unpacks to more than {MAX_BYTES >> 20} MB")
                        target.write(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise CheckpointError(
            f"{file.name}: not a readable zip archive ({reason:.200}); download the checkpoint again"
        ) from None


def _members(archive: zipfile.ZipFile, source: str) -> dict[str, zipfile.ZipInfo]:
    """The entries of the checkpoint's files, keyed by plain file name."""
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise CheckpointError(f"{source}: {len(entries):,} entries; expected only the files of one checkpoint")
    members: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        if entry.is_dir():
            continue
        path = PurePosixPath(entry.filename)
        if path.name not in MEMBERS or len(path.parts) > 2:
            raise CheckpointError(
                f"{source}: '{shown(entry.filename, limit=60)}' is not a file of a checkpoint ({', '.join(MEMBERS)})"
            )
        if path.name in members:
            raise CheckpointError(f"{source}: contains {path.name} twice; expected one checkpoint")
        members[path.name] = entry
    if missing := [name for name in FILES if name not in members]:
        raise CheckpointError(f"{source}: not a checkpoint, because it lacks {', '.join(missing)}")
    return members
