"""A data set from Python: the rows that training reads, with the names of their classes."""

from pathlib import Path

import pytest

import txcls
from txcls.config import load_preset
from txcls.data.by_name import Rows
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.errors import DataError


def test_splits_are_those_of_the_preset_of_that_name() -> None:
    config = load_preset("sample").data
    training, validation = training_and_validation(open_dataset(config), config)
    found = txcls.dataset("sample")
    assert found.train == Rows.of(training) and found.validation == Rows.of(validation)
    texts, labels = found.train
    assert texts == list(training.texts) and set(labels) == set(found.classes)
    assert not set(texts) & set(found.validation.texts)
    assert found.name == "sample" and found.info.is_shipped


def test_test_rows_have_the_names_of_their_classes() -> None:
    found = txcls.dataset("sample")
    dataset = open_dataset(load_preset("sample").data)
    if not dataset.has_test:
        with pytest.raises(DataError, match="no test split"):
            found.test  # noqa: B018
        return
    assert found.test == Rows.of(dataset.load("test"))


def test_a_table_of_ones_own_is_opened_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("text,label\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(20)))
    found = txcls.dataset("table", path=tmp_path / "mine.csv")
    assert len(found.train.texts) == 17 and set(found.validation.labels) == {"a", "b"}
    assert repr(found) == "SplitDataset('table': 2 classes; .train, .validation)"
    assert repr(found.train) == "Rows(17 texts, 2 classes)"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(DataError, match="no data set named 'nope'; there are sample, who_won, ag_news"):
        txcls.dataset("nope")


def test_published_splits_keep_their_sizes(published_data: Path) -> None:
    news = txcls.dataset("ag_news", path=published_data / "ag_news")
    assert len(news.test.texts) == 7600 and set(news.test.labels) == set(news.classes)
