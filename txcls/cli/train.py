"""`txcls train` and `txcls pretrain`."""

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from txcls import training
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.options import (
    DataOption,
    DeviceOption,
    LabelColumnOption,
    MergeOption,
    PresetArgument,
    PresetOrFileArgument,
    SettingsOption,
    SheetOption,
    TextColumnOption,
    joined_columns,
)
from txcls.cli.output import command, note
from txcls.cli.train_file import out_folder, refuse_other_options, train_file
from txcls.config import RunConfig, load_preset, preset_names
from txcls.data.tables.table import has_table_suffix
from txcls.errors import DataError, TrainingError
from txcls.training.display import TrainingDisplay
from txcls.training.run_folder import refuse_existing
from txcls.wording import percentage, shown

OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Checkpoint folder to write  [default: checkpoints/PRESET]")
]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Same as --set train.seed=N.")]
InitOption = Annotated[
    str | None, typer.Option("--init", metavar="CHECKPOINT", help="Start from a model made by `pretrain`.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="PRESET only: continue an interrupted run with the same settings.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing checkpoint or an interrupted run's saved state.")
]
StepsOption = Annotated[
    int | None, typer.Option("--max-steps", metavar="N", min=1, help="Stop after N optimiser steps, as a trial.")
]
SnapshotsOption = Annotated[
    int | None,
    typer.Option(
        "--snapshots", metavar="N", help="Same as --set train.snapshots=N: save N states for the page Training film."
    ),
]
TestOption = Annotated[
    Path | None,
    typer.Option("--test", metavar="FILE", help="FILE only: test rows  [default: a fifth of the rows is held out]"),
]
MinutesOption = Annotated[
    float | None, typer.Option("--minutes", metavar="M", help="FILE only: time budget  [default: 5]")
]


def train(
    context: typer.Context,
    preset: PresetOrFileArgument,
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
    test: TestOption = None,
    minutes: MinutesOption = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: SheetOption = None,
    merge_labels: MergeOption = False,
    model: Annotated[
        Literal["transformer", "linear"] | None,
        typer.Option(help="FILE only: linear fits and saves only the linear model  [default: transformer]"),
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="FILE only: after measuring, train the better model on all rows.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="FILE only: print every choice and note.")] = False,
) -> None:
    """Train on your own file or with a preset; the result is saved as a checkpoint folder.

    With a file, all settings are chosen from the data and the time budget, and the result is compared with a linear
    model on held-out rows, which is saved beside it where it is better. With a preset, the weights with the best
    validation result are saved; a preset for pre-training is trained as by `pretrain`.
    """
    is_file = _is_table_file(preset)
    refuse_other_options(context.params, is_file=is_file)
    if is_file:
        train_file(
            Path(preset),
            started=time.monotonic() if context.obj is None else context.obj,
            test=test,
            minutes=minutes,
            text_column=joined_columns(text_column),
            label_column=label_column,
            sheet=sheet,
            merge=merge_labels,
            out=out,
            seed=seed,
            init=init,
            overwrite=overwrite,
            is_linear=model == "linear",
            refit=refit,
            verbose=verbose,
        )
        return
    changes = [*(settings or ()), *([] if snapshots is None else [f"train.snapshots={snapshots}"])]
    config, folder = _config_and_folder(preset, changes, seed, out, resume=resume, overwrite=overwrite)
    if config.objective != "classify":
        if init is not None:
            raise TrainingError(f"--init {init}: {config.name} is a preset for pre-training, which starts from scratch")
        _pretrain(config, folder, data, resume=resume, overwrite=overwrite, max_steps=max_steps, device=device)
        return
    if config.data.dataset == "table" and data is not None:
        config = config.model_copy(update={"title": shown(data.name, limit=80)})  # replaces the preset's own title
    start = None if init is None else load_checkpoint(init)
    if start is not None:
        config = training.settings_from(start, config, assignments=settings or ())
    try:
        with _training_run(device) as run_arguments:
            checkpoint = training.train(
                config,
                out=folder,
                data_path=data,
                init=start,
                resume=resume,
                overwrite=overwrite,
                max_steps=max_steps,
                measure_threads=True,
                **run_arguments,
            )
    except DataError as error:
        if data is None or config.data.dataset == "table" or not has_table_suffix(data.name):
            raise
        own = f"`python -m txcls train {shlex.quote(str(data))}`"
        raise DataError(f"{error}. To train on your own file: {own}") from None
    metrics = checkpoint.metrics["validation"]
    accuracy, macro_f1 = (percentage(metrics[name], 2) for name in ("accuracy", "macro_f1"))
    note(
        f"saved {folder}: validation accuracy {accuracy}, macro-F1 {macro_f1}, "
        f"calibration error {metrics['ece']:.4f} on {metrics['n']:,} rows"
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
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", metavar="M", min=0.01, help="Total training time; the schedule is fitted to it."),
    ] = None,
    device: DeviceOption = None,
) -> None:
    """Pre-train a model on unlabelled texts, for `train --init` and `generate`.

    With `--minutes`, the learning rate falls to zero within that time, even if the option is only given to resume.
    """
    config, folder = _config_and_folder(preset, settings, seed, out, resume=resume, overwrite=overwrite)
    options = {"resume": resume, "overwrite": overwrite, "max_steps": max_steps, "minutes": minutes}
    _pretrain(config, folder, data, device=device, **options)


def _pretrain(config: RunConfig, folder: Path, data: Path | None, *, device: str | None, **options: Any) -> None:
    with _training_run(device) as run_arguments:
        checkpoint = training.pretrain(config, out=folder, data_path=data, **options, **run_arguments)
    metrics = checkpoint.metrics["language"]
    name = "perplexity" if "perplexity" in metrics else "loss"
    note(f"saved {folder}: validation {name} {metrics[name]:.2f}, token accuracy {percentage(metrics['accuracy'], 2)}")


def _is_table_file(name: str) -> bool:
    """Whether the argument of `train` is the user's own table rather than a preset."""
    if name in preset_names() or name.endswith(".toml"):
        return False
    return has_table_suffix(name) or Path(name).is_file()


def _config_and_folder(
    preset: str, settings: list[str] | None, seed: int | None, out: Path | None, *, resume: bool, overwrite: bool
) -> tuple[RunConfig, Path]:
    """The configuration according to the options, and the checkpoint folder to write.

    Raises:
        TrainingError: the folder exists, and `overwrite` is not set.
    """
    config = load_preset(preset).with_settings([*(settings or ()), *([] if seed is None else [f"train.seed={seed}"])])
    folder = out_folder(out, config.name, resume=resume)
    refuse_existing(folder, overwrite=overwrite)
    return config, folder


@contextmanager
def _training_run(device: str | None) -> Iterator[dict[str, Any]]:
    """Show progress, and yield the arguments that `train` and `pretrain` share."""
    with TrainingDisplay(shown=True) as display:
        yield {
            "command": command(),  # for the model card
            "device": device,
            **display.callbacks,
        }
