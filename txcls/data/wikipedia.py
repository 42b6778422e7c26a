"""Wikipedia articles as WikiExtractor writes them, between `<doc id="…" url="…" title="…">` and `</doc>`.

Reads any extraction in this format, one article at a time: a file or a folder of files, plain or compressed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from txcls.data.files import files_in, open_text
from txcls.data.hashes import hashed_share
from txcls.data.types import DatasetInfo
from txcls.errors import DataError, sanitize

Split = Literal["training", "validation", "test"]

INFO = DatasetInfo(
    name="wikipedia",
    title="Wikipedia: articles without labels, for pre-training",
    homepage="https://en.wikipedia.org/",
    terms="CC BY-SA, with attribution to the articles' authors",
    by_hand="extract the text of a dump from https://dumps.wikimedia.org/ with WikiExtractor "
    "(https://github.com/attardi/wikiextractor) and give the folder with --data PATH; any extraction works that has "
    'its articles between <doc id="…" url="…" title="…"> and </doc>',
    is_labelled=False,
)

MIN_WORDS = 20
"""Articles with fewer words after the title are left out; most have only headings, since lists were not extracted."""
VALIDATION_SHARE = TEST_SHARE = 0.01
"""Fraction of the articles for validation, and for testing."""

_NOT_TEXT = (".json", ".csv", ".tsv", ".html", ".xml", ".md", ".py", ".log", ".pdf", ".zip", ".tar", ".npy")
_START = re.compile(r'<doc id="[^"\n]*".* title="(.*)"[^"\n]*>')
_END = "</doc>"


@dataclass(frozen=True, slots=True)
class Article:
    """An article; `text` is the title, then the paragraphs and headings, one per line."""

    title: str
    text: str

    @property
    def split(self) -> Split:
        """The split it belongs to, which depends only on the title and is the same in every extraction and dump."""
        share = hashed_share(self.title, salt="wikipedia")
        if share < TEST_SHARE:
            return "test"
        return "validation" if share < TEST_SHARE + VALIDATION_SHARE else "training"


def articles(path: Path) -> Iterator[Article]:
    """Yield the articles of a file, or of all files in a folder at any depth, in order of file name.

    Raises:
        DataError: there is no such file, or a file cannot be read or is not in WikiExtractor's format.
    """

    def is_wanted(file: Path) -> bool:
        return not file.name.startswith(".") and file.suffix.lower() not in _NOT_TEXT

    for file in files_in(path, is_wanted=is_wanted, hint=INFO.by_hand):
        yield from _read_articles(file)


def _read_articles(file: Path) -> Iterator[Article]:
    title, begun = "", 0  # title and number of the first line of the current article
    lines: list[str] = []
    with open_text(file, newline="\n") as source:
        for number, line in enumerate(map(str.rstrip, source), start=1):
            where = f"{file}, line {number}"
            if start := _START.fullmatch(line):
                if begun:
                    raise DataError(f"{where}: an article begins before the article from line {begun} ends with {_END}")
                title, begun, lines = start[1], number, []
            elif not begun:
                if line:
                    raise DataError(
                        f"{where}: {sanitize(line, limit=60)!r} is outside any article; expected a line "
                        '<doc id="…" url="…" title="…"> before it, as WikiExtractor writes without --json'
                    )
            elif line == _END:
                if article := _article(title, lines):
                    yield article
                begun = 0
            else:
                lines.append(line)
    if begun:
        raise DataError(f"{file}, line {begun}: the article that begins here has no {_END}; create the file again")


def _article(title: str, lines: list[str]) -> Article | None:
    """The article with these lines; None if it has fewer than MIN_WORDS words."""
    body = [line for line in lines if line]
    if body and body[0] == title:
        body = body[1:]
    if sum(len(line.split()) for line in body) < MIN_WORDS:
        return None
    return Article(title, "\n".join((title, *body)))
