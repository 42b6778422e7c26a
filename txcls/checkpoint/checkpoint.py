"""A trained model as a folder of plain files, written atomically and validated when read.

model.safetensors   weights                      config.json    every setting of the run, and the calibration
tokenizer.json      text to ids                  labels.json    class names in the order of the logits
metrics.json        metrics, and how it was made history.jsonl  one row per validation during training
README.md           the model card               snapshots.safetensors, in some: weights during training
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file

from txcls.checkpoint.card import model_card
from txcls.checkpoint.files import FILES, SNAPSHOTS, checkpoint_root, new_folder, reason, settle, shared_lock
from txcls.checkpoint.json_files import read_json, write_json
from txcls.checkpoint.listing import checkpoint_names
from txcls.checkpoint.schema import (
    FORMAT_VERSION,
    MAX_MATRIX_CLASSES,
    MEASURED_SPLITS,
    checked_config,
    read_history,
    read_labels,
    read_metrics,
)
from txcls.checkpoint.snapshots import Snapshots, load_snapshots, save_snapshots
from txcls.checkpoint.weights import as_stored, build_without_memory, finite, load_weights
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError
from txcls.model import Encoder
from txcls.text.encoder import TextEncoder
from txcls.wording import shown


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to use a model, and the record of how it was made.

    `model` is a `TextClassifier` or, for objectives other than "classify", a `LanguageModel`, which has no `classes`.
    `path` is the checkpoint's folder; None until it is saved.
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
        """The folder's name or, until it is saved, the configuration's name."""
        return self.config.name if self.path is None else self.path.name

    def with_metrics(self, **metrics: Mapping[str, Any]) -> "Checkpoint":
        """A copy with these entries of metrics.json added or replaced; once saved, its model card shows them."""
        return replace(self, metrics={**self.metrics, **metrics})

    @property
    def n_parameters(self) -> int:
        """Number of trained parameters."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def find_checkpoint(path_or_name: str | Path) -> Path:
    """Find the folder for a path or for a name under `checkpoint_root()`.

    Raises:
        CheckpointError: there is no such folder.
        TypeError: `path_or_name` is neither a string nor a path.
    """
    if not isinstance(path_or_name, str | PathLike):
        raise TypeError(
            f"got {shown(path_or_name, limit=40)} ({type(path_or_name).__name__}); wanted a checkpoint's name or path"
        )
    candidates = (Path(path_or_name), checkpoint_root() / path_or_name) if str(path_or_name) else ()
    for attempt in range(2):
        for candidate in candidates:
            with suppress(OSError, ValueError):  # the name is too long or has a NUL byte
                if candidate.is_dir():
                    return candidate
                if not attempt:
                    settle(candidate.parent)  # a save may be in progress there, or may have been killed
    known = ", ".join(checkpoint_names()) or "none yet: `python -m txcls train sample` makes one"
    raise CheckpointError(f"no checkpoint folder {str(path_or_name)!r:.200}; known names: {known}")


def refuse_other_files(folder: Path) -> None:
    """Refuse a folder with files that are not a checkpoint's, since saving would delete them.

    Raises:
        CheckpointError: there are such files.
        OSError: the folder cannot be read.
    """
    is_checkpoint = all((folder / name).is_file() for name in ("config.json", "labels.json"))
    if folder.is_dir() and not is_checkpoint and any(folder.iterdir()):
        raise CheckpointError(f"{folder} holds other files, which would be deleted; choose another folder")


