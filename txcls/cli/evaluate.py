"""`txcls evaluate` and `txcls calibrate`."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from rich.text import Text

from txcls.checkpoint.card import (
    GROUPS,
    METHODS,
    WORD_ORDER_NOTE,
    WORD_ORDER_TESTS,
    head_rows,
    most_confused,
    reliability_rows,
)
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.checkpoint.load import load_checkpoint
from txcls.checkpoint.schema import MEASURED_SPLITS
from txcls.cli.options import (
    CheckpointArgument,
    DataOption,
    DeviceOption,
    JsonOption,
    LabelColumnOption,
    TextColumnOption,
    UsualSheetOption,
    joined_columns,
)
from txcls.cli.output import console, note, print_json, print_rows, rows_progress
from txcls.cli.train_file import command_for_linear_of, print_comparison
from txcls.data.datasets import open_dataset
from txcls.data.generated.agreement import minimal_pairs
from txcls.data.tables.table import has_table_suffix
from txcls.errors import DataError
from txcls.evaluation import evaluate as measuring
from txcls.evaluation import fit_calibration
from txcls.evaluation.compare_with_baseline import compare_on_test_rows
from txcls.evaluation.evaluate import Evaluation
from txcls.evaluation.evaluate_file import FileRows, learned_words, require_fitted_rows, rows_of_file, which_file
from txcls.evaluation.measure_agreement import measure_agreement
from txcls.evaluation.report import Report, classes_by_f1, classes_with_rows, group_accuracies, stored_report
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import measure_explanations
from txcls.inspection.circuit import measure_circuit
from txcls.inspection.heads import all_heads_sentence, measure_heads, random_texts
from txcls.inspection.patching import mean_route
from txcls.wording import percentage, shown

MAX_CLASSES_SHOWN = 20
"""With more classes, only the worst ones are printed."""
WORST_CLASSES = 10


def evaluate(
    checkpoint: CheckpointArgument,
    data: DataOption = None,
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: UsualSheetOption = None,
    split: Annotated[
        str, typer.Option("--split", metavar="SPLIT", help="test, validation, or new if the data set has this split.")
    ] = "test",
    write: Annotated[
        bool, typer.Option("--write", help="Also save the results in the checkpoint's metrics and card.")
    ] = False,
    heads: Annotated[
        bool,
        typer.Option("--heads", help="Instead, measure what each head is worth, and which simple rule can replace it."),
    ] = False,
    explanations: Annotated[
        int | None,
        typer.Option(
            "--explanations", metavar="N", min=1, help="Instead, compare attribution methods on N test texts."
        ),
    ] = None,
    circuit: Annotated[
        bool,
        typer.Option("--circuit", help="Instead, find a few attention rows that suffice to predict (who_won only)."),
    ] = False,
    agreement: Annotated[
        bool, typer.Option("--agreement", help="Instead, measure by attractors and constructions (agreement only).")
    ] = False,
    linear: Annotated[
        bool,
        typer.Option(
            "--linear",
            help="Instead, compare with the linear baseline on the test rows; it is fitted to all other rows.",
        ),
    ] = False,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a checkpoint on the test (or other) rows of its data set, or on all rows of your own file.

    Of the file that it was trained on, only the rows held out from training are used.
    """
    if agreement:
        _evaluate_agreement(checkpoint, data=data, write=write, as_json=as_json)
        return
    named = {"text_column": joined_columns(text_column), "label_column": label_column, "sheet": sheet}
    if heads or circuit or linear or explanations is not None:
        if split != "test":
            raise DataError(
                f"got --split {split}; --heads, --circuit, --linear and --explanations are only for test rows"
            )
        if linear:
            _evaluate_linear(checkpoint, named, data=data, write=write, device=device, as_json=as_json)
        if circuit:
            _evaluate_circuit(checkpoint, write=write, as_json=as_json)
        if heads or explanations is not None:
            _evaluate_parts(checkpoint, heads=heads, explanations=explanations, data=data, write=write, as_json=as_json)
        return
    loaded = load_checkpoint(checkpoint)
    if data is None and loaded.config.data.dataset == "table":
        raise DataError(which_file(loaded))
    file_rows = _read_file_rows(loaded, named, split=split, data=data)
    if file_rows is not None and write and loaded.config.data.dataset == "table" and "comparison" in loaded.metrics:
        raise DataError("--write: would replace the metrics of the rows held out from training; leave it out")
    evaluation = _measure(loaded, file_rows, split=split, data=data, device=device)
    if write:
        save_checkpoint(measuring.with_evaluation(loaded, split=split, evaluation=evaluation))
    scope = {} if evaluation.scope is None else {"scope": dict(evaluation.scope)}
    metrics = {"checkpoint": loaded.name, "split": split, **evaluation.to_dict(), **scope}
    if file_rows is not None and data is not None:
        metrics |= {"split": data.name, **file_rows.metrics(metrics["accuracy"])}
    if as_json:
        print_json(metrics)
    else:
        _print_evaluation(replace(stored_report(loaded), metrics=metrics))


