"""`txcls evaluate` and `txcls calibrate`."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from txcls.checkpoint.card import GROUPS, ORDER, group_name, most_confused
from txcls.checkpoint.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from txcls.checkpoint.schema import MEASURED_SPLITS
from txcls.cli.options import CheckpointArgument, DataOption, DeviceOption, JsonOption
from txcls.cli.output import console, note, print_json, print_table
from txcls.cli.train_file import comparison_table
from txcls.data.datasets import open_dataset
from txcls.data.tables.table import is_table
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation import evaluate as measuring
from txcls.evaluation.baseline import compare_on_test_rows
from txcls.evaluation.evaluate import Evaluation, with_comparison
from txcls.evaluation.on_file import rows_of_file
from txcls.inspection.ablation import measure_heads, with_heads
from txcls.inspection.attribution import METHODS, measure_explanations
from txcls.inspection.circuit import measure_circuit, with_circuit
from txcls.inspection.random_texts import random_texts
from txcls.inspection.stories import HeadAtlas, measure_atlas, with_atlas
from txcls.predictor import Predictor
from txcls.wording import percentage, shown

MAX_CLASSES_SHOWN = 20
"""Up to this many classes, all of them are printed; of more, the worst."""
WORST_CLASSES = 10


def evaluate(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    split: Annotated[
        str, typer.Option("--split", metavar="SPLIT", help="test, validation, or new where there is such a split.")
    ] = "test",
    write: Annotated[
        bool, typer.Option("--write", help="Also record the figures in the checkpoint's metrics and card.")
    ] = False,
    heads: Annotated[
        bool, typer.Option("--heads", help="Instead, measure what each head is worth and attends to.")
    ] = False,
    explanations: Annotated[
        int | None,
        typer.Option("--explanations", metavar="N", min=1, help="Instead, compare attributions on N test texts."),
    ] = None,
    circuit: Annotated[
        bool, typer.Option("--circuit", help="Instead, search for the attention rows that decide (who_won).")
    ] = False,
    linear: Annotated[
        bool, typer.Option("--linear", help="Instead, compare with the linear baseline, fitted to the other rows.")
    ] = False,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a checkpoint on the test (or other) rows of its data set, or on all rows of a file of your own."""
    if heads or circuit or linear or explanations is not None:
        if split != "test":
            raise DataError(
                f"got --split {split}; --heads, --circuit, --linear and --explanations are measured on test rows"
            )
        if linear:
            _evaluate_linear(checkpoint, data=data, write=write, device=device, as_json=as_json)
        if circuit:
            _evaluate_circuit(checkpoint, write=write, as_json=as_json)
        if heads or explanations is not None:
            _evaluate_parts(checkpoint, heads=heads, explanations=explanations, data=data, write=write, as_json=as_json)
        return
    loaded = load_checkpoint(checkpoint)
    own = _own_rows(loaded, split=split, data=data)
    if own is not None and write and loaded.config.data.dataset == "table" and "comparison" in loaded.metrics:
        raise DataError("--write: it would replace the figures of the rows held out from training; leave it out")
    evaluation = _evaluated(loaded, own, split=split, data=data, device=device)
    if write:
        save_checkpoint(measuring.with_evaluation(loaded, split=split, evaluation=evaluation))
    scope = {} if evaluation.scope is None else {"scope": dict(evaluation.scope)}
    rows = split if own is None or data is None else data.name
    figures = {"checkpoint": loaded.name, "split": rows, **evaluation.to_dict(), **scope}
    if as_json:
        print_json(figures)
    else:
        _print_evaluation(figures)


def _own_rows(loaded: Checkpoint, *, split: str, data: Path | None) -> LabelledTexts | None:
    """The rows of a file of one's own; None where `data` is a folder or in the published format."""
    if data is None or split != "test" or not (data.is_file() and is_table(data.name)):
        return None
    if loaded.config.data.dataset != "table":
        try:
            open_dataset(loaded.config.data, path=data).load("test")
        except DataError as published:  # not in the published format: a table of one's own, if it is one
            try:
                found = rows_of_file(loaded, data)
            except DataError as own:
                raise DataError(f"{own}. Read as {loaded.config.data.dataset} is published: {published}") from None
        else:
            return None
    else:
        found = rows_of_file(loaded, data)
    for sentence in found.notes:
        note(sentence)
    if data.name == loaded.metrics.get("data", {}).get("title"):
        note(f"{data.name} is what {loaded.name} was trained on: it has learned from most of these rows")
    return found.rows


