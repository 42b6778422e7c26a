"""The command line: train, pretrain, evaluate, calibrate, predict, inspect, sizes, generate, import, data.

    python -m txcls train sample
    python -m txcls predict sample "When does the train to the coast leave?"

It holds no logic of its own: each command calls the library, prints, and turns its errors into one line and exit code
2. Everything slow to import is imported inside the command that needs it, so that `--help` answers at once.
"""

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from txcls.errors import StoppedError, TxclsError, one_line, shown

if TYPE_CHECKING:
    from txcls.config import Precision, RunConfig
    from txcls.predict import Prediction
    from txcls.training import HistoryRow, Progress

app = typer.Typer(
    name="txcls",
    help="Train, evaluate, use and look inside a Transformer text classifier written from scratch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Data sets: which there are, fetch one, show one.", no_args_is_help=True)
app.add_typer(data_app, name="data")

CheckpointArgument = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint folder, or a name under checkpoints/.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="PATH", help="Folder or file with the data in their published format.")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="D", help="cpu, cuda, …; CUDA where there is one unless given.")
]
PresetArgument = Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name, or a TOML file like it.")]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Checkpoint folder to write [default: checkpoints/PRESET].")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; may be given several times."),
]
TrainSeedOption = Annotated[int | None, typer.Option("--seed", metavar="N", help="Same as --set train.seed=N.")]
InitOption = Annotated[
    str | None, typer.Option("--init", metavar="CHECKPOINT", help="Start from a model made by `pretrain`.")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run of the same settings.")]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the checkpoint, or the stopped training, that is already there.")
]
StepsOption = Annotated[
    int | None, typer.Option("--max-steps", metavar="N", min=1, help="Stop after N optimiser steps, for a trial.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, and nothing else.")]


@app.command()
def train(
    preset: PresetArgument,
    data: DataOption = None,
    out: OutOption = None,
    settings: SettingsOption = None,
    seed: TrainSeedOption = None,
    init: InitOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    max_steps: StepsOption = None,
    device: DeviceOption = None,
) -> None:
    """Train a preset and save the best model, by its validation rows, as a checkpoint folder.

    Several processes or GPUs share the work as `torchrun --nproc-per-node N -m txcls train …`.
    """
    from txcls import training
    from txcls.checkpoint import load_checkpoint

    config, folder = _what_and_where(preset, settings, seed, out, overwrite=overwrite)
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
    _note_once(
        f"saved {folder}: validation accuracy {figures['accuracy']:.2%}, macro-F1 {figures['macro_f1']:.4f}, "
        f"calibration error {figures['ece']:.4f} on {figures['n']:,} rows"
    )


@app.command()
def refit(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Checkpoint folder to write [default: CHECKPOINT's].")
    ] = None,
    init: InitOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    device: DeviceOption = None,
) -> None:
    """Train a checkpoint's settings anew on all its rows, with those that were held out for validation.

    The last step before a model is used: a tenth more rows to learn from, where a tenth was held out. What they chose
    stays, and there are only test rows left to measure it on.
    """
    from txcls import training
    from txcls.checkpoint import load_checkpoint

    loaded = load_checkpoint(checkpoint)
    folder = _free_folder(out or loaded.path, overwrite=overwrite)
    start = None if init is None else load_checkpoint(init)
    with _training_run(device) as shared:
        made = training.refit(
            loaded,
            out=folder,
            data_path=data,
            init=start,
            resume=resume,
            overwrite=overwrite,
            **shared,
        )
    _note_once(
        f"saved {folder}: trained on all {made.metrics['refit']['rows']:,} rows; "
        f"`txcls evaluate {shlex.quote(str(out or checkpoint))} --write` measures it on test rows"
    )


