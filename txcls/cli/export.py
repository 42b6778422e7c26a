"""`txcls export`: what a model can become outside Python."""

from pathlib import Path
from typing import Annotated

import typer

from txcls.cli.output import note

app = typer.Typer(no_args_is_help=True, help="Make a page of a model that needs no server.")


@app.callback()
def _commands() -> None:
    """Make a page of a model that needs no server."""


@app.command()
def page(
    checkpoints: Annotated[
        list[str],
        typer.Argument(metavar="CHECKPOINT", help="Checkpoint folders, or names under checkpoints/."),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder to write; an older page in it is replaced.")
    ],
    single_file: Annotated[
        bool,
        typer.Option("--single-file", help="Write index.html alone, which opens from a disk, with the weights in it."),
    ] = False,
) -> None:
    """Write a page that classifies in the visitor's browser: a folder for any static host, or a single file."""
    from txcls.web.page import export_page

    written = export_page(checkpoints, out, single_file=single_file)
    total = sum(file.stat().st_size for file in written.parent.iterdir())
    note(f"wrote {written} ({total / 1e6:.1f} MB{'' if single_file else ' with the files beside it'})")
    if not single_file:
        note(f"to look at it: python -m http.server --directory {written.parent}; README.md there says how to host it")
