"""Large Movie Review Dataset v1.0 (Maas et al. 2011): positive and negative reviews, one file per review."""

import re
from functools import partial
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.files import first_file, matching_files
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, RemoteFile
from txcls.errors import DataError

CLASSES = ("negative", "positive")

INFO = DatasetInfo(
    name="imdb",
    title="IMDB: film reviews, positive or negative",
    homepage="https://ai.stanford.edu/~amaas/data/sentiment/",
    terms="no explicit licence; cite the paper",
    citation="A. L. Maas, R. E. Daly, P. T. Pham, D. Huang, A. Y. Ng, C. Potts: Learning Word Vectors for Sentiment "
    "Analysis, ACL 2011",
    files=(
        RemoteFile(
            "aclImdb_v1.tar.gz",
            "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
        ),
    ),
)

_SUFFIXES = ("tar", "tar.gz", "tgz", "tar.xz", "txz", "tar.bz2")
_EXPECTED_FILES = "the folder aclImdb with train/pos/0_9.txt and so on, or aclImdb_v1.tar.gz (or .tar.xz, .tar)"


def open_imdb(config: DataConfig, path: Path) -> Dataset:
    """Open the folder aclImdb, the archive, or a folder that contains one of them.

    Raises:
        DataError: there is no such folder or archive.
    """
    is_set = path.is_file() or any((path / name).is_dir() for name in ("train", "test", "aclImdb"))
    source = path if is_set else first_file(path, [f"aclImdb_v1.{suffix}" for suffix in _SUFFIXES])
    if source is None:
        raise DataError(f"{path}: expected {_EXPECTED_FILES}; neither is there")
    return Dataset(INFO, CLASSES, source.name, ("train", "test"), read=partial(read_reviews, source))


def read_reviews(path: Path, split: str) -> LabelledTexts:
    """Read the reviews of a split, stripped: the negative, then the positive ones, each ordered by number.

    Raises:
        DataError: one of the classes has no reviews, or a file cannot be read, is not UTF-8, or is empty.
    """
    pattern = re.compile(rf"(?:aclImdb/)?{split}/(neg|pos)/([0-9]{{1,9}})_[0-9]{{1,2}}\.txt")
    rows: list[tuple[int, int, str]] = []
    for match, raw in matching_files(path, pattern):
        try:
            text = raw.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise DataError(f"{path}, {match[0]}: byte 0x{raw[error.start]:02x} is not utf-8; get it again") from None
        if not text:
            raise DataError(f"{path}, {match[0]}: an empty review; get the data set again")
        rows.append((int(match[1] == "pos"), int(match[2]), text))
    for label, folder in enumerate(("neg", "pos")):
        if not any(row[0] == label for row in rows):
            raise DataError(f"{path}: no reviews in {split}/{folder}; expected {_EXPECTED_FILES}")
    rows.sort()
    return LabelledTexts([text for *_, text in rows], [label for label, *_ in rows], CLASSES)
