"""`txcls measure`: what the parts of a checkpoint do, and what simpler models reach on its data."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.progress import Progress
from rich.text import Text

from txcls.checkpoint.card import METHODS, head_rows
from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.options import CheckpointArgument, DataOption, DeviceOption, JsonOption
from txcls.cli.output import console, note, print_json, print_rows, rows_progress
from txcls.data.datasets import open_dataset
from txcls.data.generated.agreement import minimal_pairs
from txcls.evaluation.compare_with_baseline import compare_on_test_rows
from txcls.evaluation.measure_agreement import measure_agreement
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import measure_explanations
from txcls.inspection.circuit import measure_circuit
from txcls.inspection.heads import all_heads_sentence, measure_heads, random_texts
from txcls.inspection.patching import mean_route
from txcls.wording import percentage

WriteOption = Annotated[
    bool, typer.Option("--write", help="Also save the results in the checkpoint's metrics and card.")
]


def measure(
    checkpoint: CheckpointArgument,
    what: Annotated[
        Literal["heads", "explanations", "circuit", "agreement", "linear"],
        typer.Argument(
            help="heads: what each head is worth, and which simple rule can replace it. explanations: how well each "
            "attribution method ranks words. circuit: a few attention rows that suffice (who_won). agreement: "
            "accuracy by attractors and constructions. linear: a linear model fitted to all rows but the test rows."
        ),
    ],
    data: DataOption = None,
    texts: Annotated[
        int, typer.Option("--texts", metavar="N", min=1, help="Number of test texts for explanations.")
    ] = 200,
    write: WriteOption = False,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the parts of a checkpoint, or a simpler model, on the test rows of its data set."""
    if what == "agreement":
        _agreement(checkpoint, data=data, write=write, as_json=as_json)
    elif what == "circuit":
        _circuit(checkpoint, write=write, as_json=as_json)
    elif what == "heads":
        heads(checkpoint, data=data, write=write, as_json=as_json)
    elif what == "explanations":
        _explanations(checkpoint, n=texts, data=data, write=write, as_json=as_json)
    else:
        loaded = load_checkpoint(checkpoint)
        comparison = compare_on_test_rows(loaded, data_path=data, device=device, on_stage=note)
        if _finish(loaded, write=write, as_json=as_json, comparison=comparison.to_dict()):
            print_rows(("", "accuracy", "macro-F1"), comparison.table, title=f"{comparison.n:,} test rows")
            console().print(Text(f"{comparison.verdict} {comparison.settings}"))


def _finish(checkpoint: Checkpoint, *, write: bool, as_json: bool, **measured: Any) -> bool:
    """Save measurements and print them as JSON, if requested; return whether to print them as text instead."""
    if write:
        save_checkpoint(checkpoint.with_metrics(**measured))
    if as_json:
        print_json({"checkpoint": checkpoint.name, **measured})
    return not as_json


def _agreement(checkpoint: str, *, data: Path | None, write: bool, as_json: bool) -> None:
    """Measure accuracy by number of attractors, source and construction, and with parts of the text removed."""
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


def _circuit(checkpoint: str, *, write: bool, as_json: bool) -> None:
    """Measure a few attention rows, and the accuracy if all others are uniform."""
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


def heads(checkpoint: str, *, data: Path | None, write: bool, as_json: bool) -> None:
    """Measure what each head does and is worth."""
    classifier = Predictor.load(checkpoint)
    with rows_progress() as bar:
        task = bar.add_task("reading", total=None)
        means, measured = measure_heads(
            classifier,
            data_path=data,
            on_stage=lambda stage: bar.update(task, description=stage),
            on_text=lambda done, total: bar.update(task, completed=done, total=total),
        )
    stored = measured.to_dict()
    loaded = classifier.checkpoint
    # What earlier versions measured of heads.
    loaded = replace(loaded, metrics={name: value for name, value in loaded.metrics.items() if name != "atlas"})
    if write:
        save_checkpoint(loaded.with_metrics(heads=stored, means=means.to_dict()))
    if as_json:
        print_json({"checkpoint": classifier.name, "heads": stored})
        return
    title = f"{classifier.name}: accuracy {percentage(measured.accuracy, 2)} on {measured.n:,} test rows"
    head = ("part", "averaged", "another text's", "uniform", "distance", "word", "both", "rule")
    print_rows(head, list(head_rows(stored, brief=True)), title=title)
    console().print(all_heads_sentence(measured))


def _explanations(checkpoint: str, *, n: int, data: Path | None, write: bool, as_json: bool) -> None:
    """Measure how well each attribution method ranks words."""
    classifier = Predictor.load(checkpoint)
    rows = open_dataset(classifier.checkpoint.config.data, path=data).load("test")
    with Progress(console=console(error=True)) as bar:
        task = bar.add_task("scoring words", total=n)
        averages = measure_explanations(
            classifier,
            random_texts(rows.texts, n=n),
            on_text=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if not _finish(classifier.checkpoint, write=write, as_json=as_json, explanations=averages.to_dict()):
        return
    areas = [
        (METHODS[name], f"{area:.4f}", f"{averages.areas_by_magnitude[name]:.4f}")
        for name, area in averages.areas.items()
    ]
    areas.append(("random order", *2 * (f"{averages.random_area:.4f}",)))
    title = f"{classifier.name}: {averages.n:,} test texts"
    print_rows(("words removed in order of", "area, by score", "by magnitude"), areas, title=title)
