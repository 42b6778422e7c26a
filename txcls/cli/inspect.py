"""`txcls inspect`, `txcls compare` and `txcls sizes`: the tensors, predictions and parameters of models."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from txcls.checkpoint.load import find_checkpoint, load_checkpoint
from txcls.checkpoint.published import load_gpt2
from txcls.checkpoint.weights import build_without_memory
from txcls.cli.options import CheckpointArgument, DataOption, JsonOption, SettingsOption
from txcls.cli.output import console, print_json, print_rows
from txcls.cli.predict import print_prediction
from txcls.config import load_preset, preset_names
from txcls.data.examples import examples_for
from txcls.errors import CheckpointError, ConfigError, sanitize
from txcls.evaluation.compare import compare_checkpoints
from txcls.inference.predictor import Predictor
from txcls.inspection.attention import strongest_weights
from txcls.inspection.parameters import part_sizes
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
        model = load_gpt2(folder).model if is_gpt2 else load_checkpoint(folder).model
        title = f"checkpoint {name}"
    parts = part_sizes(model)
    total = sum(part.total for part in parts)
    if as_json:
        for part in parts:
            shapes = [list(shape) for shape in part.shapes]
            print_json({"part": part.name, "shapes": shapes, "times": part.times, "parameters": part.total})
        print_json({"part": "all", "parameters": total})
        return
    table = Table("part", "shape", title=title)
    for column in ("times", "parameters", "share"):
        table.add_column(column, justify="right")
    for part in parts:
        shape = " + ".join(" × ".join(f"{n:,}" for n in shape) for shape in part.shapes)
        table.add_row(part.name, shape, str(part.times), f"{part.total:,}", percentage(part.total / total))
    table.add_section()
    table.add_row("all", "", "", f"{total:,}", "")
    console().print(table)
