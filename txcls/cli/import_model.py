"""`txcls import`: a model from a zip file, or a published GPT-2."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from txcls.checkpoint.archive import import_archive
from txcls.checkpoint.gpt2 import fetch_gpt2, load_gpt2
from txcls.cli.output import lines_on_the_app, note
from txcls.errors import CheckpointError
from txcls.wording import listed


def import_model(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A zip file that the playground saved; a folder with a published GPT-2, or its hub name.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="For a zip file: the checkpoint's name  [default: the file's name]"
        ),
    ] = None,
) -> None:
    """Check a model in a zip file and put it under checkpoints/, or check that a published GPT-2 can be read.

    The model of a zip file is then a checkpoint like any other: commands take its name, and the app lists it, without a
    restart. A published GPT-2 is downloaded by its name if needed, and its size is printed.
    """
    if source.lower().endswith(".zip"):
        checkpoint = import_archive(Path(source), name=name)
        n, classes = len(checkpoint.classes), listed(checkpoint.classes, limit=4)
        note(f"wrote {checkpoint.path}: {checkpoint.n_parameters:,} parameters, {n} classes ({classes})")
        assert checkpoint.path is not None  # it has just been written
        to_classify = f'to classify a text: python -m txcls predict {checkpoint.name} "your text"'
        note(to_classify, *lines_on_the_app(checkpoint.path))
        return
    if name is not None:
        raise CheckpointError("--name is for zip files; a published GPT-2 keeps its folder")
    folder = fetch_gpt2(source)
    model = load_gpt2(folder).model
    config = model.config
    note(
        f"{source}: {sum(p.numel() for p in model.parameters()):,} parameters, {config.n_layers} layers, "
        f"{config.n_heads} heads, d_model {config.d_model}, at most {config.max_length} tokens; continue a text with "
        f"`txcls generate {shlex.quote(str(folder))} PROMPT`"
    )
