"""`txcls train` and `txcls pretrain`."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from txcls.cli.options import DataOption, DeviceOption, PresetArgument, SettingsOption
from txcls.cli.output import note_once
from txcls.errors import TrainingError

if TYPE_CHECKING:
    from txcls.config import RunConfig

OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Checkpoint folder to write  [default: checkpoints/PRESET]")
]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Same as --set train.seed=N.")]
InitOption = Annotated[
    str | None, typer.Option("--init", metavar="CHECKPOINT", help="Start from a model made by `pretrain`.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run with the same settings.")]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing checkpoint or an interrupted run's saved state.")
]
StepsOption = Annotated[
    int | None, typer.Option("--max-steps", metavar="N", min=1, help="Stop after N optimiser steps, for a trial.")
]
SnapshotsOption = Annotated[
    int | None,
    typer.Option("--snapshots", metavar="N", help="Same as --set train.snapshots=N: keep N states for Training film."),
]


def train(
    preset: PresetArgument,
    data: DataOption = None,
    out: OutOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    init: InitOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    max_steps: StepsOption = None,
    snapshots: SnapshotsOption = None,
    device: DeviceOption = None,
) -> None:
    """Train a preset and save the weights that did best on validation rows as a checkpoint folder.

    To use several processes or GPUs: `torchrun --nproc-per-node N -m txcls train …`.
    """
    from txcls import training
    from txcls.checkpoint import load_checkpoint

    changes = [*(settings or ()), *([] if snapshots is None else [f"train.snapshots={snapshots}"])]
    config, folder = _config_and_folder(preset, changes, seed, out, overwrite=overwrite)
    start = None if init is None else load_checkpoint(init)
    if start is not None:
        config = training.settings_from(start, config, assignments=settings or ())
    with _training_run(device) as shared:
        checkpoint = training.train(
            config,
            out=folder,
            data_path=data,
            init=start,
            resume=resume,
            overwrite=overwrite,
            max_steps=max_steps,
            **shared,
        )
    figures = checkpoint.metrics["validation"]
    note_once(
        f"saved {folder}: validation accuracy {figures['accuracy']:.2%}, macro-F1 {figures['macro_f1']:.4f}, "
        f"calibration error {figures['ece']:.4f} on {figures['n']:,} rows"
    )


def pretrain(
    preset: PresetArgument,
    data: DataOption = None,
    out: OutOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    max_steps: StepsOption = None,
    device: DeviceOption = None,
) -> None:
    """Train a model on unlabelled training texts, for `train --init` and `generate`.

    To use several processes or GPUs: `torchrun --nproc-per-node N -m txcls pretrain …`.
    """
    from txcls import training

    config, folder = _config_and_folder(preset, settings, seed, out, overwrite=overwrite)
    with _training_run(device) as shared:
        checkpoint = training.pretrain(
            config,
            out=folder,
            data_path=data,
            resume=resume,
            overwrite=overwrite,
            max_steps=max_steps,
            **shared,
        )
    figures = checkpoint.metrics["language"]
    name = "perplexity" if "perplexity" in figures else "loss"
    note_once(f"saved {folder}: validation {name} {figures[name]:.2f}, token accuracy {figures['accuracy']:.2%}")


def _config_and_folder(
    preset: str, settings: list[str] | None, seed: int | None, out: Path | None, *, overwrite: bool
) -> tuple["RunConfig", Path]:
    """The configuration that the command line describes, and the checkpoint folder to write.

    Raises:
        TrainingError: the folder exists, and `overwrite` is not set.
    """
    from txcls.config import load_preset
    from txcls.folders import checkpoint_root

    config = load_preset(preset).with_settings([*(settings or ()), *([] if seed is None else [f"train.seed={seed}"])])
    folder = out or checkpoint_root() / config.name
    if folder.exists() and not overwrite:
        raise TrainingError(
            f"{folder} already exists; choose another folder with --out DIR, or replace it with --overwrite"
        )
    return config, folder


@contextmanager
def _training_run(device: str | None) -> Iterator[dict[str, Any]]:
    """Join the other processes of a torchrun run; yields the arguments that `train` and `pretrain` share."""
    from txcls import training
    from txcls.training.display import TrainingDisplay
    from txcls.training.distributed import launcher

    with training.joined(device) as processes, TrainingDisplay(shown=processes.rank == 0) as display:
        yield {
            # As typed, for the model card; without this machine's path to Python.
            "command": f"{launcher()} {shlex.join(['txcls', *sys.argv[1:]])}",
            "device": device,
            **display.callbacks,
        }
