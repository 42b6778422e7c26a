"""Arguments and options shared by several commands."""

from pathlib import Path
from typing import Annotated

import typer

CheckpointArgument = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint folder, or a name under checkpoints/.")
]
PresetArgument = Annotated[str, typer.Argument(metavar="PRESET", help="A preset's name, or a TOML file of that form.")]
PresetOrFileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|PRESET",
        help="A table of your own (CSV, TSV, JSON Lines, JSON, Parquet, Excel), or a preset's name or TOML file.",
    ),
]
DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="PATH", help="Folder or file with the data in their published format.")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="D", help="cpu, cuda, …  [default: CUDA if available]")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; may be given several times."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, and nothing else.")]
TextColumnOption = Annotated[
    str | None, typer.Option("--text-column", metavar="C", help="The file's text column  [default: guessed by name]")
]
LabelColumnOption = Annotated[
    str | None, typer.Option("--label-column", metavar="C", help="The file's label column  [default: guessed]")
]
