import gzip
import json
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.data.tars import COMPRESS, tar, write_folder
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.published import AG_NEWS_CLASSES, HUFFPOST_CLASSES, HUFFPOST_FILE
from txcls.data.splits import training_and_validation
from txcls.data.types import Dataset
from txcls.errors import DataError


def opened(name: str, path: Path) -> Dataset:
    return open_dataset(DataConfig(dataset=name), path=path)


NEWS = '"3","Wall St. Bears","Reuters - Short-sellers\\band ""ultra-cynics""."\n"2","","No title here"\n'


@pytest.mark.parametrize("name", ["train.csv", "train.csv.gz", "train_subset.csv", "train_subset.csv.gz"])
def test_ag_news_has_title_and_description_from_folder_and_file(tmp_path: Path, name: str) -> None:
    raw = NEWS.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    for path in (tmp_path, tmp_path / name):
        dataset = opened("ag_news", path)
        rows = dataset.load("train")
        assert rows.texts == ['Wall St. Bears Reuters - Short-sellers\\band "ultra-cynics".', "No title here"]
        assert (rows.labels, rows.classes, dataset.source) == ([2, 1], AG_NEWS_CLASSES, name)
        assert ("120,000" in dataset.description) == ("subset" in name)


QUERIES = {
    "oos_val": [["who won", "oos"]],
    "val": [["say cat in french", "translate"]],
    "train": [["say dog in french ", "translate"], ["what is my balance", "balance"]],
    "oos_test": [["is it art", "oos"], ["why", "oos"]],
    "test": [["my balance please", "balance"]],
    "oos_train": [["a show", "oos"]],
}


def test_out_of_scope_queries_of_clinc150_are_separate_splits(tmp_path: Path) -> None:
    (tmp_path / "data_full.json").write_text(json.dumps(QUERIES), encoding="utf-8")
    dataset = opened("clinc150", tmp_path)
    assert dataset.classes == ("balance", "translate")
    assert (dataset.load("train").texts[0], dataset.load("train").labels) == ("say dog in french", [1, 0])
    assert (dataset.load("validation").labels, dataset.load("test").labels) == ([1], [0])
    rows = dataset.load("oos_test")
    assert (rows.texts, rows.labels, rows.classes) == (["is it art", "why"], [0, 0], ("oos",))
    assert [dataset.load(split).texts for split in ("oos_train", "oos_validation")] == [["a show"], ["who won"]]  # type: ignore[arg-type]


def item(headline: str, description: str = "", category: str = "SPORTS") -> dict[str, str]:
    return {"headline": headline, "category": category, "short_description": description, "date": "2022-09-23"}


def write_items(folder: Path, *items: Mapping[str, object]) -> Path:
    (folder / HUFFPOST_FILE).write_text("".join(json.dumps(values) + "\n" for values in items), encoding="utf-8")
    return folder / HUFFPOST_FILE


def test_huffpost_has_headline_and_description_without_repeats(tmp_path: Path) -> None:
    items = [item("Cup ", " Two "), item(" ", ""), item("a", "b"), item("a b"), item("a", "b", "TECH"), item("", "c ")]
    dataset = opened("huffpost", write_items(tmp_path, *items))
    parts = [dataset.load("train"), dataset.load("test")]
    found = {
        text: HUFFPOST_CLASSES[label] for part in parts for text, label in zip(part.texts, part.labels, strict=True)
    }
    assert found == dict.fromkeys(["Cup   Two", "a b", "c"], "SPORTS")


def test_a_tenth_of_huffpost_is_chosen_for_testing_by_checksum(tmp_path: Path) -> None:
    texts = [f"news {n} é" for n in range(500)]
    dataset = opened("huffpost", write_items(tmp_path, *(item(*text.rsplit(" ", 1)) for text in texts)))
    test = [text for text in texts if zlib.crc32(text.encode()) % 10 == 9]
    assert dataset.load("test").texts == test and len(test) > 20
    assert Counter(dataset.load("train").texts) == Counter(texts) - Counter(test)


GOOD = json.dumps(item("a")).encode()


@pytest.mark.parametrize(
    "name, file, raw, problem",
    [
        ("ag_news", "train.csv", b'"1","a","b"\n"2","c"\n', "row 2: 2 fields"),
        ("ag_news", "train.csv", b'"1","a","b"\n"5","c","d"\n', "row 2: class '5', expected 1, 2, 3 or 4"),
        ("ag_news", "train.csv", b'"1","a\nb","c"\n"2","d\xe9","e"\n', "byte 0xe9 is not utf-8"),
        ("ag_news", "train.csv", gzip.compress(NEWS.encode(), mtime=0)[:-9], "cannot read it"),
        ("huffpost", HUFFPOST_FILE, GOOD + b'\n{"headline": "b", \n', "line 2: not JSON"),
        ("huffpost", HUFFPOST_FILE, GOOD.replace(b'"a"', b"12"), "line 1: expected headline"),
        ("huffpost", HUFFPOST_FILE, GOOD.replace(b"SPORTS", b"GOSSIP"), "line 1: .* one of the 42 of v3.*GOSSIP"),
    ],
)
def test_a_damaged_file_is_refused_and_the_message_names_the_line(
    tmp_path: Path, name: str, file: str, raw: bytes, problem: str
) -> None:
    (tmp_path / file).write_bytes(raw)
    with pytest.raises(DataError, match=rf"{file}.*{problem}"):
        opened(name, tmp_path).load("train")


