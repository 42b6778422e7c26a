"""20 Newsgroups, split by date (Lang 1995, Rennie): Usenet posts in Latin-1, one file per post."""

import re
from collections.abc import Collection
from functools import partial
from pathlib import Path

from txcls.config import DataConfig, PostPart
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
    settings=("remove",),
)

_EXPECTED_FILES = "the folders 20news-bydate-train and 20news-bydate-test, or 20news-bydate.tar.gz (or .tar.xz, .tar)"
_ATTRIBUTION_ENDINGS = ("writes:", "wrote:", "says:", "said:")
_MAX_SIGNATURE_LINES = 10
"""Maximum number of lines in a signature without the standard delimiter."""


def open_newsgroups(config: DataConfig, path: Path) -> Dataset:
    """Open the folder with 20news-bydate-train and -test, the archive, or a folder that contains one of them.

    Raises:
        DataError: there is no such folder or archive.
    """
    folders = ("20news-bydate-train", "20news-bydate-test", "20news-bydate")
    source = locate(path, folders=folders, archive="20news-bydate", expected_files=_EXPECTED_FILES)
    parts = " and ".join(part for part in ("headers", "signatures", "quotes") if part in config.remove)
    return Dataset(
        info=INFO,
        classes=CLASSES,
        source=source.name,
        splits=("train", "test"),
        read=partial(read_posts, source, remove=config.remove),
        description=f"posts without {parts}"
        if parts
        else "headers, signatures and quotes reveal the group; remove them with data.remove",
    )


def read_posts(path: Path, split: str, *, remove: Collection[PostPart] = ()) -> LabelledTexts:
    """Read the posts of a split, ordered by group and number; posts of which nothing remains are empty texts.

    Raises:
        DataError: there are no posts, a group is unknown, or a file cannot be read.
    """
    pattern = re.compile(rf"(?:20news-bydate/)?20news-bydate-{split}/([^/]+)/([0-9]{{1,9}})")
    labels = {name: index for index, name in enumerate(CLASSES)}
    rows: list[tuple[int, int, str]] = []
    for match, raw in matching_files(path, pattern):
        if match[1] not in labels:
            raise DataError(f"{path}, {match[0][:80]}: group {match[1][:40]!r} is not one of the {len(CLASSES)} groups")
        rows.append((labels[match[1]], int(match[2]), strip_post(raw.decode("latin-1"), remove)))
    if not rows:
        raise DataError(f"{path}: no posts in 20news-bydate-{split}; expected {_EXPECTED_FILES}")
    rows.sort()
    return LabelledTexts([text for *_, text in rows], [label for label, *_ in rows], CLASSES)


def strip_post(post: str, remove: Collection[PostPart]) -> str:
    """The post without these parts, stripped.

    The rules follow the format of Usenet posts (RFC 1036; for the signature delimiter, son-of-RFC 1036, 4.3.2): headers
    end at the first empty line; a signature follows the last line `-- `, or is a short block at the end below a line of
    dashes; quoted lines begin with `>` or `|`, and the line above them names the author.
    """
    lines = post.split("\n")
    if "headers" in remove:
        first_empty = next((n for n, line in enumerate(lines) if not line.strip()), len(lines))
        lines = lines[first_empty + 1 :]
    if "signatures" in remove:
        lines = _without_signature(lines)
    if "quotes" in remove:
        lines = _without_quotes(lines)
    return "\n".join(lines).strip()


def _without_signature(lines: list[str]) -> list[str]:
    for index in reversed(range(len(lines))):
        line = lines[index].strip()
        is_short = len(lines) - index <= _MAX_SIGNATURE_LINES
        if line == "--" or (is_short and len(line) > 2 and not line.strip("-_=*~")):
            return lines[:index]
    return lines


def _without_quotes(lines: list[str]) -> list[str]:
    remaining_lines: list[str] = []
    is_above_quote = False
    for line in reversed(lines):
        text = line.strip().lower()
        if text.startswith((">", "|")):
            is_above_quote = True
        elif not (is_above_quote and (text.endswith(_ATTRIBUTION_ENDINGS) or text.startswith("in article"))):
            remaining_lines.append(line)
            is_above_quote = is_above_quote and not text
    return remaining_lines[::-1]
