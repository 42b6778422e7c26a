"""A trained model as a folder of plain files: written atomically, and validated when read.

model.safetensors   weights (see weights.py)     config.json    every setting of the run, and the calibration
tokenizer.json      text to ids                  labels.json    class names in the order of the logits
metrics.json        figures, and how it was made history.jsonl  one row per validation during training
README.md           the model card (see model_card.py)

Some hold states along the training too, in snapshots.safetensors (see snapshots.py).
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from txcls.checkpoint.card import model_card
from txcls.checkpoint.files import FILES, SNAPSHOTS, checkpoint_root, new_folder, reading, reason, settle
from txcls.checkpoint.json_files import read_json, write_json
from txcls.checkpoint.listing import checkpoint_names
from txcls.checkpoint.schema import (
    FORMAT_VERSION,
    MAX_CLASSES_OF_A_MATRIX,
    MEASURED_SPLITS,
    checked_config,
    read_history,
    read_labels,
    read_metrics,
)
from txcls.checkpoint.snapshots import Snapshots, load_snapshots, save_snapshots
from txcls.checkpoint.weights import as_stored, build_without_memory, read_shapes
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError
from txcls.model import Encoder
from txcls.text.encoder import TextEncoder
from txcls.wording import shown


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to use a model, and the record of how it was made.

    `model` is a `TextClassifier` where the objective is "classify", and a `LanguageModel` otherwise; only a classifier
    has `classes`. `path` is its folder, None until it is saved. `snapshots` are the states along its training, None if
    they were not kept.
    """

    path: Path | None
    config: RunConfig
    encoder: TextEncoder
    classes: tuple[str, ...]
    model: Encoder
    calibration: Calibration = field(default_factory=Calibration)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    scope: ScopeRule | None = None
    snapshots: Snapshots | None = None

    @property
    def name(self) -> str:
        """The folder's name; the configuration's until it is saved."""
        return self.config.name if self.path is None else self.path.name

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def find_checkpoint(path_or_name: str | Path) -> Path:
    """The folder that a path or a name under `checkpoint_root()` means.

    Raises:
        CheckpointError: neither is a folder.
        TypeError: got neither a string nor a path.
    """
    if not isinstance(path_or_name, str | PathLike):
        raise TypeError(
            f"got {shown(path_or_name, limit=40)} ({type(path_or_name).__name__}); wanted a checkpoint's name or path, "
            "a str or Path"
        )
    candidates = (Path(path_or_name), checkpoint_root() / path_or_name) if str(path_or_name) else ()
    for attempt in range(2):
        for candidate in candidates:
            with suppress(OSError, ValueError):  # a name too long, or with a NUL byte
                if candidate.is_dir():
                    return candidate
                if not attempt:
                    settle(candidate.parent)  # it may be being replaced now, or a kill may have left it half replaced
    known = ", ".join(checkpoint_names()) or "none yet: `python -m txcls train sample` makes one"
    raise CheckpointError(f"no checkpoint folder {str(path_or_name)!r:.200}; known names: {known}")


def refuse_other_files(folder: Path) -> None:
    """Refuse a folder whose files are not those of a checkpoint: a checkpoint that replaces it would delete them.

    Raises:
        CheckpointError: it is such a folder.
        OSError: it cannot be read.
    """
    is_checkpoint = all((folder / name).is_file() for name in ("config.json", "labels.json"))
    if folder.is_dir() and not is_checkpoint and any(folder.iterdir()):
        raise CheckpointError(f"{folder} holds other files, which would be deleted; choose another folder")


def save_checkpoint(checkpoint: Checkpoint, path: str | Path | None = None) -> Path:
    """Write a checkpoint folder, replacing an older one only once the new one is complete on disk.

    Weights are stored as float16; `load_checkpoint` returns float32.

    Args:
        checkpoint: unchanged; its card is written under the folder's name.
        path: the folder; None for `checkpoint.path`.

    Returns:
        The folder.

    Raises:
        CheckpointError: neither `path` nor `checkpoint.path` names a folder, the folder holds other files or cannot be
            written, or the disk is full; an older checkpoint there is unchanged.
    """
    target = checkpoint.path if path is None else Path(path)
    if target is None:
        raise CheckpointError(f"{checkpoint.name} has not been saved before; name the folder to save it in")
    checkpoint = replace(checkpoint, path=target)
    try:
        refuse_other_files(target)
        with new_folder(target) as temporary:
            weights = as_stored(checkpoint.model.state_dict())
            if worst := [name for name, tensor in weights.items() if not torch.isfinite(tensor).all()]:
                raise CheckpointError(f"weights {', '.join(worst)} are not finite in float16; nothing was saved")
            save_file(weights, temporary / "model.safetensors", metadata={"format": "txcls"})
            if checkpoint.snapshots is not None:
                save_snapshots(checkpoint.snapshots, temporary / SNAPSHOTS)
            write_json(
                temporary / "config.json",
                {
                    "format_version": FORMAT_VERSION,
                    "calibration": checkpoint.calibration.model_dump(mode="json"),
                    "scope": None if checkpoint.scope is None else checkpoint.scope.model_dump(mode="json"),
                    **checkpoint.config.model_dump(mode="json"),
                },
            )
            write_json(temporary / "tokenizer.json", checkpoint.encoder.to_dict(), indent=None)
            write_json(temporary / "labels.json", list(checkpoint.classes))
            write_json(temporary / "metrics.json", _written(checkpoint.metrics))
            rows = "".join(json.dumps(row) + "\n" for row in checkpoint.history)
            (temporary / "history.jsonl").write_text(rows, encoding="utf-8")
            (temporary / "README.md").write_text(_card(checkpoint), encoding="utf-8")
            for file in temporary.iterdir():
                file.chmod(0o644)  # safetensors makes its files private; a server may run as another user
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot save checkpoint {target}: {reason(error):.200}; an older one there is unchanged. "
            "Free some space or choose another folder"
        ) from error
    return target


