"""A checkpoint in one zip file, as the playground saves it.

Archives are untrusted: the names in an archive select files of a checkpoint, but never determine where files are
written, and the unpacked size is limited.
"""

import re
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from txcls.checkpoint.folders import FILES, SNAPSHOTS, TOKEN_COUNTS
from txcls.errors import CheckpointError, sanitize

MEMBERS = (*FILES, SNAPSHOTS, TOKEN_COUNTS, "README.md")
"""The file names that an archive may contain, in one folder or at the top level."""
MAX_BYTES = 64 << 20
"""Maximum number of bytes that an archive may unpack to."""
MAX_MEMBERS = 50
"""Maximum number of entries in an archive, including folders."""


def extract(file: Path, folder: Path) -> None:
    """Write the files of an archive to `folder` under their plain names.

    Raises:
        CheckpointError: it is not a zip archive, contains anything other than one checkpoint, or is too large when
            unpacked.
        OSError: a file cannot be written.
    """
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
                f"{source}: '{sanitize(entry.filename, limit=60)}' is not a file of a checkpoint ({', '.join(MEMBERS)})"
            )
        if path.name in members:
            raise CheckpointError(f"{source}: contains {path.name} twice; expected one checkpoint")
        members[path.name] = entry
    if missing := [name for name in FILES if name not in members]:
        raise CheckpointError(f"{source}: not a checkpoint, because it lacks {', '.join(missing)}")
    return members


def without_folder(error: CheckpointError) -> CheckpointError:
    """An error about an unpacked file, without the path of the temporary folder."""
    return CheckpointError(re.sub(r"\S*/(?=[\w.-]+\.(?:json|jsonl|safetensors)\b)", "", str(error)))