@app.command()
def pretrain(
    preset: PresetArgument,
    data: DataOption = None,
    out: OutOption = None,
    settings: SettingsOption = None,
    seed: TrainSeedOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    max_steps: StepsOption = None,
    device: DeviceOption = None,
) -> None:
    """Train a model on training texts without their labels, for `train --init` and `generate`.

    Several processes or GPUs share the work as `torchrun --nproc-per-node N -m txcls pretrain …`.
    """
    from txcls import training

    config, folder = _what_and_where(preset, settings, seed, out, overwrite=overwrite)
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
    _note_once(f"saved {folder}: validation {name} {figures[name]:.2f}, {figures['accuracy']:.2%} of tokens right")


@app.command()
def generate(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="A causal language model, or a folder with a published GPT-2.")
    ],
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The text to continue.")],
    tokens: Annotated[int, typer.Option("--tokens", metavar="N", min=1, help="How many tokens to add at most.")] = 40,
    temperature: Annotated[float, typer.Option("--temperature", min=0.0, help="0 takes the most probable.")] = 1.0,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", min=1, help="Choose among K tokens only.")
    ] = None,
    top_p: Annotated[float, typer.Option("--top-p", help="Choose among the likeliest that reach this share.")] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same text.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Continue a text with a causal language model, token by token."""
    from txcls.errors import DataError
    from txcls.generation import Sampling, TextModel
    from txcls.generation import generate as continued

    text_model = TextModel.load(checkpoint)
    try:
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
        ids = text_model.encode(prompt)
        steps = list(continued(text_model.model, ids, n=tokens, sampling=sampling))
    except ValueError as error:
        raise DataError(str(error)) from None
    written = text_model.written(ids, [step.id for step in steps])
    if as_json:
        _print_json({"prompt": prompt, "continuation": written, "probabilities": [step.probability for step in steps]})
    else:
        print(prompt + written)


@app.command("import")
def import_weights(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A folder with a published GPT-2, or its name.")],
) -> None:
    """Read a published GPT-2, downloaded by name where its hub can be reached, and say what it is made of."""
    from txcls.gpt2 import fetch_gpt2, load_gpt2

    folder = fetch_gpt2(source)
    model = load_gpt2(folder).model
    config = model.config
    _note(
        f"{source}: {sum(p.numel() for p in model.parameters()):,} parameters, {config.n_layers} layers, "
        f"{config.n_heads} heads, d_model {config.d_model}, at most {config.max_length} tokens; continue a text with "
        f"`txcls generate {shlex.quote(str(folder))} PROMPT`"
    )


def _what_and_where(
    preset: str, settings: list[str] | None, seed: int | None, out: Path | None, *, overwrite: bool
) -> tuple["RunConfig", Path]:
    """The configuration that a command line describes, and the folder that its result goes to."""
    from txcls.checkpoint import checkpoint_root
    from txcls.config import load_preset

    config = load_preset(preset).with_settings([*(settings or ()), *([] if seed is None else [f"train.seed={seed}"])])
    return config, _free_folder(out or checkpoint_root() / config.name, overwrite=overwrite)


def _free_folder(folder: Path, *, overwrite: bool) -> Path:
    """The folder, where nothing is in its place or what is there may go."""
    from txcls.errors import TrainingError

    if folder.exists() and not overwrite:
        raise TrainingError(
            f"{folder} is there already; give --out DIR for another folder, or --overwrite to replace it"
        )
    return folder


@app.command()
def evaluate(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    split: Annotated[str, typer.Option("--split", metavar="SPLIT", help="test or validation.")] = "test",
    write: Annotated[
        bool, typer.Option("--write", help="Also put the figures into the checkpoint's metrics and card.")
    ] = False,
    heads: Annotated[
        bool, typer.Option("--heads", help="Measure instead what each head is worth: test accuracy without it.")
    ] = False,
    explanations: Annotated[
        int | None,
        typer.Option("--explanations", metavar="N", min=1, help="Judge instead five ways to explain, on N test texts."),
    ] = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a checkpoint on the test rows of its data set (or on its validation rows)."""
    from txcls import training
    from txcls.checkpoint import load_checkpoint, save_checkpoint

    if heads or explanations is not None:
        _evaluate_inside(
            checkpoint, heads=heads, explanations=explanations, split=split, data=data, write=write, as_json=as_json
        )
        return
    loaded = load_checkpoint(checkpoint)
    evaluation = training.evaluate(loaded, split=split, data_path=data, device=device)
    if write:
        save_checkpoint(training.with_evaluation(loaded, split=split, evaluation=evaluation))
    scope = {} if evaluation.scope is None else {"scope": dict(evaluation.scope)}
    figures = {"checkpoint": loaded.name, "split": split, **evaluation.to_dict(), **scope}
    if as_json:
        _print_json(figures)
    else:
        _print_evaluation(figures)


