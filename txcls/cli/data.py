"""`txcls data list`, `txcls data fetch` and `txcls data show`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from txcls.cli.options import JsonOption, LabelColumnOption, SheetOption, TextColumnOption, joined_columns
from txcls.cli.output import console, print_json, remedy
from txcls.config import DataConfig
from txcls.data.columns import guess_columns
from txcls.data.datasets import dataset_info, dataset_names, is_available, open_dataset
from txcls.data.download import fetch as download
from txcls.data.files import refuse_unreachable
from txcls.data.generated.agreement import write_agreement
from txcls.data.generated.agreement.rows import Split, make_rows
from txcls.data.generated.agreement.sources import texts_of
from txcls.data.tables.labelled import labelled_rows, notes_before_training
from txcls.data.tables.table import Table as DataTable
from txcls.data.types import LabelledTexts, SplitName
from txcls.errors import DataError
from txcls.wording import shown

app = typer.Typer(help="List, download and show data sets.", no_args_is_help=True)


@app.command("list")
def list_sets(as_json: JsonOption = False) -> None:
    """List the known data sets, and whether they are on this machine."""
    infos = [dataset_info(name) for name in dataset_names()]
    if as_json:
        for info in infos:
            print_json(
                {"name": info.name, "title": info.title, "homepage": info.homepage, "here": is_available(info.name)}
            )
        return
    table = Table("name", "contents", "on this machine", "terms")
    for info in infos:
        table.add_row(info.name, info.title, "yes" if is_available(info.name) else "no", info.terms)
    console().print(table)


@app.command()
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `data list`.")]) -> None:
    """Download a data set from its publisher into the cache and verify its checksums."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(error=True)) as progress:
        folder = download(dataset_info(name), progress_bar=lambda file: _Bar(progress, file))
    print(folder)


class _Bar:
    """The progress bar of a file, with the methods that pooch calls."""

    total = 0

    def __init__(self, progress: Progress, file: str) -> None:
        self._progress, self._task = progress, progress.add_task(file, total=None)

    def update(self, n: int) -> None:
        self._progress.update(self._task, total=self.total or None, advance=n)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        """Leave the bar on screen."""


@app.command()
def agreement(
    sources: Annotated[
        list[str],
        typer.Option("--from", metavar="NAME_OR_PATH", help="A data set, text file or folder; can be repeated."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write.")] = Path("agreement"),
    rows: Annotated[int, typer.Option(min=2, help="Maximum number of training rows.")] = 400_000,
    held_out: Annotated[
        int, typer.Option(min=2, help="Maximum number of validation rows, and of test rows, from each source.")
    ] = 10_000,
) -> None:
    """Make the rows of `agreement` (is or are?) from English texts."""
    limits: dict[Split, int] = {"train": rows, "validation": held_out, "test": held_out}
    with console(error=True).status("reading"):
        rows_by_split, nouns = make_rows({source: texts_of(source) for source in sources}, limit=limits)
    if empty := [split for split, split_rows in rows_by_split.items() if not split_rows]:
        raise DataError(f"no {empty[0]} rows in {', '.join(sources)}; add more texts with --from")
    write_agreement(out, rows_by_split, nouns)
    counts = ", ".join(f"{len(split_rows):,} {split}" for split, split_rows in rows_by_split.items())
    print(f"{out}: {counts} rows; {len(nouns.plural_of):,} nouns")


@app.command()
def show(
    name_or_path: Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A data set's name, or a table file.")],
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    sheet: SheetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rows per class and example texts of a data set, or of your own file as `train` reads it."""
    is_name, text = name_or_path in dataset_names(), joined_columns(text_column)
    if not is_name:
        refuse_unreachable(Path(name_or_path))
    if not is_name and not Path(name_or_path).is_dir():
        table = DataTable(Path(name_or_path), sheet=sheet)
        guess = guess_columns(table.sample, file=table.name, text_column=text, label_column=label_column)
        table_rows = labelled_rows(table, guess)
        notes = [*guess.sentences, *table_rows.notes, *notes_before_training(table_rows.labelled)]
        _print_splits(table.path.name, {"train": table_rows.labelled}, notes, as_json=as_json)
        return
    config = DataConfig(dataset=name_or_path if is_name else "table", text_column=text, label_column=label_column)
    dataset = open_dataset(config, path=None if is_name else Path(name_or_path))
    splits = {split: dataset.load(split) for split in dataset.splits if not split.startswith("oos")}
    notes = [] if as_json else [dataset.info.homepage, dataset.info.terms]
    title = dataset.info.name if as_json else dataset.info.title
    _print_splits(title, splits, [dataset.description, *notes], as_json=as_json)


def _print_splits(title: str, splits: Mapping[SplitName, LabelledTexts], notes: list[str], *, as_json: bool) -> None:
    notes = list(filter(None, notes))
    if as_json:
        for split, rows in splits.items():
            counts = {label: rows.labels.count(index) for index, label in enumerate(rows.classes)}
            print_json(
                {
                    "name": title,
                    "split": split,
                    "rows": len(rows),
                    "classes": counts,
                    **({"note": " ".join(notes)} if notes else {}),
                }
            )
        return
    headings = ["rows"] if list(splits) == ["train"] else [f"{split} rows" for split in splits]
    table = Table("class", *headings, "example", title=Text(shown(title)))
    first = next(iter(splits.values()))
    for index, label in enumerate(first.classes):
        example = first.texts[first.labels.index(index)] if index in first.labels else ""
        cells = (f"{rows.labels.count(index):,}" for rows in splits.values())
        table.add_row(Text(shown(label)), *cells, Text(shown(example, limit=120)))
    console().print(table)
    for note in notes:
        console().print(Text(shown(note, limit=1000)))
    if line := remedy(notes):
        console().print(Text(line), soft_wrap=True)
