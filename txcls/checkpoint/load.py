"""Find and load a checkpoint in a folder or a zip file, or unpack a zip file to checkpoints/.

Errors name the damaged file and field.
"""

import re
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from txcls.checkpoint.archive import extract, without_folder
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import (
    FILES,
    LINEAR,
    SNAPSHOTS,
    TOKEN_COUNTS,
    checkpoint_name,
    checkpoint_root,
    new_folder,
    recover_saves,
    shared_lock,
)
from txcls.checkpoint.json_files import read_json
from txcls.checkpoint.listing import checkpoint_names
from txcls.checkpoint.probabilities import read_token_counts
from txcls.checkpoint.schema import read_checkpoint_json
from txcls.checkpoint.snapshots import load_snapshots
from txcls.checkpoint.weights import load_model
from txcls.errors import CheckpointError, sanitize
from txcls.text.tokenizer import Tokenizer


def find_checkpoint(path_or_name: str | Path) -> Path:
    """Find the folder for a path, or for a name in `checkpoint_root()`.

    A folder that is no checkpoint, such as one with data of the same name, does not hide a checkpoint of that name.

    Raises:
        CheckpointError: there is no such folder.
        TypeError: `path_or_name` is neither a string nor a path.
    """
    if not isinstance(path_or_name, str | PathLike):
        raise TypeError(
            f"got {sanitize(path_or_name, limit=40)} ({type(path_or_name).__name__}); "
            "expected a checkpoint's name or path"
        )
    candidates = (Path(path_or_name), checkpoint_root() / path_or_name) if str(path_or_name) else ()
    other_folders: list[Path] = []
    for attempt in range(2):
        for candidate in candidates:
            with suppress(OSError, ValueError):  # the name is too long or has a NUL byte
                if (candidate / "config.json").exists():
                    return candidate
                if candidate.is_dir():
                    other_folders.append(candidate)
                if not attempt:
                    recover_saves(candidate.parent)  # a save may be in progress there, or may have been killed
    if other_folders:  # so that loading names the files that it lacks
        return other_folders[0]
    if str(path_or_name).endswith(".skops"):
        raise CheckpointError(
            f"{str(path_or_name)!r:.200} is a linear model, which scikit-learn loads: `import skops.io; model = "
            f"skops.io.load({str(path_or_name)!r:.200}); model.predict(['your text'])`"
        )
    if is_zip_file(path_or_name):
        raise CheckpointError(
            f"{str(path_or_name)!r:.200} is a zip file; put it under checkpoints/ first: "
            f"`python -m txcls import {path_or_name!s:.200}`"
        )
    known = ", ".join(checkpoint_names()) or "none yet: `python -m txcls train sample` makes one"
    raise CheckpointError(f"no checkpoint folder {str(path_or_name)!r:.200}; known names: {known}")


def is_zip_file(path_or_name: str | Path) -> bool:
    """Whether this is a zip file on disk, such as the one in which the app and the playground save a model."""
    with suppress(OSError, ValueError, TypeError):
        path = Path(path_or_name)
        return path.suffix.lower() == ".zip" and path.is_file()
    return False


def load_checkpoint(path_or_name: str | Path) -> Checkpoint:
    """Read a checkpoint onto the CPU, with the model in evaluation mode; nothing is executed or unpickled.

    It can be a folder, a name in `checkpoint_root()`, or a zip file, which is unpacked only temporarily. If a folder
    is being replaced, either the old or the new one is read.

    Raises:
        CheckpointError: a file is missing or damaged, or does not match the others; the message names file and field.
    """
    if is_zip_file(path_or_name):
        return _load_archive(Path(path_or_name))
    path = find_checkpoint(path_or_name)
    with shared_lock(path.absolute().parent):
        return _load(path)


def _load_archive(file: Path) -> Checkpoint:
    """The checkpoint in a zip file, which has no folder of its own."""
    try:
        with TemporaryDirectory(prefix="txcls-") as folder:
            extract(file, Path(folder))
            checkpoint = _load(Path(folder))
            # Copied, since weights may be read from the file when they are used.
            copies = {name: tensor.clone() for name, tensor in checkpoint.model.state_dict().items()}
            checkpoint.model.load_state_dict(copies, assign=True)
    except CheckpointError as error:
        raise CheckpointError(f"{file}: {without_folder(error)}") from None
    except OSError as error:
        raise CheckpointError(f"{file}: cannot unpack its files ({error.strerror})") from None
    return replace(checkpoint, path=None, linear=None)


def _load(path: Path) -> Checkpoint:
    if missing := [name for name in FILES if not (path / name).is_file()]:
        raise CheckpointError(f"checkpoint {path} lacks {', '.join(missing)}; copy the whole folder, or train it again")
    record = read_checkpoint_json(path)
    config, classes = record.config, record.classes
    source = path / "tokenizer.json"
    values = read_json(source, dict)
    expected = (config.model.max_length, config.reads_class_token)
    if (stored := (values.get("max_length"), values.get("class_token"))) != expected:
        raise CheckpointError(
            f"{source}: max_length {stored[0]!r:.50} and class_token {stored[1]!r:.50} "
            f"do not fit config.json, which needs {expected[0]} and {expected[1]}"
        )
    tokens = values.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        raise CheckpointError(f"{source}: tokens: expected the list of all tokens, got {tokens!r:.50}")
    model = load_model(path / "model.safetensors", config, vocab_size=len(tokens), n_classes=len(classes))
    try:
        tokenizer = Tokenizer.from_dict(values)
    except CheckpointError as error:
        raise CheckpointError(f"{source}: {error}") from None
    snapshots = load_snapshots(path / SNAPSHOTS, model.state_dict())
    counts = read_token_counts(path / TOKEN_COUNTS, tokenizer.vocab_size)
    linear = path / LINEAR if (path / LINEAR).is_file() else None
    return Checkpoint(
        path,
        config,
        tokenizer,
        classes,
        model,
        record.calibration,
        record.metrics,
        record.history,
        record.scope,
        snapshots,
        counts,
        linear,
    )


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
    """Check the classifier in an archive and unpack it to `checkpoint_root()`, by default under the archive's name.

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