def _print_evaluation(figures: Mapping[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from txcls.checkpoint import ORDER, group_name, most_confused

    console = _console()

    def show(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        table = Table(*head, title=title)
        for row in rows:
            table.add_row(*(Text(shown(cell)) for cell in row))
        console.print(table)

    title = f"{figures['checkpoint']}: {figures['n']:,} {figures['split']} rows"
    rows = (
        (one["label"], *(f"{one[key]:.4f}" for key in ("precision", "recall", "f1")), f"{one['support']:,}")
        for one in figures["per_class"]
    )
    show(title, ("class", "precision", "recall", "F1", "rows"), rows)
    classes = [one["label"] for one in figures["per_class"]]
    rows = (
        (true, given, f"{n:,}", f"{share:.1%}")
        for true, given, n, share in most_confused(classes, figures["confusion"], n=10)
    )
    show("most frequent confusions", ("true class", "class given", "rows", "share of the true class"), rows)
    rows = (
        (
            f"{one['low']:.0%} to {one['high']:.0%}",
            f"{one['n']:,}",
            f"{one['confidence']:.1%}",
            f"{one['accuracy']:.1%}",
        )
        for one in figures["reliability"]
        if one["n"]
    )
    show("how sure, and how often right", ("confidence", "rows", "mean confidence", "accuracy"), rows)
    for what, key, form in (("tokens read", "by_length", "{:g}"), ("unknown tokens", "by_unknown", "{:.0%}")):
        rows = ((group_name(one, form), f"{one['n']:,}", f"{one['accuracy']:.2%}") for one in figures[key])
        show("", (what, "rows", "accuracy"), rows)
    for key, accuracy in figures.get("order", {}).items():
        console.print(f"{ORDER[key]}: accuracy {accuracy:.2%}")
    console.print(
        f"accuracy {figures['accuracy']:.2%}   macro-F1 {figures['macro_f1']:.4f}   "
        f"calibration error (15 bins) {figures['ece']:.4f}   log loss {figures['log_loss']:.4f}"
    )
    if scope := figures.get("scope"):
        console.print(
            f"out of scope: AUROC {scope['auroc']:.4f}, accuracy over all {scope['n_in'] + scope['n_out']:,} queries "
            f"{scope['accuracy']:.2%} ({scope['recall_out']:.2%} of those out of scope turned away)"
        )


def _evaluate_inside(
    checkpoint: str,
    *,
    heads: bool,
    explanations: int | None,
    split: str,
    data: Path | None,
    write: bool,
    as_json: bool,
) -> None:
    """What each head is worth, or how well scores of words explain; for the pages that show them."""
    from rich.table import Table

    from txcls.checkpoint import save_checkpoint
    from txcls.errors import DataError
    from txcls.inspection.ablation import measure_heads, with_heads
    from txcls.inspection.attribution import METHODS, measure_explanations, with_explanations
    from txcls.predict import Classifier

    if split != "test":
        raise DataError(f"got --split {split}; --heads and --explanations are measured on test rows")
    classifier = Classifier.load(checkpoint)
    measured = classifier.checkpoint
    if heads:
        means, effects = measure_heads(classifier, data_path=data, on_stage=_note)
        measured = with_heads(measured, means, effects)
        first = effects["zero"]
        table = Table("switched off", "zero", "mean", title=f"{classifier.name}: accuracy on {first.n:,} test rows")
        table.add_row("nothing", *[f"{first.accuracy:.2%}"] * 2)
        for layer, row in enumerate(first.heads):
            for head in range(len(row)):
                figures = (f"{effects[off].heads[layer, head]:.2%}" for off in ("zero", "mean"))
                table.add_row(f"layer {layer + 1}, head {head + 1}", *figures)
            figures = (f"{effects[off].feed_forward[layer]:.2%}" for off in ("zero", "mean"))
            table.add_row(f"layer {layer + 1}, feed-forward", *figures)
        _show(table, {"checkpoint": classifier.name, "heads": measured.metrics["heads"]}, as_json=as_json)
    if explanations is not None:
        from rich.progress import Progress

        with Progress(console=_console(error=True)) as bar:
            task = bar.add_task("scoring words", total=explanations)
            averages = measure_explanations(
                classifier,
                n=explanations,
                data_path=data,
                on_text=lambda done, total: bar.update(task, completed=done, total=total),
            )
        measured = with_explanations(measured, averages)
        table = Table("words taken out in the order of", "area", title=f"{classifier.name}: {averages.n:,} test texts")
        for name, area in averages.areas.items():
            table.add_row(METHODS[name], f"{area:.4f}")
        table.add_row("chance", f"{averages.random_area:.4f}")
        _show(table, {"checkpoint": classifier.name, "explanations": averages.to_dict()}, as_json=as_json)
    if write:
        save_checkpoint(measured)


def _show(table: Any, value: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        _print_json(value)
    else:
        _console().print(table)


@app.command()
def calibrate(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    device: DeviceOption = None,
) -> None:
    """Fit a checkpoint's probabilities anew on the validation rows of its data set; its ranking stays as it is."""
    from txcls import training
    from txcls.checkpoint import load_checkpoint, save_checkpoint

    loaded = load_checkpoint(checkpoint)
    fitted = training.calibrate(loaded, data_path=data, device=device)
    save_checkpoint(fitted)
    figures = fitted.metrics["validation"]
    _note(
        f"saved {fitted.path}: temperature {fitted.calibration.temperature:.4f}, power {fitted.calibration.power:.4f}, "
        f"calibration error {figures['ece']:.4f} and log loss {figures['log_loss']:.4f} on {figures['n']:,} validation "
        f"rows; `txcls evaluate {shlex.quote(checkpoint)} --write` measures it on test rows"
    )


@app.command()
def predict(
    checkpoint: CheckpointArgument,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts; without any, lines of standard input.")
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE", help="Classify the rows of a CSV, TSV, JSON Lines or Parquet file."),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option("--text-column", metavar="C", help="Its column with the text; guessed unless given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Where to write the rows with label and probability."),
    ] = None,
    precision: Annotated[
        Literal["float32", "bfloat16", "auto"],
        typer.Option(
            help="Of --output: bfloat16 saves time on some processors, moves probabilities by less than a hundredth; "
            "auto takes it where this processor gains from it."
        ),
    ] = "float32",
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="Of --output, CSV or TSV: an apostrophe before what a spreadsheet would run."
        ),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a file whose work was stopped.")] = False,
    top_k: Annotated[
        int | None, typer.Option("--top-k", metavar="K", min=1, help="Rank only the K best classes.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Classify texts, or the rows of a file of any size.

    Stopped work on a file goes on with --resume. Several processes share its rows as
    `torchrun --nproc-per-node N -m txcls predict … --input FILE --output FILE`.
    """
    from txcls.errors import DataError
    from txcls.predict import Classifier

    if input_file is not None and texts:
        raise DataError("got both TEXT and --input; give one of them")
    if output is not None and input_file is None:
        raise DataError("got --output without --input FILE; for typed texts redirect standard output instead")
    if output is not None and as_json:
        raise DataError("got both --output and --json; give one of them")
    if resume and output is None:
        raise DataError("got --resume without --input FILE --output FILE; nothing else is kept when it is stopped")
    if spreadsheet_safe and output is None:
        raise DataError("got --spreadsheet-safe without --input FILE --output FILE; it is for tables that are written")
    if precision != "float32" and output is None:
        raise DataError(
            f"got --precision {precision} without --input FILE --output FILE; a few texts gain nothing by it"
        )
    if input_file is not None:
        if output is not None:
            _predict_file(
                checkpoint,
                input_file,
                output,
                text_column=text_column,
                precision=precision,
                spreadsheet_safe=spreadsheet_safe,
                resume=resume,
            )
        elif as_json:
            _print_file(checkpoint, input_file, text_column=text_column, top_k=top_k)
        else:
            raise DataError("--input needs --output FILE (or --json, to print one object per row)")
        return
    if not texts:
        if sys.stdin.isatty():
            raise DataError("no text given; add it in quotes, pipe lines in, or name a file with --input")
        texts = [line.rstrip("\n") for line in sys.stdin]
    classifier = Classifier.load(checkpoint)
    predictions = classifier.predict(texts, top_k=top_k)
    if all(prediction.label is None for prediction in predictions):
        raise DataError("there is no word to classify in what was given; type at least one")
    for prediction in predictions:
        if as_json:
            _print_json(_prediction_object(prediction))
        else:
            _print_prediction(prediction)


def _predict_file(
    checkpoint: str,
    path: Path,
    output: Path,
    *,
    text_column: str | None,
    precision: "Precision",
    spreadsheet_safe: bool,
    resume: bool,
) -> None:
    """Write the rows of a file with label and probability added."""
    from txcls.predict import Classifier
    from txcls.scoring import Scored, score_file
    from txcls.training.distributed import joined

    with joined("cpu") as processes, _rows_display(shown=processes.rank == 0) as bar:
        task = bar.add_task(f"checking {path.name}", total=None)

        def show(state: Scored) -> None:
            bar.update(task, description="classifying", completed=state.done, total=state.rows)

        scored = score_file(
            Classifier.load(checkpoint),
            path,
            output,
            text_column=text_column,
            precision=precision,
            spreadsheet_safe=spreadsheet_safe,
            resume=resume,
            on_progress=show,
        )
    _note_once(f"wrote {scored.rows:,} rows to {output}")


def _print_file(checkpoint: str, path: Path, *, text_column: str | None, top_k: int | None) -> None:
    """Print one object for each row of a file."""
    from txcls.data.stream import TableStream
    from txcls.predict import Classifier

    classifier, table = Classifier.load(checkpoint), TableStream(path)
    with _rows_display(shown=True) as bar:
        survey = table.survey(text_column=text_column)
        task = bar.add_task("classifying", total=survey.rows)
        for _, rows in table.parts(1024, wanted=lambda number: True):
            for prediction in classifier.predict([row[survey.text_column] for row in rows], top_k=top_k):
                _print_json(_prediction_object(prediction))
            bar.advance(task, len(rows))


def _rows_display(*, shown: bool) -> Any:
    """A bar with rows done, rows per second and time left on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=_console(error=True, quiet=not shown), speed_estimate_period=120)


@app.command()
def inspect(
    checkpoint: CheckpointArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to follow through the model.")],
    as_json: JsonOption = False,
) -> None:
    """Print name and shape of every step from token ids to probabilities, for one text."""
    from txcls.inspection.tracing import trace_text
    from txcls.predict import Classifier

    classifier = Classifier.load(checkpoint)
    traced = trace_text(classifier, text)
    if as_json:
        for stage in traced.stages:
            _print_json({"name": stage.name, "axes": stage.letters, "shape": list(stage.shape), "note": stage.note})
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("step", "axes", "shape", "what it holds", title=f"{classifier.name}: {len(traced.tokens)} tokens")
    for stage in traced.stages:
        table.add_row(stage.name, stage.letters, " × ".join(map(str, stage.shape)), stage.note)
    tokens = " ".join(shown(token.text) for token in traced.tokens)
    _console().print(Text(tokens), soft_wrap=True)
    _console().print(table)
    _print_prediction(traced.prediction)


@app.command()
def sizes(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A preset's name or TOML file, or a checkpoint's folder or name."),
    ],
    settings: SettingsOption = None,
    vocabulary: Annotated[
        int | None,
        typer.Option("--vocabulary", metavar="N", min=5, help="Tokens, for a preset [default: text.max_vocabulary]."),
    ] = None,
    classes: Annotated[
        int | None,
        typer.Option("--classes", metavar="N", min=2, help="Classes, for a preset that classifies [default: 2]."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count the parameters of a preset or checkpoint part by part; of a preset nothing is built, however large."""
    from txcls.checkpoint import find_checkpoint, load_checkpoint
    from txcls.config import load_preset, preset_names
    from txcls.errors import CheckpointError, ConfigError
    from txcls.gpt2 import load_gpt2
    from txcls.inspection.parameters import build_without_memory, part_sizes

    if name in preset_names() or name.endswith(".toml"):
        config = load_preset(name).with_settings(settings or ())
        size = vocabulary or config.text.max_vocabulary
        model = build_without_memory(config, vocab_size=size, n_classes=classes or 2)
        of = f"preset {name} with {size:,} tokens"
        of += f" and {classes or 2} classes" if config.objective == "classify" else ""
    else:
        if settings or vocabulary or classes is not None:
            raise ConfigError(f"{name} is no preset; --set, --vocabulary and --classes are for presets")
        try:
            folder = find_checkpoint(name)
        except CheckpointError as error:
            known = ", ".join(preset_names())
            raise ConfigError(f"no preset is named {name!r} (there are {known}), and {error}") from None
        published = (folder / "merges.txt").is_file()
        model = load_gpt2(folder).model if published else load_checkpoint(folder).model
        of = f"checkpoint {name}"
    parts = part_sizes(model)
    total = sum(part.total for part in parts)
    if as_json:
        for part in parts:
            shapes = [list(shape) for shape in part.shapes]
            _print_json({"part": part.name, "shapes": shapes, "times": part.times, "parameters": part.total})
        _print_json({"part": "all", "parameters": total})
        return
    from rich.table import Table

    table = Table("part", "shape", title=of)
    for column in ("times", "parameters", "share"):
        table.add_column(column, justify="right")
    for part in parts:
        shape = " + ".join(" × ".join(f"{n:,}" for n in one) for one in part.shapes)
        table.add_row(part.name, shape, str(part.times), f"{part.total:,}", f"{part.total / total:.1%}")
    table.add_section()
    table.add_row("all", "", "", f"{total:,}", "")
    _console().print(table)


@data_app.command("list")
def data_list(as_json: JsonOption = False) -> None:
    """Show the data sets that txcls knows, and whether they are on this machine."""
    from txcls.data.datasets import dataset_info, dataset_names, is_available

    infos = [dataset_info(name) for name in dataset_names()]
    if as_json:
        for info in infos:
            _print_json(
                {"name": info.name, "title": info.title, "homepage": info.homepage, "here": is_available(info.name)}
            )
        return
    from rich.table import Table

    table = Table("name", "what it is", "on this machine", "terms")
    for info in infos:
        table.add_row(info.name, info.title, "yes" if is_available(info.name) else "no", info.terms)
    _console().print(table)


@data_app.command("fetch")
def data_fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `data list` shows.")],
) -> None:
    """Download a published data set from its publisher into the cache, checked against its checksum."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from txcls.data.download import fetch

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=_console(error=True)) as bar:
        tasks: dict[str, Any] = {}

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        folder = fetch(name, progress=show)
    print(folder)


@data_app.command("show")
def data_show(
    name_or_path: Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A data set's name, or your own file.")],
    text_column: Annotated[
        str | None, typer.Option("--text-column", metavar="C", help="Your file's text column.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("--label-column", metavar="C", help="Your file's label column.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show rows, classes and a few texts of a data set, or of the first rows of your own file."""
    from txcls.config import DataConfig
    from txcls.data.datasets import dataset_names, open_dataset

    known = name_or_path in dataset_names()
    config = DataConfig(dataset=name_or_path if known else "table", text_column=text_column, label_column=label_column)
    dataset = open_dataset(config, path=None if known else Path(name_or_path), sampled=True)
    splits = {split: dataset.load(split) for split in dataset.splits if not split.startswith("oos")}
    if as_json:
        for split, rows in splits.items():
            counts = {label: rows.labels.count(index) for index, label in enumerate(rows.classes)}
            _print_json(
                {
                    "name": dataset.info.name,
                    "split": split,
                    "rows": len(rows),
                    "classes": counts,
                    **({"note": dataset.description} if dataset.description else {}),
                }
            )
        return
    from rich.table import Table
    from rich.text import Text

    table = Table("class", *(f"{split} rows" for split in splits), "for example", title=Text(shown(dataset.info.title)))
    first = next(iter(splits.values()))
    for index, label in enumerate(first.classes):
        example = next((text for text, own in zip(first.texts, first.labels, strict=True) if own == index), "")
        counted = (f"{sum(own == index for own in rows.labels):,}" for rows in splits.values())
        table.add_row(Text(shown(label)), *counted, Text(shown(example, limit=120)))
    _console().print(table)
    for line in (dataset.description, dataset.info.homepage, dataset.info.terms):
        if line:
            _console().print(Text(shown(line, limit=500)))


class _TrainingDisplay:
    """Progress bar, stages and a line per validation on standard error; nothing unless `shown`."""

    def __init__(self, *, shown: bool) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[facts]}"))
        self.bar = Progress(*columns, console=_console(error=True, quiet=not shown))
        self.task: Any = None

    def stage(self, message: str) -> None:
        self.bar.console.print(message, highlight=False)

    def step(self, progress: "Progress") -> None:
        if self.task is None:
            self.task = self.bar.add_task("", total=progress.total_steps, facts="")
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        self.bar.update(
            self.task,
            completed=progress.step,
            description=f"epoch {progress.epoch}/{progress.epochs}",
            facts=f"loss {progress.loss:.4f}  accuracy {progress.accuracy:.2%}  "
            f"{progress.tokens_per_second:,.0f} tokens/s  {minutes}:{seconds:02d} left",
        )

    def validation(self, row: "HistoryRow") -> None:
        unseen = (
            ""
            if math.isnan(row.validation_loss)
            else f"validation loss {row.validation_loss:.4f} accuracy {row.validation_accuracy:.2%}"
            f"{' (best so far)' if row.best else ''}, "
        )
        self.bar.console.print(
            f"epoch {row.epoch} step {row.step}: train loss {row.train_loss:.4f} accuracy {row.train_accuracy:.2%}, "
            f"{unseen}{row.tokens_per_second:,.0f} tokens/s, {row.seconds:.0f} s",
            highlight=False,
        )


@contextmanager
def _training_run(device: str | None) -> Iterator[dict[str, Any]]:
    """What `train`, `refit` and `pretrain` are called with alike; the first of several processes shows how it goes."""
    from txcls import training

    with training.joined(device) as processes:
        display = _TrainingDisplay(shown=processes.rank == 0)
        with display.bar:
            yield {
                "command": _command_line(),
                "device": device,
                "on_stage": display.stage,
                "on_step": display.step,
                "on_validation": display.validation,
            }


def _prediction_object(prediction: "Prediction") -> dict[str, Any]:
    return {
        "text": prediction.text,
        "label": prediction.label,
        "scores": [{"label": score.label, "probability": score.probability} for score in prediction.scores],
        "tokens": [token.text for token in prediction.tokens],
        "unknown": [token.text for token in prediction.unknown],
        "truncated": prediction.truncated_at is not None,
        **({} if prediction.out_of_scope is None else {"out_of_scope": prediction.out_of_scope}),
    }


def _print_prediction(prediction: "Prediction") -> None:
    from rich.text import Text

    console = _console()
    console.print(Text(shown(prediction.text), style="bold"))
    if prediction.label is None:
        console.print("  no word to classify")
        return
    labels = [shown(score.label) for score in prediction.scores]
    width = max(map(len, labels))
    for label, score in zip(labels, prediction.scores, strict=True):
        bar = "█" * round(score.probability * 40)
        console.print(Text(f"  {label:<{width}}  {score.probability:>6.1%}  {bar}"))
    if prediction.other > 0:
        console.print(Text(f"  {'other':<{width}}  {prediction.other:>6.1%}"))
    if prediction.out_of_scope:
        console.print("  probably none of these: it is unlike the texts of every class")
    if prediction.unknown:
        console.print(
            Text("  unknown words: " + ", ".join(dict.fromkeys(shown(token.text) for token in prediction.unknown)))
        )
    if prediction.truncated_at is not None:
        console.print(f"  read up to character {prediction.truncated_at:,}; the rest was cut off")


_UNSEEN_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _print_json(value: dict[str, Any]) -> None:
    # What a terminal would obey rather than show is written as JSON's own escapes: programs read the same value.
    print(_UNSEEN_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False)))


def _console(*, error: bool = False, quiet: bool = False) -> Any:
    from rich.console import Console

    return Console(stderr=error, quiet=quiet)


def _note(message: str) -> None:
    """Something for a person, kept off standard output."""
    print(one_line(message), file=sys.stderr)


def _note_once(message: str) -> None:
    """The same, said by the first of several processes alone."""
    if not _process_number():
        _note(message)


def _process_number() -> int:
    """Which of the processes that torchrun started this is, from 0; 0 where it did not."""
    return int(os.environ["RANK"]) if "TORCHELASTIC_RUN_ID" in os.environ else 0


def _command_line() -> str:
    """What was typed, for the model card, without the machine's own paths to Python."""
    from txcls.training.distributed import launcher

    return f"{launcher()} {shlex.join(['txcls', *sys.argv[1:]])}"


def main() -> NoReturn:
    """Run the command line; errors become one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a lone surrogate in a text must not end the program
    command = typer.main.get_command(app)
    try:
        code = command.main(prog_name="txcls", standalone_mode=False)
    except TxclsError as error:
        _fail(str(error), everywhere=isinstance(error, StoppedError))
    except typer._click.exceptions.ClickException as error:
        _fail(error.format_message())
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(error.__cause__ or error.__context__, EOFError):  # the command-line library takes it for Ctrl-C
            _fail("the input ended in the middle; make or fetch the file again")
        _note("stopped")
        sys.exit(130)
    except MemoryError:
        _fail("out of memory; give it less at once, or a machine with more")
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        sys.stdout = None
        sys.exit(0)
    if code == 130:  # Ctrl-C, as the command-line library says it
        _note("stopped")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, *, everywhere: bool = False) -> NoReturn:
    """Say it and exit; of several processes one is enough for what happens `everywhere` at once."""
    number = _process_number()
    if not (number and everywhere):
        _note("error: " + one_line(message) + (f" [process {number}]" if number else ""))
    sys.exit(2)