def save_checkpoint(checkpoint: Checkpoint, path: str | Path | None = None) -> Path:
    """Write a checkpoint folder and return it; an older one is replaced only once the new one is complete on disk.

    Weights are stored as float16; `load_checkpoint` returns float32. If `path` is None, `checkpoint.path` is used.

    Raises:
        CheckpointError: neither `path` nor `checkpoint.path` names a folder, the folder holds other files or cannot be
            written, or a weight is not finite; an older checkpoint there is unchanged.
    """
    target = checkpoint.path if path is None else Path(path)
    if target is None:
        raise CheckpointError(f"{checkpoint.name} has not been saved before; name the folder to save it in")
    checkpoint = replace(checkpoint, path=target)
    try:
        refuse_other_files(target)
        with new_folder(target) as temporary:
            weights = finite(as_stored(checkpoint.model.state_dict()), where="weights in float16")
            save_file(weights, temporary / "model.safetensors", metadata={"format": "txcls"})
            if checkpoint.snapshots is not None:
                save_snapshots(checkpoint.snapshots, temporary / SNAPSHOTS)
            config = {
                "format_version": FORMAT_VERSION,
                "calibration": checkpoint.calibration.model_dump(mode="json"),
                "scope": None if checkpoint.scope is None else checkpoint.scope.model_dump(mode="json"),
                **checkpoint.config.model_dump(mode="json"),
            }
            write_json(temporary / "config.json", config)
            write_json(temporary / "tokenizer.json", checkpoint.encoder.to_dict(), indent=None)
            write_json(temporary / "labels.json", list(checkpoint.classes))
            write_json(temporary / "metrics.json", _without_large_matrices(checkpoint.metrics))
            rows = "".join(json.dumps(row) + "\n" for row in checkpoint.history)
            (temporary / "history.jsonl").write_text(rows, encoding="utf-8")
            card = model_card(
                name=checkpoint.name,
                config=checkpoint.config,
                classes=checkpoint.classes,
                vocab_size=checkpoint.encoder.vocab_size,
                n_parameters=checkpoint.n_parameters,
                calibration=checkpoint.calibration,
                scope=checkpoint.scope,
                metrics=checkpoint.metrics,
            )
            (temporary / "README.md").write_text(card, encoding="utf-8")
            for file in temporary.iterdir():
                file.chmod(0o644)  # safetensors makes its files private, but a server may run as another user
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot save checkpoint {target}: {reason(error):.200}; an older one there is unchanged. "
            "Free some space or choose another folder"
        ) from error
    return target


def _without_large_matrices(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics without confusion matrices that have too many classes for metrics.json to be read back."""
    written = dict(metrics)
    for split in MEASURED_SPLITS:
        if len(metrics.get(split, {}).get("confusion", ())) > MAX_MATRIX_CLASSES:
            written[split] = {key: value for key, value in metrics[split].items() if key != "confusion"}
    return written


def load_checkpoint(path_or_name: str | Path) -> Checkpoint:
    """Read a checkpoint folder onto the CPU, with the model in evaluation mode; nothing is executed or unpickled.

    A checkpoint that is being replaced is read either as it was before or as it is after the replacement.

    Raises:
        CheckpointError: a file is missing, damaged or does not match the others; the message names file and field.
    """
    path = find_checkpoint(path_or_name)
    with shared_lock(path.absolute().parent):
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
    source = path / "tokenizer.json"
    values = read_json(source, dict)
    wanted = (config.model.max_length, config.reads_class_token)
    if (stored := (values.get("max_length"), values.get("class_token"))) != wanted:
        raise CheckpointError(
            f"{source}: max_length {stored[0]!r:.50} and class_token {stored[1]!r:.50} "
            f"do not fit config.json, which wants {wanted[0]} and {wanted[1]}"
        )
    tokens = values.get("tokens")
    if not isinstance(tokens, list) or not tokens:
        raise CheckpointError(f"{source}: tokens: wanted the list of all tokens, got {tokens!r:.50}")
    try:
        model = build_without_memory(config, vocab_size=len(tokens), n_classes=len(classes))
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: no model can be made of its settings ({error!s:.200})") from None
    # On the meta device, so that nothing is allocated unless the weights file really holds a model of that size.
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    weights = load_weights(path / "model.safetensors", shapes)
    try:
        encoder = TextEncoder.from_dict(values)
    except CheckpointError as error:
        raise CheckpointError(f"{source}: {error}") from None
    snapshots = load_snapshots(path / SNAPSHOTS, model.state_dict())
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    return Checkpoint(path, config, encoder, classes, model.eval(), calibration, metrics, history, scope, snapshots)
