"""The texts that agreement rows are made of: other data sets, Wikipedia, or plain text files."""

from collections.abc import Iterator
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.datasets import dataset_folder, dataset_info, dataset_names, open_dataset
from txcls.data.generated.agreement.rows import Part
from txcls.data.hashes import hashed_share
from txcls.data.published import wikipedia
from txcls.data.texts import open_texts
from txcls.errors import DataError

HELD_OUT = 0.02
"""Fraction of a set's training texts, and of the texts of a file, whose rows are for validation; of a file, as many are
for test."""


def texts_of(source: str) -> Iterator[tuple[Part, str]]:
    """Texts and the parts that their rows belong to: a source's name or the path of a text file or folder.

    Wikipedia has its own parts. Rows for test are from the test texts of a set with labels. For a file, a hash of the
    paragraph decides.

    Raises:
        DataError: there is no such source, or it cannot be read.
    """
    if source == wikipedia.INFO.name:
        parts: dict[wikipedia.Part, Part] = {"training": "train", "validation": "validation", "test": "test"}
        yield from (
            (parts[article.part], article.text) for article in wikipedia.articles(dataset_folder(wikipedia.INFO))
        )
    elif source in dataset_names():
        dataset = open_dataset(DataConfig(dataset=source), path=dataset_folder(dataset_info(source)))
        yield from ((_part(text, tests=False), text) for text in dataset.load("train").texts)
        if "test" in dataset.splits:
            yield from (("test", text) for text in dataset.load("test").texts)
    elif not Path(source).exists():
        raise DataError(f"no data set and no file named {source!r:.200}; there are {', '.join(dataset_names())}")
    else:
        opened = open_texts(DataConfig(dataset="text", unit="paragraphs"), path=Path(source))
        yield from ((_part(text, tests=True), text) for text in (*opened.training, *opened.validation))


def _part(text: str, *, tests: bool) -> Part:
    share = hashed_share(text, salt="agreement")
    return "validation" if share < HELD_OUT else "test" if tests and share < 2 * HELD_OUT else "train"
