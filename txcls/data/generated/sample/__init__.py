"""The sample set that ships with the package; README.md in this folder describes it."""

import csv
from importlib import resources

from txcls.data.classes import labelled_texts
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName

INFO = DatasetInfo(
    name="sample",
    title="Everyday messages on six subjects, written by hand for this project",
    terms="CC0 1.0",
    citation="the txcls authors",
)


def open_sample() -> Dataset:
    """Open the data set of messages in messages.csv."""
    rows = list(csv.DictReader((resources.files(__name__) / "messages.csv").read_text("utf-8").splitlines()))
    classes = tuple(sorted({row["label"] for row in rows}))

    def read(split: SplitName) -> LabelledTexts:
        of_split = [row for row in rows if row["split"] == split]
        return labelled_texts([row["text"] for row in of_split], [row["label"] for row in of_split], classes)

    return Dataset(INFO, classes, "the txcls package", ("train", "test"), read)
