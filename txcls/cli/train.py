"""`txcls train` and `txcls pretrain`."""

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from txcls import training
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.folders import checkpoint_name, checkpoint_root
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.import_model import how_to_open_in_app
from txcls.cli.shared import (
    DataOption,
    DeviceOption,
    LabelColumnOption,
    SettingsOption,
    SheetOption,
    TextColumnOption,
    command,
    console,
    join_columns,
    note,
    print_rows,
)
from txcls.config import RunConfig, load_preset, preset_names
from txcls.data.columns import guess_columns
from txcls.data.labelled import TableRows, labelled_rows, notes_before_training, read_labelled
from txcls.data.splits import same_text_other_label
from txcls.data.table import Table, has_table_suffix
from txcls.errors import ConfigError, DataError, Note, TrainingError, quote, sanitize
from txcls.text.formatting import percentage
from txcls.training.display import TrainingDisplay
from txcls.training.plan import plan_training
from txcls.training.run_folder import folder_to_resume, refuse_existing
from txcls.training.run_plan import TrainingResult, run_plan

FILE_ONLY = ("test", "minutes", "text_column", "label_column", "sheet", "merge_labels", "refit", "verbose")
"""Options that apply only to training on a file."""
PRESET_ONLY = ("data", "settings", "max_steps", "device", "resume")
"""Options that apply only to training a preset."""
SLOW = 1.5
"""The machine is called busy if fitting the linear model took at least so many times as long as estimated."""

OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Folder to write  [default: checkpoints/NAME]"),
]
SeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Same as --set train.seed=N.")]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="PRESET only: continue an interrupted run with the same settings.")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing checkpoint or an interrupted run's saved state.")
]
StepsOption = Annotated[
    int | None, typer.Option("--max-steps", metavar="N", min=1, help="Stop after N optimiser steps, as a trial.")
]