REVIEWS = {
    "aclImdb/README": b"\xff not a review",
    "aclImdb/train/pos/10_9.txt": b"Ten out of ten.<br /><br />",
    "aclImdb/train/pos/2_8.txt": " Très bien ".encode(),
    "aclImdb/train/neg/0_1.txt": b"Dull.",
    "aclImdb/train/unsup/0_0.txt": b"No label.",
    "aclImdb/train/urls_pos.txt": b"http://example.org",
    "aclImdb/test/neg/0_2.txt": b"Duller.",
    "aclImdb/test/pos/0_10.txt": b"Fine.",
}


def test_reviews_are_read_by_class_and_number_from_archive_and_folder(tmp_path: Path) -> None:
    write_folder(tmp_path / "unpacked", REVIEWS)
    (tmp_path / "packed").mkdir()
    archive = tmp_path / "packed" / "aclImdb_v1.tar.gz"
    archive.write_bytes(COMPRESS[".tar.gz"](tar(dict(reversed(REVIEWS.items())))))
    for path in (tmp_path / "unpacked", tmp_path / "unpacked" / "aclImdb", archive, archive.parent):
        dataset = opened("imdb", path)
        train, test = dataset.load("train"), dataset.load("test")
        assert train.texts == ["Dull.", "Très bien", "Ten out of ten.<br /><br />"] and train.labels == [0, 1, 1]
        assert (test.texts, test.labels, test.classes) == (["Duller.", "Fine."], [0, 1], ("negative", "positive"))


UTTERANCES = {
    "train/seq.in": "play jazz \nbook a table\nrate it five\n",
    "train/label": "PlayMusic\nBookRestaurant\nRateBook\n",
    "valid/seq.in": "play añejo\n",
    "valid/label": "PlayMusic\n",
    "test/seq.in": "rate this two",
    "test/label": "RateBook",
}


def write_utterances(folder: Path, *, is_packed: bool = False, **changed: str) -> Path:
    """Write the published files; `train_label=…` replaces one of them."""
    replaced = {key.replace("_", "/"): content for key, content in changed.items()}
    files = {name: content.encode() for name, content in (UTTERANCES | replaced).items()}
    if is_packed:
        files = {f"{name}.gz": gzip.compress(raw) for name, raw in files.items()}
    return write_folder(folder, files)


@pytest.mark.parametrize("is_packed, end", [(False, "\n"), (True, "\n"), (False, "\r\n")])
def test_each_line_of_snips_is_an_utterance_with_its_intent(tmp_path: Path, is_packed: bool, end: str) -> None:
    label = UTTERANCES["train/label"].replace("\n", end)
    dataset = opened("snips", write_utterances(tmp_path, is_packed=is_packed, train_label=label))
    assert dataset.classes == ("BookRestaurant", "PlayMusic", "RateBook")
    train = dataset.load("train")
    assert (train.texts, train.labels) == (["play jazz", "book a table", "rate it five"], [1, 0, 2])
    assert (dataset.load("validation").texts, dataset.load("test").labels) == (["play añejo"], [2])
    assert dataset.description == "" and training_and_validation(dataset, DataConfig(dataset="snips"))[0] == train


def test_the_first_of_several_intents_counts_and_one_only_in_the_test_rows_is_named(tmp_path: Path) -> None:
    labels = {"train_label": "flight#airfare\nairfare#flight\nairline\n", "valid_label": "flight\n"}
    dataset = opened("atis", write_utterances(tmp_path, **labels, test_label="day_name#airline"))
    assert dataset.classes == ("airfare", "airline", "day_name", "flight")
    assert (dataset.load("train").labels, dataset.load("test").labels) == ([3, 0, 1], [2])
    assert dataset.description.endswith(": day_name")


def test_the_published_files_have_the_published_rows(published_data: Path) -> None:
    news = opened("ag_news", published_data / "ag_news")
    test, train = news.load("test"), news.load("train")
    assert Counter(test.labels) == dict.fromkeys(range(4), 1900)
    assert Counter(train.labels) == {0: 18_949, 1: 19_143, 2: 18_993, 3: 19_581}
    assert not set(train.texts) & set(test.texts) and all(text and text == text.strip() for text in train.texts)
    for name, n_oos in (("data_full.json.gz", 100), ("data_oos_plus.json.gz", 250)):
        queries = opened("clinc150", published_data / "clinc150" / name)
        assert [len(queries.load(split)) for split in queries.splits] == [15_000, 3_000, 4_500, n_oos, 100, 1_000]
        assert len(queries.classes) == 150 and set(Counter(queries.load("train").labels).values()) == {100}
    snips, atis = (opened(name, published_data / name) for name in ("snips", "atis"))
    assert [len(snips.load(split)) for split in snips.splits] == [13_084, 700, 700] and len(snips.classes) == 7
    assert [len(atis.load(split)) for split in atis.splits] == [4_478, 500, 893] and len(atis.classes) == 18
    assert atis.description == "not in the training rows, so it cannot be learned: atis_day_name"
    counts = Counter(atis.classes[label] for label in atis.load("train").labels)
    assert len(counts) == 17 and counts["atis_flight"] == 3_309 + 19 and counts["atis_aircraft"] == 70 + 1
    for dataset, shared in ((snips, 25), (atis, 10)):
        assert len(set(dataset.load("train").texts) & set(dataset.load("test").texts)) == shared
