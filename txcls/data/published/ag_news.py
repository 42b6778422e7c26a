"""AG News (Zhang, Zhao & LeCun 2015) in its published format: `"class","title","description"` with classes 1 to 4."""

import csv
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.files import first_file, open_text
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, RemoteFile, SplitName
from txcls.errors import DataError

CLASSES = ("World", "Sports", "Business", "Sci/Tech")
TRAIN_ROWS = 120_000
_URL = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"

INFO = DatasetInfo(
    name="ag_news",
    title="AG News: title and description of news articles in four sections",
    homepage="http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
    terms="research and other non-commercial use",
    citation="X. Zhang, J. Zhao, Y. LeCun: Character-level Convolutional Networks for Text Classification, NIPS 2015",
    files=(
        RemoteFile("train.csv", f"{_URL}/train.csv", "md5:b1a00f826fdfbd249f79597b59e1dc12"),
        RemoteFile("test.csv", f"{_URL}/test.csv", "md5:d52ea96a97a2d943681189a97654912d"),
    ),
)

_TRAIN_FILES = ("train.csv", "train.csv.gz", "train_subset.csv", "train_subset.csv.gz")
_TEST_FILES = ("test.csv", "test.csv.gz")


def open_ag_news(config: DataConfig, path: Path) -> Dataset:
    """Open a folder with train.csv (or train_subset.csv) and test.csv, gzipped or not, or one of these files.

    Raises:
        DataError: there are no such files.
    """
    if path.is_file():
        train, test = (None, path) if path.name.startswith("test") else (path, None)
    else:
        train, test = first_file(path, _TRAIN_FILES), first_file(path, _TEST_FILES)
    if train is None and test is None:
        raise DataError(f"{path}: no such file, nor a folder with {' or '.join((*_TRAIN_FILES, *_TEST_FILES))}")
    found: dict[SplitName, Path | None] = {"train": train, "test": test}
    files = {split: file for split, file in found.items() if file is not None}
    return Dataset(
        info=INFO,
        classes=CLASSES,
        source=", ".join(file.name for file in files.values()),
        splits=tuple(files),
        read=lambda split: read_rows(files[split]),
        description=f"a part of the {TRAIN_ROWS:,} published training rows" if train and "subset" in train.name else "",
    )


def read_rows(path: Path) -> LabelledTexts:
    """Read the rows of a file; a text is the title and the description, separated by a space and stripped.

    Raises:
        DataError: the file cannot be read, or a row is not in the published format.
    """
    texts, labels = [], []
    with open_text(path) as file:
        for number, row in enumerate(csv.reader(file), start=1):
            if len(row) != 3:
                raise DataError(f'{path}, row {number}: {len(row)} fields, expected "class","title","description"')
            label, title, description = row
            if label not in ("1", "2", "3", "4"):
                raise DataError(f"{path}, row {number}: class {label[:40]!r}, expected 1, 2, 3 or 4")
            texts.append(f"{title} {description}".strip())
            labels.append(int(label) - 1)
    if not texts:
        raise DataError(f"{path}: no rows")
    return LabelledTexts(texts, labels, CLASSES)
