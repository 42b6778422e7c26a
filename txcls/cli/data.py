"""`txcls data list`, `txcls data fetch` and `txcls data show`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from txcls.cli.options import JsonOption, LabelColumnOption, TextColumnOption
from txcls.cli.output import console, note, print_json
from txcls.config import DataConfig
from txcls.data.columns import guess_columns
from txcls.data.datasets import dataset_info, dataset_names, is_available, open_dataset
from txcls.data.download import fetch as download
from txcls.data.given import given_dataset
from txcls.data.tables.own_rows import own_rows
from txcls.data.tables.own_table import read_own_table
from txcls.data.types import Dataset
from txcls.errors import DataError, shown

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
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `data list` shows.")]) -> None:
    """Download a data set from its publisher into the cache and verify its checksums."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(error=True)) as bar:
        tasks: dict[str, Any] = {}

        def show_progress(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bar.add_task(file, total=total)
            bar.update(tasks[file], completed=done, total=total)

        folder = download(name, progress=show_progress)
    print(folder)


@app.command()
def show(
    name_or_path: Annotated[str, typer.Argument(metavar="NAME_OR_PATH", help="A data set's name, or your own file.")],
    text_column: TextColumnOption = None,
    label_column: LabelColumnOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show rows per class and example texts of a data set, or of the first rows of your own file."""
    known = name_or_path in dataset_names()
    config = DataConfig(dataset=name_or_path if known else "table", text_column=text_column, label_column=label_column)
    try:
        dataset = open_dataset(config, path=None if known else Path(name_or_path), sampled=True)
    except DataError as strict:
        if known:
            raise
        dataset = _own_table(Path(name_or_path), config, strict)
    splits = {split: dataset.load(split) for split in dataset.splits if not split.startswith("oos")}
    if as_json:
        for split, rows in splits.items():
            counts = {label: rows.labels.count(index) for index, label in enumerate(rows.classes)}
            print_json(
                {
                    "name": dataset.info.name,
                    "split": split,
                    "rows": len(rows),
                    "classes": counts,
                    **({"note": dataset.description} if dataset.description else {}),
                }
            )
        return
    table = Table("class", *(f"{split} rows" for split in splits), "example", title=Text(shown(dataset.info.title)))
    first = next(iter(splits.values()))
    for index, label in enumerate(first.classes):
        example = next((text for text, own in zip(first.texts, first.labels, strict=True) if own == index), "")
        counted = (f"{sum(own == index for own in rows.labels):,}" for rows in splits.values())
        table.add_row(Text(shown(label)), *counted, Text(shown(example, limit=120)))
    console().print(table)
    for line in (dataset.description, dataset.info.homepage, dataset.info.terms):
        if line:
            console().print(Text(shown(line, limit=500)))


def _own_table(path: Path, config: DataConfig, strict: DataError) -> Dataset:
    """A file that is no flawless table, read as `train FILE` reads it; what was done about its flaws is said.

    Raises:
        DataError: `strict`, if it cannot be read that way either; or its columns cannot be found.
    """
    try:
        table = read_own_table(path)
    except DataError:
        raise strict from None
    guess = guess_columns(table, text_column=config.text_column, label_column=config.label_column)
    rows = own_rows(table, text_column=guess.text_column, label_column=guess.label_column)
    dataset = given_dataset(rows.labelled, source=path.name)
    for sentence in (*table.notes, *guess.sentences, *rows.notes):
        note(sentence)
    return dataset
