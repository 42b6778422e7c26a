"""`txcls inspect`, `compare`, `sizes` and `measure`: the tensors, predictions, parameters and parts of models."""

import re
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import typer
from rich.markdown import Markdown
from rich.text import Text

from txcls.checkpoint.checkpoint import Checkpoint, save_checkpoint
from txcls.checkpoint.hugging_face import load_gpt2
from txcls.checkpoint.load import find_checkpoint, load_checkpoint
from txcls.checkpoint.weights import build_without_memory
from txcls.cli.predict import print_prediction
from txcls.cli.shared import (
    CheckpointArgument,
    DataOption,
    DeviceOption,
    JsonOption,
    SettingsOption,
    WriteOption,
    console,
    note,
    print_json,
    print_rows,
    rows_progress,
)
from txcls.config import load_preset, preset_names
from txcls.data.datasets import examples_for, open_dataset
from txcls.data.generated.agreement import minimal_pairs
from txcls.errors import CheckpointError, ConfigError, DataError, make_printable, sanitize
from txcls.evaluation.compare import compare_checkpoints, compare_on_test_rows
from txcls.evaluation.linear import recommended_linear
from txcls.evaluation.measure_agreement import measure_agreement
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import strongest_weights
from txcls.inspection.attribution import measure_explanations
from txcls.inspection.circuit import measure_circuit
from txcls.inspection.heads import all_heads_sentence, measure_heads, random_texts
from txcls.inspection.parameters import part_sizes
from txcls.inspection.patching import mean_route
from txcls.inspection.tracing import trace_text
from txcls.text.formatting import percentage

LISTED = 20
"""Maximum number of classes in a comparison."""


def inspect(
    checkpoint: CheckpointArgument,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to trace through the model.")],
    as_json: JsonOption = False,
) -> None:
    """Print the name and shape of every tensor from token ids to probabilities, for one text."""
    classifier = Predictor.load(checkpoint)
    traced = trace_text(classifier, text)
    if as_json:
        for stage in traced.stages:
            print_json({"name": stage.name, "axes": stage.letters, "shape": list(stage.shape), "note": stage.note})
        return
    tokens = " ".join(sanitize(token.label) for token in traced.tokens)
    console().print(Text(tokens), soft_wrap=True)
    rows = [(stage.name, stage.letters, " × ".join(map(str, stage.shape)), stage.note) for stage in traced.stages]
    print_rows(("step", "axes", "shape", "contents"), rows, title=f"{classifier.name}: {len(traced.tokens)} tokens")
    print_prediction(traced.prediction)


