import gzip
from collections import Counter
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.published.ag_news import CLASSES, read_rows
from txcls.errors import DataError

ROWS = '"3","Wall St. Bears","Reuters - Short-sellers\\band ""ultra-cynics""."\n"2","","No title here"\n'
CONFIG = DataConfig(dataset="ag_news")


def test_text_is_title_and_description_and_labels_count_from_zero(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(ROWS, encoding="utf-8")
    rows = read_rows(tmp_path / "train.csv")
    assert rows.texts == ['Wall St. Bears Reuters - Short-sellers\\band "ultra-cynics".', "No title here"]
    assert (rows.labels, rows.classes) == ([2, 1], CLASSES)


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz", "train_subset.csv", "train_subset.csv.gz"])
def test_folder_and_file_are_read_with_and_without_gzip(tmp_path: Path, name: str) -> None:
    raw = ROWS.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    for path in (tmp_path, tmp_path / name):
        dataset = open_dataset(CONFIG, path=path)
        assert (len(dataset.load("train")), "test" in dataset.splits, dataset.source) == (2, False, name)
        assert ("120,000" in dataset.description) == ("subset" in name)


@pytest.mark.parametrize(
    "raw, problem",
    [
        (b'"1","a","b"\n"2","c"\n', "row 2: 2 fields"),
        (b'"1","a","b"\n"5","c","d"\n', "row 2: class '5', expected 1, 2, 3 or 4"),
        (b'"1","a\nb","c"\n"2","d\xe9","e"\n', "byte 0xe9 is not utf-8"),
        (b"", "no rows"),
        (gzip.compress(ROWS.encode(), mtime=0)[:-9], "cannot read it"),
    ],
)
def test_a_damaged_file_is_refused_and_the_message_names_the_line(tmp_path: Path, raw: bytes, problem: str) -> None:
    (tmp_path / "train.csv").write_bytes(raw)
    with pytest.raises(DataError, match=rf"train\.csv.*{problem}"):
        read_rows(tmp_path / "train.csv")


def test_the_published_files_have_the_published_rows(published_data: Path) -> None:
    dataset = open_dataset(CONFIG, path=published_data / "ag_news")
    test, train = dataset.load("test"), dataset.load("train")
    assert Counter(test.labels) == dict.fromkeys(range(4), 1900)
    assert Counter(train.labels) == {0: 18_949, 1: 19_143, 2: 18_993, 3: 19_581}
    assert all(text and text == text.strip() for text in train.texts)
    assert not set(train.texts) & set(test.texts)
