import re
from collections import Counter
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import dataset_info, dataset_names, is_available, open_dataset
from txcls.data.texts import open_texts
from txcls.data.types import LabelledTexts
from txcls.errors import DataError


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TXCLS_DATA", raising=False)
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_sample_ships_with_six_classes_and_a_test_split() -> None:
    dataset = open_dataset(DataConfig())
    train, test = dataset.load("train"), dataset.load("test")
    assert len(dataset.classes) == 6 and "test" in dataset.splits
    assert min((Counter(train.labels) + Counter(test.labels)).values()) >= 60
    assert not set(train.texts) & set(test.texts)


def test_every_name_is_described_and_unknown_ones_are_refused() -> None:
    assert all(dataset_info(name).name == name and dataset_info(name).terms for name in dataset_names())
    for function in (dataset_info, is_available):
        with pytest.raises(DataError, match="no data set named 'mnist'; there are sample, who_won, ag_news"):
            function("mnist")
    with pytest.raises(DataError, match="no data set named"):
        open_dataset(DataConfig(dataset="mnist"))


def test_a_missing_published_set_says_how_to_get_it(empty_machine: Path) -> None:
    assert is_available("sample") and not is_available("ag_news")
    with pytest.raises(DataError, match=r"`txcls data fetch ag_news`.*--data PATH"):
        open_dataset(DataConfig(dataset="ag_news"))


@pytest.mark.parametrize("where", ["TXCLS_DATA", "TXCLS_CACHE"])
def test_published_set_is_found_in_data_folder_and_cache(
    empty_machine: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = empty_machine / "sets" / "ag_news"
    folder.mkdir(parents=True)
    for name in ("train.csv", "test.csv"):
        (folder / name).write_text('"1","a","b"\n', encoding="utf-8")
    monkeypatch.setenv(where, str(folder.parent))
    assert is_available("ag_news")
    assert open_dataset(DataConfig(dataset="ag_news")).load("test").texts == ["a b"]


def test_every_published_set_names_its_origin(empty_machine: Path) -> None:
    for info in map(dataset_info, dataset_names()):
        assert info.title and info.terms and info.citation
        assert info.is_shipped or info.homepage
        if not info.is_shipped:
            assert not is_available(info.name)
            opened = open_dataset if info.is_labelled else open_texts
            with pytest.raises(DataError, match=rf"^{info.name} is not on this machine: .*--data PATH"):
                opened(DataConfig(dataset=info.name))


def test_every_download_has_a_checksum_and_a_secure_address() -> None:
    for file in (file for name in dataset_names() for file in dataset_info(name).files):
        assert file.url.startswith("https://")
        assert {"md5": 32, "sha256": 64}[file.checksum.partition(":")[0]] == len(file.checksum.partition(":")[2])


@pytest.mark.parametrize(
    "name, settings, problem",
    [
        ("imdb", {"split": "date"}, "data.split = 'date' has no effect for imdb, only for huffpost"),
        ("sample", {"joiner": " - "}, "data.joiner = ' - ' has no effect for sample, only for huffpost"),
        ("table", {"remove": ["headers"]}, "data.remove = ('headers',) has no effect for table, only for 20news"),
    ],
)
def test_settings_without_effect_are_refused(
    tmp_path: Path, name: str, settings: dict[str, object], problem: str
) -> None:
    with pytest.raises(DataError, match=re.escape(problem)):
        open_dataset(DataConfig.model_validate({"dataset": name, **settings}), path=tmp_path)


def test_configurations_of_earlier_versions_load() -> None:
    old = {
        "dataset": "ag_news",
        "text_column": None,
        "label_column": None,
        "validation_fraction": 0.1,
        "split_seed": 0,
    }
    assert DataConfig.model_validate(old) == DataConfig(dataset="ag_news")


def test_table_needs_a_path() -> None:
    with pytest.raises(DataError, match="--data PATH"):
        open_dataset(DataConfig(dataset="table"))


@pytest.mark.parametrize("labels", [[0], [0, 2], [-1, 0]])
def test_labels_out_of_range_are_refused(labels: list[int]) -> None:
    with pytest.raises(ValueError, match="labels"):
        LabelledTexts(["a", "b"], labels, ("x", "y"))