def compare(
    checkpoint: CheckpointArgument,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="A second checkpoint for the same data set.")],
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="A text  [default: an example]")] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two checkpoints on one text (predictions, attention) and on the same test rows (accuracy)."""
    both = [Predictor.load(name) for name in (checkpoint, other)]
    advice = filter(None, (recommended_linear(classifier.checkpoint) for classifier in both))
    note(*(f"Transformers are compared; `predict` uses {linear}." for linear in advice))
    rows = compare_checkpoints(both[0].checkpoint, both[1].checkpoint, data_path=data)
    dataset = both[0].checkpoint.config.data.dataset
    text = text or (rows.example if dataset == "table" else examples_for(dataset)[0].text)
    probabilities = [classifier.predict([text])[0].probabilities for classifier in both]
    heads = [strongest_weights(trace_text(classifier, text)) for classifier in both]
    if as_json:
        print_json({**asdict(rows), "text": text, "probabilities": probabilities, "heads": heads})
        return
    names = [sanitize(classifier.name, limit=40) for classifier in both]
    cells = [(label, *(percentage(one.get(label, 0.0)) for one in probabilities)) for label in probabilities[0]]
    console().print(Text(f"“{sanitize(text, limit=100)}”", style="italic"), soft_wrap=True)
    print_rows(("class", *names), cells[:LISTED])
    both_heads = sorted(heads[0] | heads[1], key=lambda head: [*map(int, head.split("."))])  # 1.10 after 1.2
    cells = [(head, *(one.get(head, "") for one in heads)) for head in both_heads]
    print_rows(("head", *names), cells, title="largest attention weight")
    print_rows(("", *names), rows.table)


def sizes(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A preset's name or TOML file, or a checkpoint's folder or name.")
    ],
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the parameters of a preset or checkpoint, part by part; the model of a preset is not allocated."""
    if name in preset_names() or name.endswith(".toml"):
        config = load_preset(name).with_settings(settings or ())
        size = config.text.max_vocabulary
        model = build_without_memory(config, vocab_size=size, n_classes=2)
        title = f"preset {name} with {size:,} tokens" + " and 2 classes" * (config.objective == "classify")
    else:
        if settings:
            raise ConfigError(f"{name} is not a preset; --set applies to presets only")
        try:
            folder = find_checkpoint(name)
        except CheckpointError as error:
            known = ", ".join(preset_names())
            raise ConfigError(f"no preset named {name!r} (there are {known}), and {error}") from None
        is_gpt2 = (folder / "merges.txt").is_file()
        model = load_gpt2(folder)[0] if is_gpt2 else load_checkpoint(folder).model
        title = f"checkpoint {name}"
    parts = part_sizes(model)
    total = sum(part.total for part in parts)
    if as_json:
        for part in parts:
            shapes = [list(shape) for shape in part.shapes]
            print_json({"part": part.name, "shapes": shapes, "times": part.times, "parameters": part.total})
        print_json({"part": "all", "parameters": total})
        return
    rows = [
        (
            part.name,
            " + ".join(" × ".join(f"{n:,}" for n in shape) for shape in part.shapes),
            part.times,
            f"{part.total:,}",
            percentage(part.total / total),
        )
        for part in parts
    ]
    head = ("part", "shape", "times", "parameters", "share")
    print_rows(head, [*rows, ("all", "", "", f"{total:,}", "")], title=title)


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
            loaded = replace(loaded, metrics={**loaded.metrics, "means": means.to_dict()})
        elif what == "explanations":
            rows = open_dataset(loaded.config.data, path=data).load("test")
            averages = measure_explanations(classifier, random_texts(rows.texts, n=texts), on_text=on_text)
            measured = {"explanations": averages.to_dict()}
        elif what == "circuit":
            measured = {"circuit": measure_circuit(classifier, on_stage=on_stage).to_dict()}
        else:
            measured = {"agreement": measure_agreement(classifier, data_path=data, on_stage=on_stage)}
            words = [pair.text for pair in minimal_pairs()]  # per item: two with a singular subject, two with a plural
            pairs = [(words[n], words[n + 2]) for n in range(len(words)) if n % 4 < 2]
            route = mean_route(classifier, [*pairs, *((plural, singular) for singular, plural in pairs)])
            measured |= {} if route is None else {"route": route}  # None if it gives all pairs the same answer
    loaded = _finish(loaded, write=write, as_json=as_json, **measured)
    if not as_json:
        section = re.search(rf"^## {SECTIONS[what]}\n(.*?)(?=^## |\Z)", loaded.card, re.DOTALL | re.MULTILINE)
        assert section is not None  # since the card shows what was measured
        console().print(Markdown("\n".join(map(make_printable, section[0].splitlines()))))
        if sentence:
            console().print(sentence)


def _finish(checkpoint: Checkpoint, *, write: bool, as_json: bool, **measured: Any) -> Checkpoint:
    """The checkpoint with the measurements added; if requested, it is saved and they are printed as JSON."""
    checkpoint = checkpoint.with_metrics(**measured)
    if write:
        save_checkpoint(checkpoint)
    if as_json:
        print_json({"checkpoint": checkpoint.name, **measured})
    return checkpoint
