"""Arguments and options shared by several commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from txcls.data.columns import JOINER

CheckpointArgument = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="A checkpoint folder, or a name under checkpoints/.")
]
DataOption = Annotated[
    Path | None, typer.Option("--data", metavar="PATH", help="Folder or file with the data in the published format.")
]
DeviceOption = Annotated[
    str | None, typer.Option("--device", metavar="D", help="cpu, cuda, …  [default: CUDA if available]")
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; can be repeated."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, and nothing else.")]
WriteOption = Annotated[
    bool, typer.Option("--write", help="Also save the results in the checkpoint's metrics and card.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Print every table and note.")]
ModelOption = Annotated[
    Literal["transformer", "linear"],
    typer.Option(
        "--model", help="Which model of the checkpoint: linear is saved beside it unless the Transformer is better."
    ),
]
TextColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--text-column",
        metavar="C",
        help="The file's text column; repeat to join several, such as subject and body  [default: guessed]",
    ),
]
SheetOption = Annotated[
    str | None, typer.Option("--sheet", metavar="S", help="The workbook's sheet  [default: the one with the most rows]")
]
UsualSheetOption = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="S",
        help="The workbook's sheet  [default: the one trained on, or else the one with the most rows]",
    ),
]
LabelColumnOption = Annotated[
    str | None, typer.Option("--label-column", metavar="C", help="The file's label column  [default: guessed]")
]
LessonArgument = Annotated[
    str, typer.Argument(metavar="LESSON", help="A lesson's file, or the name of a shipped lesson.")
]
LessonLanguageOption = Annotated[
    str, typer.Option("--language", metavar="L", help="Language of a shipped lesson: en, de, …")
]


def joined_columns(names: Sequence[str] | None) -> str | None:
    """The columns given with --text-column as one name, which `text_columns` splits."""
    return JOINER.join(names) if names else None
