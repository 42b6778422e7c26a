"""`txcls import`: a model from a zip file, or a published BERT."""

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.folders import checkpoint_root
from txcls.checkpoint.hugging_face import load_bert
from txcls.checkpoint.load import import_archive
from txcls.cli.shared import note
from txcls.data.datasets import sentences
from txcls.errors import CheckpointError, list_names, sanitize
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import measure_means


def import_model(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A zip file that the playground saved, or a folder with a published BERT or DistilBERT.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="For a zip file: the checkpoint's name  [default: the file's]"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="For a BERT: the checkpoint, such as checkpoints/NAME."),
    ] = None,
) -> None:
    """Put a model from a zip file under checkpoints/, or turn a published text classifier into a checkpoint.

    A zip file, or a folder with a BertForSequenceClassification or DistilBertForSequenceClassification in Hugging
    Face's format, becomes a checkpoint like any other: commands take its name, and the app lists it, without a restart.
    """
    if source.lower().endswith(".zip"):
        checkpoint = import_archive(Path(source), name=name)
    elif not Path(source).is_dir():
        raise CheckpointError(f"no folder {source!r:.200}; expected one with a published BERT, or a zip file")
    elif out is None or out.exists():
        raise CheckpointError(f"{source}: name a folder that does not exist yet: --out checkpoints/NAME")
    else:
        checkpoint = load_bert(Path(source))
        means = measure_means(Predictor(checkpoint), sentences(), split="shipped")
        command = shlex.join(["python", "-m", "txcls", "import", Path(source).resolve().name, "--out", out.name])
        checkpoint = checkpoint.with_metrics(means=means.to_dict(), training={"command": command})
        checkpoint = replace(checkpoint, path=save_checkpoint(checkpoint, out))
    assert checkpoint.path is not None  # it has just been written
    n, classes = len(checkpoint.classes), list_names(checkpoint.classes, limit=4)
    note(
        f"wrote {checkpoint.path}: {checkpoint.model.n_parameters:,} parameters, {n} classes ({classes})",
        f'to classify a text: python -m txcls predict {checkpoint.name} "your text"',
        *how_to_open_in_app(checkpoint.path),
    )


def how_to_open_in_app(folder: Path) -> tuple[str, str]:
    """Two lines that say at which address the app shows the checkpoint in this folder, and how to start the app."""
    root = folder.resolve().parent
    is_shown = root == checkpoint_root().resolve()
    variable = "" if is_shown else f"TXCLS_CHECKPOINTS={shlex.quote(str(root))} "
    address = f"http://localhost:{os.environ.get('STREAMLIT_SERVER_PORT', '8501')}/?checkpoint={quote(folder.name)}"
    return (
        f"in the app{', also if it is already running' if is_shown else ''}: {sanitize(address, limit=300)}",
        f"  {variable}streamlit run streamlit_app.py",
    )