def _evaluated(
    loaded: Checkpoint, own: LabelledTexts | None, *, split: str, data: Path | None, device: str | None
) -> Evaluation:
    """The figures on these rows, or else on those of a split, with a bar on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"), TimeRemainingColumn())
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task("reading", total=None, rows="")

        def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description="measuring", rows=f"{done:,} of {total:,} rows")

        if own is not None:
            return measuring.evaluate_rows(loaded, own, device=device, on_rows=show)
        return measuring.evaluate(loaded, split=split, data_path=data, device=device, on_rows=show)


def calibrate(checkpoint: CheckpointArgument, data: DataOption = None, device: DeviceOption = None) -> None:
    """Fit a checkpoint's calibration anew on its data set's validation rows; the ranking of classes is unchanged."""
    loaded = load_checkpoint(checkpoint)
    fitted = measuring.calibrate(loaded, data_path=data, device=device)
    save_checkpoint(fitted)
    figures = fitted.metrics["validation"]
    note(
        f"saved {fitted.path}: temperature {fitted.calibration.temperature:.4f}, power {fitted.calibration.power:.4f}, "
        f"calibration error {figures['ece']:.4f} and log loss {figures['log_loss']:.4f} on {figures['n']:,} validation "
        f"rows; measure it on test rows with `txcls evaluate {shlex.quote(checkpoint)} --write`"
    )


def _print_evaluation(figures: Mapping[str, Any]) -> None:
    out = console()

    def show(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        table = Table(*head, title=title)
        for row in rows:
            table.add_row(*(Text(shown(cell)) for cell in row))
        out.print(table)

    of_split = figures["split"] in MEASURED_SPLITS
    rows_of = f"{figures['split']} rows" if of_split else f"rows of {figures['split']}"
    title = f"{figures['checkpoint']}: {figures['n']:,} {rows_of}"
    _print_summary(title, figures)
    per_class = figures["per_class"]
    heading = "by class"
    if len(per_class) > MAX_CLASSES_SHOWN:
        measured = [one for one in per_class if one["support"]]
        per_class = sorted(measured, key=lambda one: one["f1"])[:WORST_CLASSES]
        heading = f"the {len(per_class)} classes with the lowest F1, of {len(measured)} (--json has all)"
    rows = (
        (one["label"], *(f"{one[key]:.4f}" for key in ("precision", "recall", "f1")), f"{one['support']:,}")
        for one in per_class
    )
    show(heading, ("class", "precision", "recall", "F1", "rows"), rows)
    classes = [one["label"] for one in figures["per_class"]]
    rows = (
        (true, predicted, f"{n:,}", percentage(share))
        for true, predicted, n, share in most_confused(classes, figures["confusion"], n=10)
    )
    show("most frequent confusions", ("true class", "predicted class", "rows", "share of the true class"), rows)
    rows = (
        (
            f"{percentage(one['low'], 0)} to {percentage(one['high'], 0)}",
            f"{one['n']:,}",
            percentage(one["confidence"]),
            percentage(one["accuracy"]),
        )
        for one in figures["reliability"]
        if one["n"]
    )
    show("reliability", ("confidence", "rows", "mean confidence", "accuracy"), rows)
    for key, (name, bound) in GROUPS.items():
        rows = (
            (group_name(group, bound), f"{group['n']:,}", percentage(group["accuracy"], 2)) for group in figures[key]
        )
        show("", (name, "rows", "accuracy"), rows)
    for key, accuracy in figures.get("order", {}).items():
        out.print(f"{ORDER[key]}: accuracy {percentage(accuracy, 2)}")


def _print_summary(title: str, figures: Mapping[str, Any]) -> None:
    """The main figures, before any table."""
    out = console()
    out.print(Text(shown(title), style="bold"))
    out.print(
        f"accuracy {percentage(figures['accuracy'], 2)}   macro-F1 {figures['macro_f1']:.4f}   "
        f"calibration error (15 bins) {figures['ece']:.4f}   log loss {figures['log_loss']:.4f}"
    )
    if scope := figures.get("scope"):
        out.print(
            f"out of scope: AUROC {scope['auroc']:.4f}, accuracy over all {scope['n_in'] + scope['n_out']:,} queries "
            f"{percentage(scope['accuracy'], 2)} ({percentage(scope['recall_out'], 2)} of the out-of-scope queries "
            "recognised)"
        )


def _evaluate_linear(checkpoint: str, *, data: Path | None, write: bool, device: str | None, as_json: bool) -> None:
    """`--linear`: the linear baseline on the same test rows."""
    loaded = load_checkpoint(checkpoint)
    comparison = compare_on_test_rows(loaded, data_path=data, device=device, on_stage=note)
    if write:
        save_checkpoint(with_comparison(loaded, comparison))
    if as_json:
        print_json({"checkpoint": loaded.name, "comparison": comparison.to_dict()})
        return
    out = console()
    out.print(comparison_table(comparison))
    out.print(Text(shown(comparison.verdict, limit=500)))


def _evaluate_circuit(checkpoint: str, *, write: bool, as_json: bool) -> None:
    """`--circuit`: the attention rows that decide, and what they keep of the accuracy."""
    classifier = Predictor.load(checkpoint)
    circuit = measure_circuit(classifier, on_stage=note)
    if write:
        save_checkpoint(with_circuit(classifier.checkpoint, circuit))
    columns = [name for split in circuit.n for name in (split, f"control, {split}")]
    table = Table("rows kept", *columns, title=f"{classifier.name}: accuracy with all other attention rows even")
    table.add_row("none", *(cell for split in circuit.n for cell in (percentage(circuit.none[split], 1), "")))
    for one in circuit.kept:
        cells = ((one.accuracy[split], one.control[split]) for split in circuit.n)
        table.add_row(f"+ {one.row}", *(percentage(cell, 1) for pair in cells for cell in pair))
    table.add_row("all", *(cell for split in circuit.n for cell in (percentage(circuit.whole[split], 1), "")))
    print_table(table, {"checkpoint": classifier.name, "circuit": circuit.to_dict()}, as_json=as_json)
    if not as_json:
        for pointed in circuit.pointed:
            heads = " and ".join(str(head + 1) for head in pointed.heads)
            note(f"class row of head {heads} put on a team: {percentage(pointed.share, 1)} of {pointed.n:,} follow")


def _evaluate_parts(
    checkpoint: str,
    *,
    heads: bool,
    explanations: int | None,
    data: Path | None,
    write: bool,
    as_json: bool,
) -> None:
    """`--heads` and `--explanations`: the averages over test texts that the app shows."""
    classifier = Predictor.load(checkpoint)
    measured = classifier.checkpoint
    if heads:
        measured = _evaluate_heads(classifier, measured, data=data, as_json=as_json)
    if explanations is not None:
        measured = _evaluate_explanations(classifier, measured, n=explanations, data=data, as_json=as_json)
    if write:
        save_checkpoint(measured)


def _evaluate_heads(classifier: Predictor, measured: Checkpoint, *, data: Path | None, as_json: bool) -> Checkpoint:
    means, effects = measure_heads(classifier, data_path=data, on_stage=note)
    atlas = measure_atlas(classifier, effects, data_path=data, on_stage=note)
    measured = with_atlas(with_heads(measured, means, effects), atlas)
    first = effects["zero"]
    table = Table("switched off", "zero", "mean", title=f"{classifier.name}: accuracy on {first.n:,} test rows")
    table.add_row("nothing", *[percentage(first.accuracy, 2)] * 2)
    for layer, row in enumerate(first.heads):
        for head in range(len(row)):
            figures = (percentage(effects[off].heads[layer, head], 2) for off in ("zero", "mean"))
            table.add_row(f"layer {layer + 1}, head {head + 1}", *figures)
        figures = (percentage(effects[off].feed_forward[layer], 2) for off in ("zero", "mean"))
        table.add_row(f"layer {layer + 1}, feed-forward", *figures)
    both = (effects[off].all_heads for off in ("zero", "mean"))
    table.add_row("all heads", *(percentage(accuracy, 2) for accuracy in both if accuracy is not None))
    kept = {name: measured.metrics[name] for name in ("heads", "atlas")}
    print_table(table, {"checkpoint": classifier.name, **kept}, as_json=as_json)
    if not as_json:
        _print_stories(atlas)
    return measured


def _print_stories(atlas: HeadAtlas) -> None:
    out = console()
    title = f"stories of heads, measured on {atlas.n_stories:,} test texts"
    table = Table("head", "worth", "story", "attention", "brought back", "by the control", "verdict", title=title)
    for one in atlas.heads:
        found = one.story
        low, high = found.interval
        table.add_row(
            f"layer {found.story.layer + 1}, head {found.story.head + 1}",
            f"{100 * one.worth['uniform']:.1f} points",
            str(found.story),
            ", ".join(f"{weight:.2f}" for weight in found.attention),
            "" if isnan(found.share) else f"{found.share:.2f} ({low:.2f} to {high:.2f})",
            "" if isnan(found.control_share) else f"{found.control_share:.2f}",
            found.verdict,
        )
    out.print(table)
    if not isnan(atlas.confirmed_share):
        out.print(
            f"confirmed stories carry {percentage(atlas.confirmed_share, 0)} of what the heads' weights are worth"
        )


def _evaluate_explanations(
    classifier: Predictor, measured: Checkpoint, *, n: int, data: Path | None, as_json: bool
) -> Checkpoint:
    rows = open_dataset(classifier.checkpoint.config.data, path=data).load("test")
    with Progress(console=console(error=True)) as bar:
        task = bar.add_task("scoring words", total=n)
        averages = measure_explanations(
            classifier,
            random_texts(rows.texts, n=n),
            on_text=lambda done, total: bar.update(task, completed=done, total=total),
        )
    table = Table("words removed in the order of", "area", title=f"{classifier.name}: {averages.n:,} test texts")
    for name, area in averages.areas.items():
        table.add_row(METHODS[name], f"{area:.4f}")
    table.add_row("random order", f"{averages.random_area:.4f}")
    print_table(table, {"checkpoint": classifier.name, "explanations": averages.to_dict()}, as_json=as_json)
    return replace(measured, metrics={**measured.metrics, "explanations": averages.to_dict()})
