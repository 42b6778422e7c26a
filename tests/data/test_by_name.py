"""Opening a data set from Python: the rows that training reads, with their class names."""

from pathlib import Path

import txcls
from txcls.config import load_preset
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation


def test_splits_are_those_of_the_preset() -> None:
    config = load_preset("sample").data
    training, validation = training_and_validation(open_dataset(config), config)
    opened = txcls.dataset("sample")
    assert (opened.train.texts, opened.validation.texts) == (training.texts, validation.texts)
    texts, labels = opened.train
    assert texts == list(training.texts) and set(labels) == set(opened.classes)
    assert not set(texts) & set(opened.validation.texts)
    assert len(opened.test.texts) > 100 and set(opened.test.labels) == set(opened.classes)
    assert opened.name == "sample" and opened.info.is_shipped


def test_a_users_table_is_opened_by_path(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("text,label\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(20)))
    opened = txcls.dataset("table", path=tmp_path / "mine.csv")
    assert len(opened.train.texts) == 17 and set(opened.validation.labels) == {"a", "b"}
    assert repr(opened) == "SplitDataset('table': 2 classes; .train, .validation)"
    assert repr(opened.train) == "Rows(17 texts, 2 classes)"


def test_published_splits_keep_their_sizes(published_data: Path) -> None:
    news = txcls.dataset("ag_news", path=published_data / "ag_news")
    assert len(news.test.texts) == 7600 and set(news.test.labels) == set(news.classes)