def train(
    context: typer.Context,
    preset: Annotated[
        str,
        typer.Argument(
            metavar="FILE|PRESET",
            help="Your own table (CSV, TSV, JSON Lines, JSON, Parquet, Excel), or a preset's name or TOML file.",
        ),
    ],
    data: DataOption = None,
    out: OutOption = None,
    settings: SettingsOption = None,
    seed: SeedOption = None,
    init: Annotated[
        str | None, typer.Option("--init", metavar="CHECKPOINT", help="Start from a model made by `pretrain`.")
    ] = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    max_steps: StepsOption = None,
    device: DeviceOption = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="FILE", help="FILE only: test rows  [default: a fifth of the rows is held out]"),
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="M", help="FILE only: time budget  [default: 5]")
    ] = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: SheetOption = None,
    merge_labels: Annotated[
        bool,
        typer.Option(
            "--merge-labels", help="Merge labels that seem to be spellings of one; drop placeholders such as n/a."
        ),
    ] = False,
    refit: Annotated[
        bool, typer.Option("--refit", help="FILE only: after measuring, train the better model on all rows.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="FILE only: print every choice and note.")] = False,
) -> None:
    """Train on your own file or with a preset; the result is saved as a checkpoint folder.

    With a file, all settings are chosen from the data and the time budget, and the result is compared on held-out
    rows with a linear model, which is saved beside it unless the Transformer is better. With a preset, the weights with
    the best validation result are saved; a pre-training preset is trained as `pretrain` would.
    """
    is_preset = preset in preset_names() or preset.endswith(".toml")
    is_file = not is_preset and (has_table_suffix(preset) or Path(preset).is_file())
    _refuse_other_options(context.params, is_file=is_file)
    if not (is_preset or is_file):
        _suggest_file(Path(preset))
    if is_file:
        columns = {"text_column": join_columns(text_column), "label_column": label_column}
        train_file(
            Path(preset),
            out,
            overwrite=overwrite,
            columns={**columns, "sheet": sheet, "merge": merge_labels},
            test=test,
            init=init,
            refit=refit,
            verbose=verbose,
            minutes=5.0 if minutes is None else minutes,
            seed=seed or 0,
            started=time.monotonic() if context.obj is None else context.obj,
        )
        return
    config = _load_config(preset, settings or (), seed)
    options: dict[str, Any] = {"resume": resume, "overwrite": overwrite, "max_steps": max_steps}
    if config.objective != "classify":
        if init is not None:
            raise TrainingError(f"--init {init}: {config.name} is a preset for pre-training, which starts from scratch")
        _pretrain(config, data, out, device=device, **options)
        return
    folder = _folder(out, config.name, resume=resume, overwrite=overwrite)
    if config.data.dataset == "table" and data is not None:
        config = config.model_copy(update={"title": sanitize(data.name, limit=80)})  # replaces the preset's own title
    start = None if init is None else load_checkpoint(init)
    if start is not None:
        config = training.settings_from(start, config, assignments=settings or ())
    try:
        with _training_run(device) as run_arguments:
            checkpoint = training.train(
                config, out=folder, data_path=data, init=start, measure_threads=True, **options, **run_arguments
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
    preset: Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name, or a TOML file.")],
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
    options = {"resume": resume, "overwrite": overwrite, "max_steps": max_steps, "minutes": minutes}
    _pretrain(_load_config(preset, settings or (), seed), data, out, device=device, **options)


def _pretrain(config: RunConfig, data: Path | None, out: Path | None, *, device: str | None, **options: Any) -> None:
    folder = _folder(out, config.name, resume=options["resume"], overwrite=options["overwrite"])
    with _training_run(device) as run_arguments:
        checkpoint = training.pretrain(config, out=folder, data_path=data, **options, **run_arguments)
    metrics = checkpoint.metrics["language"]
    name = "perplexity" if "perplexity" in metrics else "loss"
    note(f"saved {folder}: validation {name} {metrics[name]:.2f}, token accuracy {percentage(metrics['accuracy'], 2)}")


def _load_config(preset: str, settings: Sequence[str], seed: int | None) -> RunConfig:
    return load_preset(preset).with_settings([*settings, *([] if seed is None else [f"train.seed={seed}"])])


def _folder(out: Path | None, name: str, *, overwrite: bool, resume: bool = False) -> Path:
    """The checkpoint folder to write: `out` if given, else that of the run to resume, else the default for the name.

    Raises:
        TrainingError: the folder exists, and `overwrite` is not set.
    """
    default = checkpoint_root() / name
    folder = out or (folder_to_resume(default) if resume else default)
    if out is None and folder != default:
        note(f"continuing the interrupted run in {folder}")
    refuse_existing(folder, overwrite=overwrite)
    return folder


def _refuse_other_options(options: Mapping[str, object], *, is_file: bool) -> None:
    """Refuse options that apply only to the other kind of training.

    Raises:
        ConfigError: such an option was given.
    """
    unsuitable = PRESET_ONLY if is_file else FILE_ONLY
    given = [name for name in unsuitable if options.get(name) not in (None, (), [], False)]
    if not given:
        return
    names = ", ".join("--set" if name == "settings" else "--" + name.replace("_", "-") for name in given)
    if is_file:
        raise ConfigError(
            f"{names}: cannot be used with your own file, for which all settings are chosen automatically; use a "
            "preset instead: `python -m txcls train own --data FILE --init encoder`"
        )
    raise ConfigError(f"{names}: only with your own file, as in `python -m txcls train mine.csv`")


@contextmanager
def _training_run(device: str | None) -> Iterator[dict[str, Any]]:
    """Show progress, and yield the arguments that `train` and `pretrain` share."""
    with TrainingDisplay(shown=True) as display:
        yield {"command": command(), "device": device, **display.callbacks}  # the command is for the model card


# Your own file


def train_file(
    file: Path,
    out: Path | None,
    *,
    overwrite: bool,
    columns: Mapping[str, Any],
    test: Path | None,
    init: str | None,
    refit: bool,
    verbose: bool,
    **planning: Any,
) -> None:
    """Guess the columns, choose the settings, train, compare and save, and print what was done.

    `columns` are passed to `guess_columns`, `planning` to `plan_training`.
    """
    try:
        start: Checkpoint | Literal["encoder"] = "encoder" if init is None else load_checkpoint(init)
        table = Table(file, sheet=columns["sheet"])
        guess = guess_columns(table.sample, file=table.name, **columns)
        folder = _folder(out, checkpoint_name(file.name), overwrite=overwrite)
        rows = labelled_rows(table, guess)
        n_classes = len(rows.labelled.classes)
        read = f"texts from '{sanitize(guess.text_column, limit=60)}', labels from {quote(guess.label_column)}"
        notes = [
            *guess.sentences,
            f"{file.name}: {table.n_rows:,} rows, {read} ({n_classes:,} class{'es' * (n_classes != 1)})",
            *rows.notes,
            *notes_before_training(rows.labelled, merged=columns["merge"]),
            *_conflicts(rows, table),
        ]
        test_rows = None
        if test is not None:
            test_table, test_guess = read_labelled(test, rows.config)
            sentences = test_guess.sentences if test_guess.is_guessed else test_guess.hints
            test_rows = test_table.labelled
            notes += [f"{test.name}: {sentence}" for sentence in (*test_table.notes, *sentences)]
        plan = plan_training(
            rows.labelled,
            test=test_rows,
            init=start,
            name=folder.name,
            source=file.name,
            data=rows.config.model_copy(update={"test_file": None if test is None else test.name}),
            **planning,
        )
    except KeyboardInterrupt:
        note("stopped by Ctrl-C while reading; nothing was written")
        sys.exit(130)
    notes += [*plan.splits.notes, *plan.sentences]
    to_merge = [one for one in notes if isinstance(one, Note) and "merge_labels" in one.options]
    note(*(one for one in notes if verbose or one not in to_merge), brief=not verbose)
    words = [Path(word).name if word == str(file) else word for word in sys.argv[1:]]  # without a local path
    with TrainingDisplay(shown=verbose or sys.stderr.isatty()) as display:
        callbacks = display.callbacks if verbose else {"on_step": display.callbacks["on_step"]}
        result = run_plan(plan, out=folder, command=command(words), refit=refit, **callbacks)
    _print_result(result, folder, to_merge=to_merge, verbose=verbose)


def _suggest_file(path: Path) -> None:
    """Raise DataError if this is a folder, or the name of a table without its suffix."""
    if path.is_dir():
        raise DataError(f"{path}: a folder; give a file in it")
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    tables = sorted(file for file in beside if file.stem == path.name and has_table_suffix(file.name))
    if tables:
        raise DataError(f"{path}: no preset of this name; to train on a file, give its whole name: {tables[0]}")


def _conflicts(rows: TableRows, table: Table) -> Iterable[str]:
    if conflicts := same_text_other_label(rows.labelled):
        numbers = [f"{rows.numbers[row]:,}" for row in conflicts[0]]
        said = f"Texts with different labels: {len(conflicts):,}"
        first = f"the first is in {table.unit}s {', '.join(numbers[:10])}{', …' * (len(numbers) > 10)}"
        yield Note(f"{said}; {first}.", brief=f"{said}.")


def _print_result(result: TrainingResult, folder: Path, *, to_merge: Sequence[Note], verbose: bool) -> None:
    """Print what to do, the figures, and where the checkpoint is; of labels `to_merge`, first to train again."""
    comparison = result.comparison
    scores = (comparison.majority, comparison.linear, comparison.transformer)
    table = [
        (
            name.removeprefix("this ") + " (words only)" * (name == "linear model" and result.linear_is_limited),
            f"{100 * one.accuracy.value:.1f} ({100 * one.accuracy.low:.1f}–{100 * one.accuracy.high:.1f})",
            f"{100 * one.macro_f1.value:.1f}",
        )
        for (name, *_), one in zip(comparison.table, scores, strict=False)
    ]
    verdict = comparison.verdict + f" {comparison.settings}" * verbose
    if to_merge and not verbose:
        verdict = comparison.advice
        note(" ".join([*(one.brief for one in to_merge), "Train again with --merge-labels."]))
    if comparison.is_hardly_trained and result.delay >= SLOW:
        verdict += f" This machine was busy: the linear model took {result.delay:.1f} times as long as estimated."
    console().print(Text(sanitize(verdict, limit=2000)), soft_wrap=True)
    print_rows((f"{comparison.n:,} test rows, %", "accuracy (95 %)", "macro-F1"), table)
    minutes, seconds = divmod(round(result.seconds), 60)
    metrics = result.checkpoint.metrics
    lines = [
        f"saved {sanitize(str(folder), limit=200)} in {minutes}:{seconds:02} min:",
        f"  python -m txcls predict {shlex.quote(str(folder))} 'your text'",
    ]
    if refit := metrics.get("refit"):
        lines.insert(0, f"Trained again on all {refit['rows']:,} rows; the figures are from before.")
    if result.never_found and not to_merge:
        name = max(result.never_found, key=result.never_found.__getitem__)
        n, more = result.never_found[name], len(result.never_found) - 1
        others = f" and {more:,} more" * (more > 0)
        model = "linear model" if comparison.to_use == "linear" else "Transformer"
        lines.insert(0, f"The {model} finds no {quote(name)} ({n:,} rows){others}.")
    if verbose:
        lines = [f"{metrics['training']['done']}.", *lines, *how_to_open_in_app(folder)]
    for line in lines:
        console().print(Text(line), soft_wrap=True)
