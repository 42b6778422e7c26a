from collections import Counter
from pathlib import Path

import pytest

from tests.data.tars import tar, write_folder
from txcls.config import DataConfig, PostPart
from txcls.data.datasets import open_dataset
from txcls.data.published.newsgroups import CLASSES, strip_post

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
QUOTES = "In article <1@example.org> other@example.org wrote:\n> Is it true?\n| Really?"
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
    assert dataset.load("test").labels == [CLASSES.index("rec.autos")] and "data.remove" in dataset.description


@pytest.mark.parametrize(
    "remove, remaining",
    [
        (("headers",), QUOTES + "\n\nYes, it is.\n\n--\nSome One"),
        (("headers", "signatures"), QUOTES + "\n\nYes, it is."),
        (("headers", "quotes"), "Yes, it is.\n\n--\nSome One"),
        (("quotes", "signatures", "headers"), "Yes, it is."),
    ],
)
def test_posts_lose_the_configured_parts(tmp_path: Path, remove: tuple[PostPart, ...], remaining: str) -> None:
    config = DataConfig(dataset="20news", remove=remove)
    dataset = open_dataset(config, path=write_folder(tmp_path, FILES))
    assert dataset.load("train").texts[1] == remaining
    assert all(part in dataset.description for part in remove)


@pytest.mark.parametrize(
    "part, post, remaining",
    [
        ("headers", "From: a\nSubject: b\n \nFirst.\n\nSecond.", "First.\n\nSecond."),
        ("quotes", "Ann writes:\n\n> One.\n> Two.\n\nNo.\n  >> Three.\nYes.", "No.\nYes."),
        ("quotes", "In article <1@x.org>\nann@x.org (Ann) writes:\n|One.\nNo.", "No."),
        ("quotes", "My brother says:\nit is raining.\nIn article 5 it is forbidden.", None),
        ("signatures", "Hello.\n-- \nAnn\nx.org\n" + "A long saying.\n" * 12, "Hello."),
        ("signatures", "Hello.\n\n----------\nAnn, x.org", "Hello."),
        ("signatures", "A list:\n-----\n" + "An item.\n" * 20 + "The end.", None),
        ("signatures", "The last paragraph\n\nis no signature.", None),
    ],
)
def test_headers_quotes_and_signatures_are_recognised(part: PostPart, post: str, remaining: str | None) -> None:
    assert strip_post(post, (part,)) == (post if remaining is None else remaining)


@pytest.mark.slow
def test_the_published_archive_has_the_published_rows(published_data: Path) -> None:
    dataset = open_dataset(CONFIG, path=published_data / "20news")
    train, test = dataset.load("train"), dataset.load("test")
    assert (len(train), len(test), len(Counter(train.labels))) == (11_314, 7_532, 20)
    stripped = [strip_post(post, ("headers", "signatures", "quotes")) for post in test.texts]
    assert 0.5 < sum(map(len, stripped)) / sum(map(len, test.texts)) < 0.8
    assert sum(not post for post in stripped) < 0.05 * len(stripped)
