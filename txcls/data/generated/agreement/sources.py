"""The texts that agreement rows are made from: other data sets, Wikipedia, or plain text files."""

from collections.abc import Iterator
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.datasets import dataset_folder, dataset_info, dataset_names, open_dataset
from txcls.data.generated.agreement.rows import Split
from txcls.data.hashes import hashed_share
from txcls.data.published import wikipedia
from txcls.data.unlabelled_texts import open_texts
from txcls.errors import DataError

HELD_OUT = 0.02
"""Fraction of the training texts for validation; from files, the same fraction is for testing."""


def texts_of(source: str) -> Iterator[tuple[Split, str]]:
    """Yield (split, text) for the texts of a source, which is a data set's name or the path of a text file or folder.

    Wikipedia has its own splits. The test texts of a labelled set are for testing. For files, a hash of each paragraph
    decides.

    Raises:
        DataError: there is no such source, or it cannot be read.
    """
    if source == wikipedia.INFO.name:
        splits: dict[wikipedia.Split, Split] = {"training": "train", "validation": "validation", "test": "test"}
        yield from (
            (splits[article.split], article.text) for article in wikipedia.articles(dataset_folder(wikipedia.INFO))
        )
    elif source in dataset_names():
        dataset = open_dataset(DataConfig(dataset=source), path=dataset_folder(dataset_info(source)))
        yield from ((_split(text, with_test=False), text) for text in dataset.load("train").texts)
        if "test" in dataset.splits:
            yield from (("test", text) for text in dataset.load("test").texts)
    elif not Path(source).exists():
        raise DataError(
            f"no data set and no file named {source!r:.200}; the data sets are {', '.join(dataset_names())}"
        )
    else:
        texts = open_texts(DataConfig(dataset="text", unit="paragraphs"), path=Path(source))
        yield from ((_split(text, with_test=True), text) for text in (*texts.training, *texts.validation))


def _split(text: str, *, with_test: bool) -> Split:
    share = hashed_share(text, salt="agreement")
    return "validation" if share < HELD_OUT else "test" if with_test and share < 2 * HELD_OUT else "train"
