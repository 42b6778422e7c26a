"""A checkpoint: a trained model as a folder of plain files, written atomically and validated when read.

model.safetensors   weights                      config.json    every setting of the run, and the calibration
tokenizer.json      text to ids                  labels.json    class names in the order of the logits
metrics.json        metrics, and how it was made history.jsonl  one row per validation during training
README.md           the model card               snapshots.safetensors, in some: weights during training
linear.skops        in some: a separate linear model fitted to the same rows
token_counts.json   in most: token counts, by which unusual texts are recognised
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import save_file

from txcls.checkpoint.card import model_card
from txcls.checkpoint.folders import LINEAR, SNAPSHOTS, TOKEN_COUNTS, new_folder
from txcls.checkpoint.json_files import write_json
from txcls.checkpoint.probabilities import TokenCounts
from txcls.checkpoint.schema import (
    FORMAT_VERSION,
    MAX_MATRIX_CLASSES,
    MEASURED_SPLITS,
    classes_problem,
)
from txcls.checkpoint.snapshots import Snapshots, save_snapshots
from txcls.checkpoint.weights import as_stored, check_finite
from txcls.config import Calibration, RunConfig, ScopeRule
from txcls.errors import CheckpointError, reason_of
from txcls.model import Encoder
from txcls.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Checkpoint:
    """A model with everything needed to use it, and the record of how it was made.

    `model` is a `TextClassifier` or, for objectives other than "classify", a `LanguageModel` without `classes`. `path`
    is the checkpoint's folder; None until it is saved. `linear` is the file of a linear model fitted to the same rows,
    which `--model linear` uses; saving copies it. Weights are stored as float16, those of imported models as
    float32.
    """

    path: Path | None
    config: RunConfig
    tokenizer: Tokenizer
    classes: tuple[str, ...]
    model: Encoder
    calibration: Calibration = field(default_factory=Calibration)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    scope: ScopeRule | None = None
    snapshots: Snapshots | None = None
    token_counts: TokenCounts | None = None
    linear: Path | None = None

    def __post_init__(self) -> None:
        """Check that the metrics are about these classes; CheckpointError if they are not."""
        if problem := classes_problem(self.metrics, self.classes):
            raise CheckpointError(f"{'' if self.path is None else f'{self.path}{os.sep}'}metrics.json: {problem}")

    @property
    def name(self) -> str:
        """The folder's name or, if the checkpoint is not saved yet, the configuration's name."""
        return self.config.name if self.path is None else self.path.name

    def with_metrics(self, **metrics: Mapping[str, Any]) -> "Checkpoint":
        """A copy with these entries of metrics.json added or replaced, which its model card shows once saved."""
        return replace(self, metrics={**self.metrics, **metrics})

    @property
    def card(self) -> str:
        """The model card, as saved in README.md."""
        return model_card(
            name=self.name,
            config=self.config,
            classes=self.classes,
            vocab_size=self.tokenizer.vocab_size,
            n_parameters=self.model.n_parameters,
            calibration=self.calibration,
            scope=self.scope,
            metrics=self.metrics,
        )


def refuse_other_checkpoint_files(folder: Path) -> None:
    """Check that the folder is empty, missing or a checkpoint, since saving would delete other files.

    Raises:
        CheckpointError: it contains other files.
        OSError: the folder cannot be read.
    """
    is_checkpoint = all((folder / name).is_file() for name in ("config.json", "labels.json"))
    if folder.is_dir() and not is_checkpoint and any(folder.iterdir()):
        raise CheckpointError(f"{folder} holds other files, which would be deleted; choose another folder")


def save_checkpoint(checkpoint: Checkpoint, path: str | Path | None = None) -> Path:
    """Write a checkpoint folder and return its path; an older one is replaced only when the new one is complete.

    If `path` is None, `checkpoint.path` is used.

    Raises:
        CheckpointError: both `path` and `checkpoint.path` are None, the folder contains other files or cannot be
            written, or a weight is not finite; an older checkpoint there is unchanged.
    """
    target = checkpoint.path if path is None else Path(path)
    if target is None:
        raise CheckpointError(f"{checkpoint.name} has not been saved before; give the folder to save it in")
    checkpoint = replace(checkpoint, path=target)
    try:
        refuse_other_checkpoint_files(target)
        with new_folder(target) as temporary:
            weights = {name: tensor.contiguous() for name, tensor in checkpoint.model.state_dict().items()}
            if not checkpoint.config.imported:
                weights = check_finite(as_stored(weights), where="weights in float16")
            save_file(weights, temporary / "model.safetensors", metadata={"format": "txcls"})
            if checkpoint.snapshots is not None:
                save_snapshots(checkpoint.snapshots, temporary / SNAPSHOTS)
            if checkpoint.linear is not None:
                shutil.copyfile(checkpoint.linear, temporary / LINEAR)
            if checkpoint.token_counts is not None:
                write_json(temporary / TOKEN_COUNTS, asdict(checkpoint.token_counts), indent=None)
            config = {
                "format_version": FORMAT_VERSION,
                "calibration": checkpoint.calibration.model_dump(mode="json"),
                "scope": None if checkpoint.scope is None else checkpoint.scope.model_dump(mode="json"),
                **checkpoint.config.model_dump(mode="json"),
            }
            write_json(temporary / "config.json", config)
            write_json(temporary / "tokenizer.json", checkpoint.tokenizer.to_dict(), indent=None)
            write_json(temporary / "labels.json", list(checkpoint.classes))
            write_json(temporary / "metrics.json", _without_large_matrices(checkpoint.metrics))
            rows = "".join(json.dumps(row) + "\n" for row in checkpoint.history)
            (temporary / "history.jsonl").write_text(rows, encoding="utf-8")
            (temporary / "README.md").write_text(checkpoint.card, encoding="utf-8")
            for file in temporary.iterdir():
                file.chmod(0o644)  # a server may run as another user; safetensors makes its files private
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"cannot save checkpoint {target}: {reason_of(error):.200}; free some space or choose another folder. An "
            "older checkpoint there is unchanged"
        ) from error
    return target


def _without_large_matrices(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics without confusion matrices that would make metrics.json too large to read."""
    kept = dict(metrics)
    for split in MEASURED_SPLITS:
        if len(metrics.get(split, {}).get("confusion", ())) > MAX_MATRIX_CLASSES:
            kept[split] = {key: value for key, value in metrics[split].items() if key != "confusion"}
    return kept