def _card(checkpoint: Checkpoint) -> str:
    return model_card(
        name=checkpoint.name,
        config=checkpoint.config,
        classes=checkpoint.classes,
        vocab_size=checkpoint.encoder.vocab_size,
        n_parameters=checkpoint.n_parameters,
        calibration=checkpoint.calibration,
        scope=checkpoint.scope,
        metrics=checkpoint.metrics,
    )


def _written(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics without confusion matrices of so many classes that metrics.json would be too large to read back."""
    written = dict(metrics)
    for split in MEASURED_SPLITS:
        if len(metrics.get(split, {}).get("confusion", ())) > MAX_CLASSES_OF_A_MATRIX:
            written[split] = {key: value for key, value in metrics[split].items() if key != "confusion"}
    return written


def load_checkpoint(path_or_name: str | Path) -> Checkpoint:
    """Read a checkpoint folder onto the CPU, model in evaluation mode; nothing in it is executed or unpickled.

    A checkpoint that is being replaced is read either as it was before or as it is after.

    Raises:
        CheckpointError: a file is missing, damaged or does not fit the others; the message names file and field.
    """
    path = find_checkpoint(path_or_name)
    with reading(path.absolute().parent):
        return _load(path)


def _load(path: Path) -> Checkpoint:
    if missing := [name for name in FILES if not (path / name).is_file()]:
        raise CheckpointError(f"checkpoint {path} lacks {', '.join(missing)}; copy the whole folder, or train it again")
    source = path / "config.json"
    config, calibration, scope = checked_config(read_json(source, dict), source=str(source))
    classes = read_labels(path / "labels.json") if config.objective == "classify" else ()
    metrics = read_metrics(path / "metrics.json")
    history = read_history(path / "history.jsonl")
    for split in MEASURED_SPLITS:
        n = len(metrics.get(split, {}).get("confusion", classes))
        if n != len(classes):
            raise CheckpointError(
                f"{path / 'metrics.json'}: {split}.confusion is of {n} classes; labels.json names {len(classes)}"
            )
    tokenizer = read_json(path / "tokenizer.json", dict)
    wanted = (config.model.max_length, config.reads_class_token)
    if (came := (tokenizer.get("max_length"), tokenizer.get("class_token"))) != wanted:
        raise CheckpointError(
            f"{path / 'tokenizer.json'}: max_length {came[0]!r:.50} and class_token {came[1]!r:.50} "
            f"do not fit config.json, which wants {wanted[0]} and {wanted[1]}"
        )
    tokens = tokenizer.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        raise CheckpointError(f"{path / 'tokenizer.json'}: tokens: wanted the list of all tokens, got {tokens!r:.50}")
    model = _model_on_meta(path, config, vocab_size=len(tokens), n_classes=len(classes))
    encoder = _encoder(path / "tokenizer.json", tokenizer)
    snapshots = load_snapshots(path / SNAPSHOTS, model.state_dict())
    _fill(model, path / "model.safetensors")
    return Checkpoint(path, config, encoder, classes, model, calibration, metrics, history, scope, snapshots)


def _encoder(path: Path, values: dict[str, Any]) -> TextEncoder:
    try:
        return TextEncoder.from_dict(values)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None


def _model_on_meta(path: Path, config: RunConfig, *, vocab_size: int, n_classes: int) -> Encoder:
    """The model that a folder's small files describe, on the meta device, its shapes checked against the weights file.

    Nothing is allocated, however large a model a config.json describes, unless the weights file really holds it.
    """
    file = path / "model.safetensors"
    weights = read_shapes(file)
    try:
        model = build_without_memory(config, vocab_size=vocab_size, n_classes=n_classes)
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: no model can be made of its settings ({error!s:.200})") from None
    wanted = model.state_dict()
    problems = [f"lacks {name}" for name in wanted if name not in weights]
    problems += [f"holds unknown {name:.200}" for name in weights if name not in wanted]
    problems += [
        f"{name} is {tuple(weights[name].shape)}, wanted {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in weights and weights[name].shape != tensor.shape
    ]
    problems += [
        f"{name} is {weights[name].dtype}, wanted floating point"
        for name in wanted
        if name in weights and not weights[name].is_floating_point()
    ]
    _refuse(file, problems)
    return model


def _fill(model: Encoder, file: Path) -> None:
    """Load the weights of a file into a model on the meta device."""
    try:
        weights = load_file(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{file}: not a complete safetensors file ({error!s:.200})") from None
    odd = [name for name, one in weights.items() if not torch.isfinite(one).all()]
    _refuse(file, [f"{name} holds values that are not finite" for name in odd])
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    model.eval()


def _refuse(file: Path, problems: Sequence[str]) -> None:
    if problems:
        shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
        raise CheckpointError(f"{file} does not fit config.json, tokenizer.json and labels.json: {shown}")