def _read_file_rows(
    loaded: Checkpoint, named: Mapping[str, str | None], *, split: str, data: Path | None
) -> FileRows | None:
    """The rows of the user's own file, read from the named columns and sheet; None for data in the published format."""
    if data is None or split != "test" or not (data.is_file() and has_table_suffix(data.name)):
        return None
    note(f"reading {shown(data.name)}")
    published_error = None
    if loaded.config.data.dataset != "table" and not any(named.values()):
        try:
            open_dataset(loaded.config.data, path=data).load("test")
        except DataError as error:  # not in the published format, so possibly the user's own table
            published_error = error
        else:
            return None
    try:
        rows = rows_of_file(loaded, data, **named)
    except DataError as error:
        if published_error is None:
            raise
        dataset = loaded.config.data.dataset
        raise DataError(f"{error}. In the published format of {dataset}: {published_error}") from None
    note(*rows.notes)
    return rows


def _measure(
    loaded: Checkpoint, file_rows: FileRows | None, *, split: str, data: Path | None, device: str | None
) -> Evaluation:
    """The metrics on the rows of a file or, if there is none, of a split."""
    with rows_progress() as bar:
        task = bar.add_task("reading", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, description="measuring", completed=done, total=total)

        if file_rows is not None:
            return measuring.evaluate_rows(loaded, file_rows.labelled, device=device, on_rows=show)
        return measuring.evaluate(loaded, split=split, data_path=data, device=device, on_rows=show)


def calibrate(checkpoint: CheckpointArgument, data: DataOption = None, device: DeviceOption = None) -> None:
    """Refit a checkpoint's calibration on its data set's validation rows; the ranking of classes does not change."""
    loaded = load_checkpoint(checkpoint)
    calibrated = fit_calibration.calibrate(loaded, data_path=data, device=device)
    save_checkpoint(calibrated)
    metrics, calibration = calibrated.metrics["validation"], calibrated.calibration
    note(
        f"saved {calibrated.path}: temperature {calibration.temperature:.4f}, power {calibration.power:.4f}, "
        f"calibration error {metrics['ece']:.4f} and log loss {metrics['log_loss']:.4f} on {metrics['n']:,} validation "
        f"rows; measure it on test rows with `txcls evaluate {shlex.quote(checkpoint)} --write`"
    )


def _print_evaluation(report: Report) -> None:
    metrics = report.metrics
    split, kind = metrics["split"], "held-out rows" if metrics.get("held_out") else "rows"
    rows_description = f"{metrics['n']:,} " + (f"{split} rows" if split in MEASURED_SPLITS else f"{kind} of {split}")
    rows_description += learned_words(metrics.get("learned", 0.0))
    _print_summary(f"{metrics['checkpoint']}: {rows_description}", metrics)
    per_class = metrics["per_class"]
    classes = [row["label"] for row in per_class]
    title = "by class"
    if len(per_class) > MAX_CLASSES_SHOWN:
        with_rows = [row for row in classes_by_f1(metrics) if row["support"]]
        per_class = with_rows[:WORST_CLASSES]
        title = f"the {len(per_class)} classes with the lowest F1, of {len(with_rows)} (--json has all)"
    rows: list[tuple[object, ...]] = [
        (row["label"], *(f"{row[key]:.4f}" for key in ("precision", "recall", "f1")), f"{row['support']:,}")
        if row["support"]
        else (row["label"], "–", "–", "–", "no rows")
        for row in per_class
    ]
    print_rows(("class", "precision", "recall", "F1", "rows"), rows, title=title)
    rows = [
        (true, predicted, f"{n:,}", percentage(share))
        for true, predicted, n, share in most_confused(classes, metrics["confusion"], n=10)
    ]
    head: tuple[str, ...] = ("true class", "predicted class", "rows", "share of the true class")
    print_rows(head, rows, title="most frequent confusions")
    head = ("confidence", "rows", "mean confidence", "accuracy")
    print_rows(head, reliability_rows(metrics["reliability"]), title="reliability")
    for key, (name, _) in GROUPS.items():
        rows = [(group, f"{n:,}", percentage(accuracy, 2)) for group, accuracy, n in group_accuracies(report, key)]
        print_rows((name, "rows", "accuracy"), rows)
    if order := metrics.get("order"):
        console().print(f"without word order (position vectors say where each token is). {WORD_ORDER_NOTE}")
        for key, accuracy in order.items():
            console().print(f"{WORD_ORDER_TESTS[key]}: accuracy {percentage(accuracy, 2)}")


