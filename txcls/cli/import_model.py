"""`txcls import`: a model from a zip file, or a published GPT-2."""

import os
import shlex
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from txcls.checkpoint.archive import import_archive
from txcls.checkpoint.folders import checkpoint_root
from txcls.checkpoint.gpt2 import fetch_gpt2, load_gpt2
from txcls.cli.output import note
from txcls.errors import CheckpointError
from txcls.wording import listed, shown


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
    if (Path(source) / "labels.json").is_file():
        raise CheckpointError(
            f"{source} is already a checkpoint of txcls: give this folder to predict, evaluate or the app"
        )
    folder = fetch_gpt2(source)
    model = load_gpt2(folder).model
    config = model.config
    note(
        f"{source}: {sum(p.numel() for p in model.parameters()):,} parameters, {config.n_layers} layers, "
        f"{config.n_heads} heads, d_model {config.d_model}, at most {config.max_length} tokens; continue a text with "
        f"`txcls generate {shlex.quote(str(folder))} PROMPT`"
    )


def lines_on_the_app(folder: Path) -> tuple[str, str]:
    """Two lines that say at which address the app shows the checkpoint in this folder, and how to start the app."""
    root = folder.resolve().parent
    is_shown = root == checkpoint_root().resolve()
    variable = "" if is_shown else f"TXCLS_CHECKPOINTS={shlex.quote(str(root))} "
    address = f"http://localhost:{os.environ.get('STREAMLIT_SERVER_PORT', '8501')}/?checkpoint={quote(folder.name)}"
    return (
        f"in the app{', also if it is already running' if is_shown else ''}: {shown(address, limit=300)}",
        f"  {variable}streamlit run streamlit_app.py",
    )
