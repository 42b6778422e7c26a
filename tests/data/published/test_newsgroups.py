from collections import Counter
from pathlib import Path

import pytest

from tests.data.tars import tar, write_folder
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.published.newsgroups import CLASSES

CONFIG = DataConfig(dataset="20news")
POST = b"""From: someone@example.org (Some One)
Subject: Re: caf\xe9

In article <1@example.org> other@example.org wrote:
> Is it true?
| Really?

Yes, it is.

--
Some One
"""
FILES = {
    "20news-bydate-train/sci.space/60150": b"Subject: orbit\n\nHow high?\n",
    "20news-bydate-train/sci.space/7": POST,
    "20news-bydate-train/alt.atheism/49960": b"Subject: x\n\nWell.",
    "20news-bydate-test/rec.autos/1": b"Subject: brakes\n\nThey squeal.",
}


def test_posts_are_read_by_group_and_number_as_latin_1(tmp_path: Path) -> None:
    dataset = open_dataset(CONFIG, path=write_folder(tmp_path / "unpacked", FILES))
    train = dataset.load("train")
    (tmp_path / "20news-bydate.tar").write_bytes(tar(FILES))
    assert open_dataset(CONFIG, path=tmp_path).load("train") == train
    assert [CLASSES[label] for label in train.labels] == ["alt.atheism", "sci.space", "sci.space"]
    assert train.texts[0] == "Subject: x\n\nWell." and train.texts[2].endswith("How high?") and "café" in train.texts[1]
    assert dataset.load("test").labels == [CLASSES.index("rec.autos")]


@pytest.mark.slow
def test_the_published_archive_has_the_published_rows(published_data: Path) -> None:
    dataset = open_dataset(CONFIG, path=published_data / "20news")
    train, test = dataset.load("train"), dataset.load("test")
    assert (len(train), len(test), len(Counter(train.labels))) == (11_314, 7_532, 20)
