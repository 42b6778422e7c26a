"""`txcls data list`, `txcls data fetch`, `txcls data show` and `txcls data agreement`."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from txcls.cli.shared import (
    LabelColumnOption,
    SheetOption,
    TextColumnOption,
    as_printed,
    console,
    join_columns,
    note,
    print_rows,
)
from txcls.config import DataConfig
from txcls.data.columns import guess_columns
from txcls.data.datasets import dataset_info, dataset_names, is_available, open_dataset
from txcls.data.datasets import fetch as download
from txcls.data.generated.agreement import Split, make_rows, write_agreement
from txcls.data.labelled import labelled_rows, notes_before_training
from txcls.data.table import Table
from txcls.data.unlabelled_texts import texts_of
from txcls.errors import DataError, sanitize
from txcls.training.plan import check_rows

app = typer.Typer(help="List, download and show data sets.", no_args_is_help=True)


@app.command("list")
def list_sets() -> None:
    """List the known data sets, and whether they are on this machine."""
    infos = [dataset_info(name) for name in dataset_names()]
    rows = [(info.name, info.title, "yes" if is_available(info.name) else "no", info.terms) for info in infos]
    print_rows(("name", "contents", "on this machine", "terms"), rows)


@app.command()
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `data list`.")]) -> None:
    """Download a data set from its publisher into the cache and verify its checksums."""
    print(download(dataset_info(name), on_file=lambda file: note(f"downloading {file}")))


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
) -> None:
    """Show the rows per class and example texts of a data set, or of your own file as `train` reads it."""
    if name_or_path in dataset_names():
        dataset = open_dataset(DataConfig(dataset=name_or_path))
        splits = {split: dataset.load(split) for split in dataset.splits if not split.startswith("oos")}
        title, notes = dataset.info.title, [dataset.description, dataset.info.homepage, dataset.info.terms]
    else:
        file = Table(Path(name_or_path), sheet=sheet)
        text = join_columns(text_column)
        guess = guess_columns(file.sample, file=file.name, text_column=text, label_column=label_column)
        rows = labelled_rows(file, guess)
        check_rows(rows.labelled)
        title, splits = file.name, {"train": rows.labelled}
        notes = [*guess.sentences, *rows.notes, *notes_before_training(rows.labelled)]
    headings = ["rows"] if list(splits) == ["train"] else [f"{split} rows" for split in splits]
    first = next(iter(splits.values()))
    examples = {first.classes[label]: text for label, text in zip(first.labels[::-1], first.texts[::-1], strict=True)}
    counts = [Counter(rows.labels) for rows in splits.values()]
    cells = [
        (name, *(f"{n[label]:,}" for n in counts), examples.get(name, "")) for label, name in enumerate(first.classes)
    ]
    print_rows(("class", *headings, "example"), cells, title=sanitize(title), limit=120)
    for sentence in filter(None, notes):
        console().print(Text(as_printed(sentence)))
