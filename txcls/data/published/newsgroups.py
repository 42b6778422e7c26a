"""20 Newsgroups, split by date (Lang 1995, Rennie): Usenet posts in Latin-1, one file per post."""

import re
from functools import partial
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.archives import locate, matching_files
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, RemoteFile
from txcls.errors import DataError

CLASSES = (
    *("alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    *("comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey"),
    *("sci.crypt", "sci.electronics", "sci.med", "sci.space", "soc.religion.christian", "talk.politics.guns"),
    *("talk.politics.mideast", "talk.politics.misc", "talk.religion.misc"),
)

INFO = DatasetInfo(
    name="20news",
    title="20 Newsgroups by date: Usenet posts in twenty groups",
    homepage="http://qwone.com/~jason/20Newsgroups/",
    terms="no explicit licence; public Usenet posts",
    citation="K. Lang: NewsWeeder: Learning to Filter Netnews, ICML 1995; split by date by J. Rennie",
    files=(
        RemoteFile(
            "20news-bydate.tar.gz",
            "https://ndownloader.figshare.com/files/5975967",  # the copy that scikit-learn uses
            "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
        ),
    ),
)

_EXPECTED_FILES = "the folders 20news-bydate-train and 20news-bydate-test, or 20news-bydate.tar.gz (or .tar.xz, .tar)"


def open_newsgroups(config: DataConfig, path: Path) -> Dataset:
    """Open the folder with 20news-bydate-train and -test, the archive, or a folder that contains one of them.

    Raises:
        DataError: there is no such folder or archive.
    """
    folders = ("20news-bydate-train", "20news-bydate-test", "20news-bydate")
    source = locate(path, folders=folders, archive="20news-bydate", expected_files=_EXPECTED_FILES)
    return Dataset(
        info=INFO,
        classes=CLASSES,
        source=source.name,
        splits=("train", "test"),
        read=partial(read_posts, source),
        description="headers, signatures and quotes, which reveal the group, are not removed",
    )


def read_posts(path: Path, split: str) -> LabelledTexts:
    """Read the posts of a split, stripped, ordered by group and number.

    Raises:
        DataError: there are no posts, a group is unknown, or a file cannot be read.
    """
    pattern = re.compile(rf"(?:20news-bydate/)?20news-bydate-{split}/([^/]+)/([0-9]{{1,9}})")
    labels = {name: index for index, name in enumerate(CLASSES)}
    rows: list[tuple[int, int, str]] = []
    for match, raw in matching_files(path, pattern):
        if match[1] not in labels:
            raise DataError(f"{path}, {match[0][:80]}: group {match[1][:40]!r} is not one of the {len(CLASSES)} groups")
        rows.append((labels[match[1]], int(match[2]), raw.decode("latin-1").strip()))
    if not rows:
        raise DataError(f"{path}: no posts in 20news-bydate-{split}; expected {_EXPECTED_FILES}")
    rows.sort()
    return LabelledTexts([text for *_, text in rows], [label for label, *_ in rows], CLASSES)
