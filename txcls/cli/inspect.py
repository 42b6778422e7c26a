"""`txcls inspect` and `txcls sizes`: the tensors and parameters of a model."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from txcls.checkpoint.gpt2 import load_gpt2
from txcls.checkpoint.load import find_checkpoint, load_checkpoint
from txcls.checkpoint.weights import build_without_memory
from txcls.cli.options import CheckpointArgument, JsonOption, SettingsOption
from txcls.cli.output import console, print_json, print_rows
from txcls.cli.predict import print_prediction
from txcls.config import load_preset, preset_names
from txcls.errors import CheckpointError, ConfigError
from txcls.inference.predictor import Predictor
from txcls.inspection.parameters import part_sizes
from txcls.inspection.tracing import trace_text
from txcls.wording import percentage, shown


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
    tokens = " ".join(shown(token.label) for token in traced.tokens)
    console().print(Text(tokens), soft_wrap=True)
    rows = [(stage.name, stage.letters, " × ".join(map(str, stage.shape)), stage.note) for stage in traced.stages]
    print_rows(("step", "axes", "shape", "contents"), rows, title=f"{classifier.name}: {len(traced.tokens)} tokens")
    print_prediction(traced.prediction)


def sizes(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A preset's name or TOML file, or a checkpoint's folder or name.")
    ],
    settings: SettingsOption = None,
    vocabulary: Annotated[
        int | None,
        typer.Option(
            "--vocabulary", metavar="N", min=5, help="Vocabulary size, for a preset  [default: text.max_vocabulary]"
        ),
    ] = None,
    classes: Annotated[
        int | None, typer.Option("--classes", metavar="N", min=2, help="Number of classes, for a preset  [default: 2]")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count the parameters of a preset or checkpoint, part by part; the model of a preset is not allocated."""
    if name in preset_names() or name.endswith(".toml"):
        config = load_preset(name).with_settings(settings or ())
        size = vocabulary or config.text.max_vocabulary
        model = build_without_memory(config, vocab_size=size, n_classes=classes or 2)
        title = f"preset {name} with {size:,} tokens"
        title += f" and {classes or 2} classes" if config.objective == "classify" else ""
    else:
        if settings or vocabulary or classes is not None:
            raise ConfigError(f"{name} is not a preset; --set, --vocabulary and --classes apply to presets only")
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
