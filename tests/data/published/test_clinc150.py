import json
from collections import Counter
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import open_dataset

CONFIG = DataConfig(dataset="clinc150")
ROWS = {
    "oos_val": [["who won", "oos"]],
    "val": [["say cat in french", "translate"]],
    "train": [["say dog in french ", "translate"], ["what is my balance", "balance"]],
    "oos_test": [["is it art", "oos"], ["why", "oos"]],
    "test": [["my balance please", "balance"]],
    "oos_train": [["a show", "oos"]],
}


def test_published_splits_have_the_classes_of_the_training_rows(tmp_path: Path) -> None:
    (tmp_path / "data_full.json").write_text(json.dumps(ROWS), encoding="utf-8")
    dataset = open_dataset(CONFIG, path=tmp_path)
    assert dataset.classes == ("balance", "translate")
    assert (dataset.load("train").texts[0], dataset.load("train").labels) == ("say dog in french", [1, 0])
    assert (dataset.load("validation").labels, dataset.load("test").labels) == ([1], [0])


def test_out_of_scope_queries_are_separate_splits(tmp_path: Path) -> None:
    (tmp_path / "data_full.json").write_text(json.dumps(ROWS), encoding="utf-8")
    dataset = open_dataset(CONFIG, path=tmp_path)
    rows = dataset.load("oos_test")
    assert (rows.texts, rows.labels, rows.classes) == (["is it art", "why"], [0, 0], ("oos",))
    assert [dataset.load(split).texts for split in ("oos_train", "oos_validation")] == [["a show"], ["who won"]]  # type: ignore[arg-type]
    assert "oos" not in dataset.classes and "2 more test queries" in dataset.description


@pytest.mark.parametrize("name, oos_train", [("data_full.json.gz", 100), ("data_oos_plus.json.gz", 250)])
def test_the_published_files_have_the_published_rows(published_data: Path, name: str, oos_train: int) -> None:
    dataset = open_dataset(CONFIG, path=published_data / "clinc150" / name)
    rows = {split: len(dataset.load(split)) for split in dataset.splits}
    assert rows == {
        "train": 15_000,
        "validation": 3_000,
        "test": 4_500,
        "oos_train": oos_train,
        "oos_validation": 100,
        "oos_test": 1_000,
    }
    assert len(dataset.classes) == 150 and set(Counter(dataset.load("train").labels).values()) == {100}
