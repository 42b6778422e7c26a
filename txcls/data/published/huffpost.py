"""News Category Dataset v3 (Misra 2022): HuffPost headlines and descriptions from 42 sections, as JSON Lines."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from txcls.config import DataConfig
from txcls.data.files import first_file, json_lines, open_text
from txcls.data.types import Dataset, DatasetInfo, LabelledTexts, SplitName
from txcls.errors import DataError, sanitize

FILE = "News_Category_Dataset_v3.json"
CLASSES = (
    *("ARTS", "ARTS & CULTURE", "BLACK VOICES", "BUSINESS", "COLLEGE", "COMEDY", "CRIME", "CULTURE & ARTS", "DIVORCE"),
    *("EDUCATION", "ENTERTAINMENT", "ENVIRONMENT", "FIFTY", "FOOD & DRINK", "GOOD NEWS", "GREEN", "HEALTHY LIVING"),
    *("HOME & LIVING", "IMPACT", "LATINO VOICES", "MEDIA", "MONEY", "PARENTING", "PARENTS", "POLITICS", "QUEER VOICES"),
    *("RELIGION", "SCIENCE", "SPORTS", "STYLE", "STYLE & BEAUTY", "TASTE", "TECH", "THE WORLDPOST", "TRAVEL"),
    *("U.S. NEWS", "WEDDINGS", "WEIRD NEWS", "WELLNESS", "WOMEN", "WORLD NEWS", "WORLDPOST"),
)

_HOMEPAGE = "https://www.kaggle.com/datasets/rmisra/news-category-dataset"

INFO = DatasetInfo(
    name="huffpost",
    title="HuffPost: headline and description of news articles in 42 sections",
    homepage=_HOMEPAGE,
    terms="CC BY 4.0 according to the publisher; headlines belong to HuffPost",
    citation="R. Misra: News Category Dataset, arXiv:2209.11429, 2022",
    by_hand=f"downloading it requires a login. Download {FILE} from {_HOMEPAGE} and give its location with --data PATH "
    "(the file, plain or gzipped, or its folder)",
)


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One row of the file."""

    key: str
    """Headline and description, separated by a space and stripped; determines duplicates and the standard split."""
    text: str
    """The same, but separated by the configured joiner."""
    label: int

    @property
    def is_test(self) -> bool:
        """Whether the row is a test row."""
        return zlib.crc32(self.key.encode("utf-8", "surrogatepass")) % 10 == 9


def open_huffpost(config: DataConfig, path: Path) -> Dataset:
    """Open the published file, plain or gzipped, or its folder.

    There is no published split. The test rows are those with `zlib.crc32(key) % 10 == 9`.

    Raises:
        DataError: there is no such file.
    """
    file = path if path.is_file() else first_file(path, (FILE, f"{FILE}.gz"))
    if file is None:
        raise DataError(f"{path}: expected {FILE} or {FILE}.gz, or its folder; {INFO.by_hand}")

    @cache
    def rows() -> dict[SplitName, LabelledTexts]:
        items = read_items(file, joiner=config.joiner)
        return {
            "train": _rows([item for item in items if not item.is_test]),
            "test": _rows([item for item in items if item.is_test]),
        }

    return Dataset(
        info=INFO,
        classes=CLASSES,
        source=file.name,
        splits=("train", "test"),
        read=lambda split: rows()[split],
        description="no split is published; the test rows are a tenth, selected by a checksum of their text",
    )


def read_items(path: Path, *, joiner: str = " ") -> list[NewsItem]:
    """Read the rows with text, without duplicates, in the published order.

    Raises:
        DataError: the file cannot be read, or a line is not in the published format.
    """
    labels = {name: index for index, name in enumerate(CLASSES)}
    items: dict[str, NewsItem] = {}
    with open_text(path, newline="\n") as file:
        for line, row in json_lines(file, path):
            try:
                parts = row["headline"], row["short_description"]
                key, label = " ".join(parts).strip(), labels[row["category"]]
            except (TypeError, ValueError, KeyError, AttributeError) as error:
                raise DataError(
                    f"{path}, line {line}: expected headline and short_description as strings, and as category one of "
                    f"the {len(CLASSES)} of v3; got '{sanitize(row, limit=80)}' ({type(error).__name__}: {error!s:.60})"
                ) from None
            if key and key not in items:
                text = joiner.join(part for part in parts if part.strip()).strip()
                items[key] = NewsItem(key, text, label)
    if not items:
        raise DataError(f"{path}: no rows")
    return list(items.values())


def _rows(items: Sequence[NewsItem]) -> LabelledTexts:
    return LabelledTexts([item.text for item in items], [item.label for item in items], CLASSES)
