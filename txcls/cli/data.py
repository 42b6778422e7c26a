"""`txcls data list`, `txcls data fetch` and `txcls data show`."""

from dataclasses import replace
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
from txcls.data.tables.labelled import labelled_rows
from txcls.data.tables.lines import refuse_unreachable
from txcls.data.tables.table import open_table
from txcls.data.types import Dataset
from txcls.errors import shown

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
    known, path = name_or_path in dataset_names(), Path(name_or_path)
    if not known:
        refuse_unreachable(path)
    if known or path.is_dir():
        name = name_or_path if known else "table"
        config = DataConfig(dataset=name, text_column=text_column, label_column=label_column)
        dataset = open_dataset(config, path=None if known else path)
    else:
        dataset = _beginning(path, text_column=text_column, label_column=label_column)
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


def _beginning(path: Path, *, text_column: str | None, label_column: str | None) -> Dataset:
    """The first rows of a file as `train FILE` reads them; what was done about its flaws is printed.

    Raises:
        DataError: it cannot be read, or its columns cannot be found.
    """
    table = open_table(path, look=True)
    guess = guess_columns(table.sample, file=table.name, text_column=text_column, label_column=label_column)
    rows = labelled_rows(table, text_column=guess.text_column, label_column=guess.label_column)
    for sentence in (*guess.sentences, *rows.notes):
        note(sentence)
    dataset = given_dataset(rows.labelled, source=path.name)
    if table.is_whole:
        return dataset
    return replace(dataset, description=f"a sample: the first {table.n_rows:,} rows; the file has more")
