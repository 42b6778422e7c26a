"""What workers read of a visitor's table: its columns, its labelled rows, and a note for each thing left out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from txcls.app.limits import limits
from txcls.errors import DataError

if TYPE_CHECKING:
    from txcls.data.guess import Guess
    from txcls.data.own_table import OwnTable
    from txcls.data.types import LabelledTexts

SAMPLES = ("sample", "who_won")
"""Data sets of the package that can be trained on instead of a table."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows to train on.

    Attributes:
        train: the rows.
        test: test rows of their own; None if some of `train` are to be held out.
        places: the number of each row in the visitor's file; empty for a data set of the package.
        source: what they are, for the model's card.
        notes: sentences on what was left out.
    """

    train: "LabelledTexts"
    test: "LabelledTexts | None"
    places: Sequence[int]
    source: str
    notes: tuple[str, ...] = ()


def read_table(desk: Path, spec: Mapping[str, Any]) -> "OwnTable":
    """The table that a job names, if it is not too long.

    Raises:
        DataError: it cannot be read, or has more rows than the host allows.
    """
    from txcls.data.own_table import read_own_table

    path = desk / spec["file"]
    name = str(spec["names"][spec["file"]])
    table = read_own_table(path, name=name)
    if len(table) > limits().rows:
        raise DataError(
            f"{name}: {len(table):,} rows, and this server takes {limits().rows:,} at most (TXCLS_MAX_ROWS); upload a "
            "part of them"
        )
    return table


def labelled_rows(desk: Path, spec: Mapping[str, Any]) -> Rows:
    """The rows to train on: of a data set of the package, or of the two columns of a table.

    Raises:
        DataError: they cannot be read.
    """
    if "sample" in spec:
        return _sample(spec["sample"])
    from txcls.data.own_rows import own_rows

    table = read_table(desk, spec)
    guess = guessed(table, spec)
    found = own_rows(table, text_column=guess.text_column, label_column=guess.label_column)
    places = [table.places[index] for index in found.indices]
    return Rows(found.labelled, None, places, table.name, (*table.notes, *found.notes))


def guessed(table: "OwnTable", spec: Mapping[str, Any]) -> "Guess":
    """The columns that the visitor has chosen, or those that look right.

    Raises:
        DataError: none do.
    """
    from txcls.data.guess import guess_columns

    return guess_columns(table, text_column=spec.get("text_column"), label_column=spec.get("label_column"))


def _sample(name: str) -> Rows:
    from txcls.config import DataConfig
    from txcls.data.datasets import open_dataset

    if name not in SAMPLES:
        raise DataError(f"no sample {name!r:.40}; there are {', '.join(SAMPLES)}")
    dataset = open_dataset(DataConfig(dataset=name))
    test = dataset.load("test") if dataset.has_test else None
    return Rows(dataset.load("train"), test, (), dataset.info.title)


def write_kept(file: Path, test: "LabelledTexts", examples: Sequence[str]) -> None:
    """Keep the test rows of a model and some texts to try, for the pages that show it."""
    labels = [test.classes[label] for label in test.labels]
    values = {"texts": list(test.texts), "labels": labels, "examples": list(examples)}
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(json.dumps(values), encoding="utf-8")
