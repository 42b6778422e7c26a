"""`txcls measure`: what the parts of a checkpoint do, and what simpler models reach on its data."""

import re
from dataclasses import replace
from typing import Annotated, Any, Literal

import typer
from rich.markdown import Markdown
from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.cli.options import CheckpointArgument, DataOption, DeviceOption, JsonOption, WriteOption
from txcls.cli.output import console, note, print_json, print_rows, rows_progress
from txcls.data.datasets import open_dataset
from txcls.data.generated.agreement import minimal_pairs
from txcls.errors import DataError, printable
from txcls.evaluation.compare import compare_on_test_rows
from txcls.evaluation.measure_agreement import measure_agreement
from txcls.inference.predictor import Predictor
from txcls.inspection.attribution import measure_explanations
from txcls.inspection.circuit import measure_circuit
from txcls.inspection.heads import all_heads_sentence, measure_heads, random_texts
from txcls.inspection.patching import mean_route

SECTIONS = {
    "heads": "Heads",
    "explanations": "Attribution methods",
    "circuit": "The circuit",
    "agreement": "By attractors and constructions",
}
"""The section of the model card that shows each measurement."""


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
    loaded = load_checkpoint(checkpoint)
    if what in ("heads", "explanations", "linear") and loaded.config.data.dataset == "table":
        raise DataError(
            f"measure {what} needs the test rows of a published data set, and {loaded.name} was "
            f"{'imported' if loaded.config.imported else 'trained on a table of your own'}; `evaluate` and `report` "
            "measure it with --data"
        )
    if what == "linear":
        comparison = compare_on_test_rows(loaded, data_path=data, device=device, on_stage=note)
        _finish(loaded, write=write, as_json=as_json, comparison=comparison.to_dict())
        if not as_json:
            print_rows(("", "accuracy", "macro-F1"), comparison.table, title=f"{comparison.n:,} test rows")
            console().print(Text(f"{comparison.verdict} {comparison.settings}"))
        return
    classifier = Predictor(loaded)
    with rows_progress() as bar:
        task = bar.add_task("reading", total=None)

        def on_stage(stage: str) -> None:
            bar.update(task, description=stage)

        def on_text(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        measured: dict[str, Any]
        sentence = ""
        if what == "heads":
            means, heads = measure_heads(classifier, data_path=data, on_stage=on_stage, on_text=on_text)
            measured, sentence = {"heads": heads.to_dict()}, all_heads_sentence(heads)
            # "atlas" is what earlier versions measured of heads.
            kept = {name: value for name, value in loaded.metrics.items() if name != "atlas"}
            loaded = replace(loaded, metrics={**kept, "means": means.to_dict()})
        elif what == "explanations":
            rows = open_dataset(loaded.config.data, path=data).load("test")
            averages = measure_explanations(classifier, random_texts(rows.texts, n=texts), on_text=on_text)
            measured = {"explanations": averages.to_dict()}
        elif what == "circuit":
            measured = {"circuit": measure_circuit(classifier, on_stage=on_stage).to_dict()}
        else:
            measured = {"agreement": measure_agreement(classifier, data_path=data, on_stage=on_stage)}
            words = [pair.text for pair in minimal_pairs()]  # of each item: singular, plural subject; both attractors
            pairs = [(words[n], words[n + 2]) for n in range(len(words)) if n % 4 < 2]
            route = mean_route(classifier, [*pairs, *((plural, singular) for singular, plural in pairs)])
            measured |= {} if route is None else {"route": route}  # None if it gives all pairs the same answer
    loaded = _finish(loaded, write=write, as_json=as_json, **measured)
    if not as_json:
        section = re.search(rf"^## {SECTIONS[what]}\n(.*?)(?=^## |\Z)", loaded.card, re.DOTALL | re.MULTILINE)
        assert section is not None  # since the card shows what was measured
        console().print(Markdown("\n".join(map(printable, section[0].splitlines()))))
        if sentence:
            console().print(sentence)


def _finish(checkpoint: Checkpoint, *, write: bool, as_json: bool, **measured: Any) -> Checkpoint:
    """The checkpoint with the measurements, saved if requested; they are printed as JSON if requested."""
    checkpoint = checkpoint.with_metrics(**measured)
    if write:
        save_checkpoint(checkpoint)
    if as_json:
        print_json({"checkpoint": checkpoint.name, **measured})
    return checkpoint