def _print_summary(title: str, metrics: Mapping[str, Any]) -> None:
    """Print the main metrics, which come before the tables."""
    out = console()
    out.print(Text(shown(title), style="bold"))
    out.print(
        f"accuracy {percentage(metrics['accuracy'], 2)}   macro-F1 {percentage(metrics['macro_f1'], 2)}"
        f"{f' (mean of {which})' if (which := classes_with_rows(metrics)) else ''}   "
        f"calibration error (15 bins) {metrics['ece']:.4f}   log loss {metrics['log_loss']:.4f}"
    )
    if scope := metrics.get("scope"):
        out.print(
            f"out of scope: AUROC {scope['auroc']:.4f}, accuracy on all {scope['n_in'] + scope['n_out']:,} queries "
            f"{percentage(scope['accuracy'], 2)} ({percentage(scope['recall_out'], 2)} of the out-of-scope queries "
            f"recognised; {scope['accepted_out']:,} of {scope['n_out']:,} accepted, {scope['confident_out']:,} with a "
            "confidence above 90 %)"
        )
    if "accuracy_with_unknown" in metrics:
        out.print(f"accuracy {percentage(metrics['accuracy_with_unknown'], 2)} with unknown classes as errors")


def _finish(checkpoint: Checkpoint, *, write: bool, as_json: bool, **measured: Any) -> bool:
    """Save measurements and print them as JSON, if requested; return whether to print them as text instead."""
    if write:
        save_checkpoint(checkpoint.with_metrics(**measured))
    if as_json:
        print_json({"checkpoint": checkpoint.name, **measured})
    return not as_json


def _evaluate_linear(
    checkpoint: str,
    named: Mapping[str, str | None],
    *,
    data: Path | None,
    write: bool,
    device: str | None,
    as_json: bool,
) -> None:
    """`--linear`: compare on the test rows; of the user's own file, the comparison made after training is shown."""
    loaded = load_checkpoint(checkpoint)
    is_own = loaded.config.data.dataset == "table"
    if is_own and data is None:
        raise DataError(which_file(loaded))
    if is_own and (rows := _read_file_rows(loaded, named, split="test", data=data)) is not None:
        require_fitted_rows(loaded, rows, data)
        comparison = Comparison.from_dict(loaded.metrics["comparison"])
    else:
        comparison = compare_on_test_rows(loaded, data_path=data, device=device, on_stage=note)
    if _finish(loaded, write=write, as_json=as_json, comparison=comparison.to_dict()):
        tested = classes_with_rows(loaded.metrics.get("test", {}))
        print_comparison(comparison, tested=tested, linear_command=command_for_linear_of(loaded, data, named))


def _evaluate_agreement(checkpoint: str, *, data: Path | None, write: bool, as_json: bool) -> None:
    """`--agreement`: accuracy by number of attractors, source and construction, and with parts of the text removed."""
    classifier = Predictor.load(checkpoint)
    result = measure_agreement(classifier, data_path=data, on_stage=note)
    texts = [pair.text for pair in minimal_pairs()]  # of each item: singular, plural subject, each with both attractors
    pairs = [(texts[n], texts[n + 2]) for n in range(len(texts)) if n % 4 < 2]
    route = mean_route(classifier, [*pairs, *((plural, singular) for singular, plural in pairs)])
    measured = {"agreement": result.to_dict(), **({} if route is None else {"route": route})}
    if not _finish(classifier.checkpoint, write=write, as_json=as_json, **measured):
        return
    for title, groups in vars(result).items():
        kinds = list(groups[0].accuracy)
        rows = [
            (group.name, f"{group.n:,}", *(percentage(group.accuracy[kind], 1) for kind in kinds)) for group in groups
        ]
        print_rows((title, "rows", *kinds), rows)
    if route is None:  # it gives all pairs the same answer
        return
    layers = ("before layer 1", *(f"after layer {n}" for n in range(1, len(route["states"]["changed"]))))
    title = f"share of the difference that moves with the states of a group of tokens, {route['n']} pairs"
    rows = [(group, *(f"{share:.2f}" for share in shares)) for group, shares in route["states"].items()]
    print_rows(("copied", *layers), rows, title=title)
    console().print(
        f"with all attention patterns: {route['patterns'][0]:.2f}; with all values: {route['values'][0]:.2f}"
    )


