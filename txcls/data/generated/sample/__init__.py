"""The sample data set, described in README.md."""

import csv
from importlib import resources

from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName, labelled_texts

INFO = DatasetInfo(
    name="sample",
    title="Everyday messages on six subjects, written for this project",
    terms="CC0 1.0",
)


def open_sample() -> Dataset:
    """Open the data set of messages in messages.csv."""
    rows = list(csv.DictReader((resources.files(__name__) / "messages.csv").read_text("utf-8").splitlines()))
    classes = tuple(sorted({row["label"] for row in rows}))

    def read(split: SplitName) -> LabelledTexts:
        split_rows = [row for row in rows if row["split"] == split]
        return labelled_texts([row["text"] for row in split_rows], [row["label"] for row in split_rows], classes)

    return Dataset(INFO, classes, "the txcls package", ("train", "test"), read)
