"""Unpack a checkpoint from one zip file to a folder of checkpoints.

Archives are untrusted (see txcls/checkpoint/zip_files.py).
"""

import re
from pathlib import Path

from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import checkpoint_name, checkpoint_root, new_folder
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.zip_files import extract, without_folder
from txcls.errors import CheckpointError


def unpack(file: Path, root: Path, *, name: str) -> Checkpoint:
    """Check the checkpoint in an archive and write it to the folder `root/name`, which must not exist.

    Raises:
        CheckpointError: it is not a zip archive, contains anything other than one classifier, or is too large when
            unpacked; nothing is left on disk.
        ValueError: `name` is not a plain name.
    """
    _check_name(name)
    target = root / name
    try:
        with new_folder(target) as folder:
            extract(file, folder)
            checkpoint = load_checkpoint(folder)
            if checkpoint.config.objective != "classify":
                raise CheckpointError("it is a language model; expected a classifier")
    except CheckpointError as error:
        raise without_folder(error) from None
    except OSError as error:
        raise CheckpointError(f"{file.name}: cannot write its files ({error.strerror})") from None
    return load_checkpoint(target)


def import_archive(file: Path, *, name: str | None = None) -> Checkpoint:
    """Check the classifier in an archive and put it under `checkpoint_root()`, by default with the archive's name.

    Raises:
        CheckpointError: there is no such file, it is not one readable classifier, or there is a folder with this name.
    """
    if not file.is_file():
        raise CheckpointError(f"no file {str(file)!r:.200}; give the zip file that Save model wrote")
    name = checkpoint_name(file.name) if name is None else name
    try:
        _check_name(name)
    except ValueError as error:
        raise CheckpointError(f"--name {error}") from None
    target = checkpoint_root() / name
    if target.exists() or target.is_symlink():
        raise CheckpointError(f"{target} exists; choose another name: --name NAME")
    return unpack(file, checkpoint_root(), name=name)


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        raise ValueError(
            f"{name!r:.60}: expected at most 40 letters, digits, _ . and -, beginning with a letter or digit"
        )
