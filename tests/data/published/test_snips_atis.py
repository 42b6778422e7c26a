import gzip
from collections import Counter
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation

SNIPS = DataConfig(dataset="snips")
ATIS = DataConfig(dataset="atis")
ROWS = {
    "train/seq.in": "play jazz \nbook a table\nrate it five\n",
    "train/label": "PlayMusic\nBookRestaurant\nRateBook\n",
    "valid/seq.in": "play añejo\n",
    "valid/label": "PlayMusic\n",
    "test/seq.in": "rate this two",
    "test/label": "RateBook",
}


def write(folder: Path, *, packed: bool = False, **changed: str | bytes | None) -> Path:
    """Write the published files; `train_label=…` replaces one of them, or omits it if None."""
    replaced = {key.replace("_", "/").replace("seq", "seq.in"): content for key, content in changed.items()}
    assert set(replaced) <= set(ROWS)
    for name, content in {**ROWS, **replaced}.items():
        if content is not None:
            raw = content if isinstance(content, bytes) else content.encode()
            file = folder / (f"{name}.gz" if packed else name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(gzip.compress(raw) if packed else raw)
    return folder


@pytest.mark.parametrize("packed", [False, True])
def test_each_line_is_an_utterance_with_its_intent(tmp_path: Path, packed: bool) -> None:
    dataset = open_dataset(SNIPS, path=write(tmp_path, packed=packed))
    assert dataset.classes == ("BookRestaurant", "PlayMusic", "RateBook")
    train = dataset.load("train")
    assert (train.texts, train.labels) == (["play jazz", "book a table", "rate it five"], [1, 0, 2])
    assert (dataset.load("validation").texts, dataset.load("test").labels) == (["play añejo"], [2])
    assert dataset.description == "" and training_and_validation(dataset, SNIPS)[0] == train


def test_first_of_several_intents_counts(tmp_path: Path) -> None:
    write(
        tmp_path, train_label="flight#airfare\nairfare#flight\nairline\n", valid_label="flight\n", test_label="airline"
    )
    dataset = open_dataset(ATIS, path=tmp_path)
    assert dataset.classes == ("airfare", "airline", "flight") and dataset.load("train").labels == [2, 0, 1]


def test_an_intent_only_in_the_test_rows_is_a_class_and_named_in_the_description(tmp_path: Path) -> None:
    write(tmp_path, test_label="day_name#PlayMusic")
    dataset = open_dataset(ATIS, path=tmp_path)
    assert [dataset.classes[label] for label in dataset.load("test").labels] == ["day_name"]
    assert dataset.description.endswith(": day_name")


def test_the_published_files_have_the_published_rows(published_data: Path) -> None:
    snips, atis = (open_dataset(config, path=published_data / config.dataset) for config in (SNIPS, ATIS))
    assert [len(snips.load(split)) for split in snips.splits] == [13_084, 700, 700]
    assert [len(atis.load(split)) for split in atis.splits] == [4_478, 500, 893]
    assert len(snips.classes) == 7 and len(atis.classes) == 18
    assert atis.description == "not in the training rows, so it cannot be learned: atis_day_name"
    counts = Counter(atis.classes[label] for label in atis.load("train").labels)
    assert len(counts) == 17 and counts["atis_flight"] == 3_309 + 19 and counts["atis_aircraft"] == 70 + 1
    assert not any("#" in name for name in atis.classes)
    for dataset, shared in ((snips, 25), (atis, 10)):
        assert len(set(dataset.load("train").texts) & set(dataset.load("test").texts)) == shared


def test_windows_line_endings_and_a_missing_last_one_are_read(tmp_path: Path) -> None:
    write(tmp_path, train_label="PlayMusic\r\nBookRestaurant\r\nRateBook")
    assert open_dataset(SNIPS, path=tmp_path).load("train").labels == [1, 0, 2]
