"""Read a visitor's table in a worker: its columns, its labelled rows, and a note on each omission."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from txcls.app.jobs.json_lines import read_json
from txcls.app.shell.limits import limits
from txcls.config import DataConfig
from txcls.data.columns import Guess
from txcls.data.datasets import open_dataset
from txcls.data.examples import Example
from txcls.data.rows_in_classes import labelled_texts
from txcls.data.tables.labelled import guess_table, notes_before_training
from txcls.data.tables.labelled import labelled_rows as rows_of_table
from txcls.data.tables.table import Table
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.wording import start_of

READ_OPTIONS = ("text_column", "label_column", "sheet", "merge", "strip_headers", "code_book")
"""The keys of a spec that determine how its table is read."""
SAMPLES = ("sample", "who_won")
"""Built-in data sets that can be trained on instead of a table."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows to train on.

    Attributes:
        train: the training rows.
        test: separate test rows; None if some of `train` should be held out.
        row_numbers: the number of each row in the visitor's file; empty for a built-in data set.
        source: description of the data for the model card.
        notes: sentences about omitted rows.
        data: how the table was read; None for a built-in data set.
    """

    train: LabelledTexts
    test: LabelledTexts | None
    row_numbers: Sequence[int]
    source: str
    notes: tuple[str, ...] = ()
    data: DataConfig | None = None


@dataclass(frozen=True, eq=False)
class StoredRows:
    """All rows with which a model was trained and tested, in the order of the visitor's file.

    Attributes:
        texts, labels: N texts and the names of their classes.
        row_numbers: the number of each row in the file (N,); empty for a built-in data set.
        test: indices, from 0, of the rows held out for testing; empty if test rows were given separately.
        given_test: texts and labels of test rows that were given separately.
        spec: spec of the training job, which names the file and its columns.
        trained: indices, from 0, of the rows that the Transformer was trained on: no test and no validation rows, and
            fewer than the others if time was short.
        validation: indices, from 0, of the validation rows.
    """

    texts: Sequence[str]
    labels: Sequence[str]
    row_numbers: Sequence[int]
    test: Sequence[int]
    given_test: tuple[Sequence[str], Sequence[str]]
    spec: Mapping[str, Any]
    trained: Sequence[int] = ()
    validation: Sequence[int] = ()

    @property
    def test_texts(self) -> Sequence[str]:
        """Texts of the test rows."""
        return [self.texts[row] for row in self.test] if self.test else self.given_test[0]

    @property
    def test_labels(self) -> Sequence[str]:
        """Labels of the test rows."""
        return [self.labels[row] for row in self.test] if self.test else self.given_test[1]

    @property
    def test_row_numbers(self) -> Sequence[int]:
        """Numbers of the test rows in the visitor's file; empty if they are not from a file."""
        return [self.row_numbers[row] for row in self.test] if self.row_numbers else []

    def labelled(self, rows: Iterable[int], classes: Sequence[str]) -> LabelledTexts:
        """The rows with these indices that have one of the classes."""
        names = set(classes)
        known = [row for row in rows if self.labels[row] in names]
        return labelled_texts([self.texts[row] for row in known], [self.labels[row] for row in known], tuple(classes))

    @property
    def train(self) -> Sequence[int]:
        """Indices, from 0, of the rows that were not held out, in the order in which the linear baseline read them."""
        return [*sorted(set(range(len(self.texts))).difference(self.validation, self.test)), *self.validation]


def read_table(session: Path, spec: Mapping[str, Any]) -> Table:
    """The table of a job; DataError if it cannot be read or has more rows than the host allows."""
    name = file_name(spec)
    table = Table(session / spec["file"], name=name, sheet=spec.get("sheet"))
    refuse_many(table.n_rows or 0 if table.sample else 0, name=name)
    return table


def refuse_many(n_rows: int, *, name: str) -> None:
    """Raise DataError if a file has more rows than the host allows."""
    if n_rows > limits().rows:
        raise DataError(
            f"{name}: {n_rows:,} rows, and this server takes at most {limits().rows:,} (TXCLS_MAX_ROWS); upload a part "
            "of them, or use `python -m txcls` on your own machine"
        )


def file_name(spec: Mapping[str, Any]) -> str:
    """The visitor's name for the file that a job reads; "" if there is none."""
    return str(spec.get("names", {}).get(spec.get("file"), ""))


def labelled_rows(session: Path, spec: Mapping[str, Any]) -> Rows:
    """The rows to train on, from a built-in data set or two columns of a table; DataError if they cannot be read."""
    if "sample" in spec:
        return _sample(spec["sample"])
    table = read_table(session, spec)
    guess = guessed(table, spec)
    rows = rows_of_table(table, guess)
    notes = (*rows.notes, *notes_before_training(rows.labelled, merged=guess.merge_labels))
    return Rows(rows.labelled, None, rows.numbers, table.name, notes, guess.config)


def guessed(table: Table, spec: Mapping[str, Any]) -> Guess:
    """The columns that the visitor has chosen, or else guessed ones; DataError if no columns look right."""
    columns = {key: spec.get(key) for key in ("text_column", "label_column", "code_book")}
    return guess_table(
        table, **columns, strip_headers=bool(spec.get("strip_headers")), merge_labels=bool(spec.get("merge"))
    )


def _sample(name: str) -> Rows:
    if name not in SAMPLES:
        raise DataError(f"there is no sample {name!r:.40}; choose one of {', '.join(SAMPLES)}")
    dataset = open_dataset(DataConfig(dataset=name))
    test = dataset.load("test") if "test" in dataset.splits else None
    return Rows(dataset.load("train"), test, (), dataset.info.title)


def write_rows(folder: Path, name: str, stored_rows: StoredRows, examples: Sequence[str]) -> None:
    """Store the rows of a model and example texts for its pages; test rows get a separate file, which is read often."""
    test = {
        "texts": stored_rows.test_texts,
        "labels": stored_rows.test_labels,
        "row_numbers": stored_rows.test_row_numbers,
        "examples": examples,
    }
    (folder / f"{name}.json").write_text(json.dumps({key: list(values) for key, values in test.items()}), "utf-8")
    (folder / f"{name}.rows.json").write_text(json.dumps(asdict(stored_rows)), "utf-8")


def stored_examples(folder: Path, name: str) -> tuple[Example, ...]:
    """The example texts stored with a model, with their labels; none for a model that was not trained here."""
    stored = read_json(folder / f"{name}.json") or {}
    texts = {start_of(" ".join(text.split()), limit=24): text for text in reversed(stored.get("examples", ()))}
    labels = dict(zip(map(str.strip, stored.get("texts", ())), stored.get("labels", ()), strict=True))
    return tuple(Example(title, text, label=labels.get(text, "")) for title, text in reversed(texts.items()))


def read_rows(folder: Path, name: str) -> StoredRows | None:
    """The rows stored with a model; None for a model that was not trained here."""
    stored = read_json(folder / f"{name}.rows.json")
    return None if stored is None else StoredRows(**stored)