def _evaluate_circuit(checkpoint: str, *, write: bool, as_json: bool) -> None:
    """`--circuit`: a few attention rows, and the accuracy if all others are uniform."""
    classifier = Predictor.load(checkpoint)
    circuit = measure_circuit(classifier, on_stage=note)
    if not _finish(classifier.checkpoint, write=write, as_json=as_json, circuit=circuit.to_dict()):
        return

    def row(name: str, accuracy: Mapping[str, float]) -> list[str]:
        return [name, *(cell for split in circuit.n for cell in (percentage(accuracy[split], 1), ""))]

    rows = [row("a guess among the teams", circuit.guess), row("none", circuit.none)]
    for step in circuit.kept:
        cells = ((step.accuracy[split], step.control[split]) for split in circuit.n)
        rows.append([f"+ {step.row}", *(percentage(cell, 1) for pair in cells for cell in pair)])
    rows += [row("all but these", circuit.without), row("all", circuit.whole)]
    head = ["rows kept", *(name for split in circuit.n for name in (split, f"control, {split}"))]
    print_rows(head, rows, title=f"{classifier.name}: accuracy with all other attention rows uniform")
    for pointed in circuit.pointed:
        heads = " and ".join(str(head + 1) for head in pointed.heads)
        share = percentage(pointed.share, 1)
        note(f"class row of head {heads} moved to a team: {share} of {pointed.n:,} predictions follow")


def _evaluate_parts(
    checkpoint: str, *, heads: bool, explanations: int | None, data: Path | None, write: bool, as_json: bool
) -> None:
    classifier = Predictor.load(checkpoint)
    loaded = classifier.checkpoint
    if heads:
        loaded = _evaluate_heads(classifier, loaded, data=data, as_json=as_json)
    if explanations is not None:
        loaded = _evaluate_explanations(classifier, loaded, n=explanations, data=data, as_json=as_json)
    if write:
        save_checkpoint(loaded)


def _evaluate_heads(classifier: Predictor, loaded: Checkpoint, *, data: Path | None, as_json: bool) -> Checkpoint:
    """`--heads`: print what each head does and is worth, and return the checkpoint with this."""
    with rows_progress() as bar:
        task = bar.add_task("reading", total=None)
        means, measured = measure_heads(
            classifier,
            data_path=data,
            on_stage=lambda stage: bar.update(task, description=stage),
            on_text=lambda done, total: bar.update(task, completed=done, total=total),
        )
    stored = measured.to_dict()
    loaded = loaded.with_metrics(heads=stored, means=means.to_dict())
    # What earlier versions measured of heads.
    loaded = replace(loaded, metrics={name: value for name, value in loaded.metrics.items() if name != "atlas"})
    if as_json:
        print_json({"checkpoint": classifier.name, "heads": stored})
        return loaded
    title = f"{classifier.name}: accuracy {percentage(measured.accuracy, 2)} on {measured.n:,} test rows"
    head = ("part", "averaged", "another text's", "uniform", "distance", "word", "both", "rule")
    print_rows(head, list(head_rows(stored, brief=True)), title=title)
    console().print(all_heads_sentence(measured))
    return loaded


def _evaluate_explanations(
    classifier: Predictor, loaded: Checkpoint, *, n: int, data: Path | None, as_json: bool
) -> Checkpoint:
    """`--explanations`: print how well each attribution method ranks words, and return the checkpoint with this."""
    rows = open_dataset(classifier.checkpoint.config.data, path=data).load("test")
    with Progress(console=console(error=True)) as bar:
        task = bar.add_task("scoring words", total=n)
        averages = measure_explanations(
            classifier,
            random_texts(rows.texts, n=n),
            on_text=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        print_json({"checkpoint": classifier.name, "explanations": averages.to_dict()})
    else:
        areas = [
            (METHODS[name], f"{area:.4f}", f"{averages.areas_by_magnitude[name]:.4f}")
            for name, area in averages.areas.items()
        ]
        areas.append(("random order", *2 * (f"{averages.random_area:.4f}",)))
        title = f"{classifier.name}: {averages.n:,} test texts"
        print_rows(("words removed in order of", "area, by score", "by magnitude"), areas, title=title)
    return loaded.with_metrics(explanations=averages.to_dict())
