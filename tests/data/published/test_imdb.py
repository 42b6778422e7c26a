from collections import Counter
from pathlib import Path

import pytest

from tests.data.tars import COMPRESS, tar, write_folder
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset

CONFIG = DataConfig(dataset="imdb")
FILES = {
    "aclImdb/README": b"\xff not a review",
    "aclImdb/train/pos/10_9.txt": b"Ten out of ten.<br /><br />",
    "aclImdb/train/pos/2_8.txt": " Très bien ".encode(),
    "aclImdb/train/neg/0_1.txt": b"Dull.",
    "aclImdb/train/unsup/0_0.txt": b"No label.",
    "aclImdb/train/urls_pos.txt": b"http://example.org",
    "aclImdb/test/neg/0_2.txt": b"Duller.",
    "aclImdb/test/pos/0_10.txt": b"Fine.",
}


def test_reviews_are_read_in_the_official_split_by_class_and_number(tmp_path: Path) -> None:
    dataset = open_dataset(CONFIG, path=write_folder(tmp_path, FILES))
    train, test = dataset.load("train"), dataset.load("test")
    assert train.texts == ["Dull.", "Très bien", "Ten out of ten.<br /><br />"] and train.labels == [0, 1, 1]
    assert (test.texts, test.labels, test.classes) == (["Duller.", "Fine."], [0, 1], ("negative", "positive"))


def test_archive_and_folder_give_the_same_rows_in_the_same_order(tmp_path: Path) -> None:
    write_folder(tmp_path / "unpacked", FILES)
    (tmp_path / "packed").mkdir()
    archive = tmp_path / "packed" / "aclImdb_v1.tar.gz"
    archive.write_bytes(COMPRESS[".tar.gz"](tar(dict(reversed(FILES.items())))))
    paths = [tmp_path / "unpacked", tmp_path / "unpacked" / "aclImdb", archive, archive.parent]
    first, *others = [open_dataset(CONFIG, path=path).load("train") for path in paths]
    assert all(rows == first for rows in others)


@pytest.mark.slow
def test_the_published_archive_has_the_published_rows(published_data: Path) -> None:
    dataset = open_dataset(CONFIG, path=published_data / "imdb")
    for split, repeats in (("train", 96), ("test", 199)):
        rows = dataset.load(split)  # type: ignore[arg-type]
        assert Counter(rows.labels) == {0: 12_500, 1: 12_500}
        assert len(rows) - len(set(rows.texts)) == repeats
