import gzip
import json
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.published.huffpost import CLASSES, FILE, read_items
from txcls.errors import DataError

CONFIG = DataConfig(dataset="huffpost")


def row(headline: str, description: str = "", category: str = "SPORTS") -> dict[str, str]:
    """A row in the published format."""
    return {
        "link": "",
        "headline": headline,
        "category": category,
        "short_description": description,
        "authors": "",
        "date": "2022-09-23",
    }


def write(folder: Path, *rows: Mapping[str, object]) -> Path:
    (folder / FILE).write_text("".join(json.dumps(values) + "\n" for values in rows), encoding="utf-8")
    return folder / FILE


def test_text_is_headline_and_description_stripped(tmp_path: Path) -> None:
    items = read_items(write(tmp_path, row("Cup Final ", " Two goals"), row("Only This"), row("", "Nor a headline ")))
    assert [item.text for item in items] == ["Cup Final   Two goals", "Only This", "Nor a headline"]


def test_rows_without_text_and_repeats_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, row("a", "b"), row(" ", ""), row("a b"), row("a", "b", "TECH"), row("c"))
    assert [(item.text, CLASSES[item.label]) for item in read_items(path)] == [("a b", "SPORTS"), ("c", "SPORTS")]


def test_a_tenth_of_the_rows_is_chosen_for_testing_by_checksum(tmp_path: Path) -> None:
    rows = [row(f"news {i}", "é") for i in range(500)]
    dataset = open_dataset(CONFIG, path=write(tmp_path, *rows))
    test = [f"news {i} é" for i in range(500) if zlib.crc32(f"news {i} é".encode()) % 10 == 9]
    assert dataset.load("test").texts == test and len(test) > 20
    assert Counter(dataset.load("train").texts) == Counter(f"news {i} é" for i in range(500)) - Counter(test)
    assert (dataset.classes, dataset.splits, dataset.source) == (CLASSES, ("train", "test"), FILE)


GOOD = json.dumps(row("a")).encode()


@pytest.mark.parametrize(
    "raw, problem",
    [
        (GOOD + b'\n{"headline": "b", \n', "line 2: not JSON"),
        (b"[1, 2]\n", "line 1: expected headline"),
        (GOOD.replace(b'"a"', b"12"), "line 1: expected headline"),
        (GOOD.replace(b"SPORTS", b"GOSSIP"), "line 1: .* one of the 42 of v3.*GOSSIP"),
        (json.dumps(row(" ")).encode(), "no rows"),
        (gzip.compress(GOOD, mtime=0)[:-6], "cannot read it"),
    ],
)
def test_a_damaged_file_is_refused_and_the_message_names_the_line(tmp_path: Path, raw: bytes, problem: str) -> None:
    (tmp_path / FILE).write_bytes(raw)
    with pytest.raises(DataError, match=rf"Dataset_v3\.json.*{problem}"):
        open_dataset(CONFIG, path=tmp_path).load("train")


@pytest.mark.slow
def test_published_rows_are_split_as_in_the_published_results(published_data: Path) -> None:
    dataset = open_dataset(CONFIG, path=published_data / "huffpost")
    train, test = dataset.load("train"), dataset.load("test")
    assert (len(train), len(test)) == (188_372, 20_665)
    assert len({*train.texts, *test.texts}) == 209_037 and "" not in train.texts
    assert set(train.labels) == set(test.labels) == set(range(42))
    assert Counter(train.labels + test.labels).most_common(1)[0][0] == CLASSES.index("POLITICS")  # type: ignore[operator]
