from pathlib import Path

import pytest

import txcls
from txcls.config import DataConfig, load_preset
from txcls.data.datasets import dataset_info, dataset_names, is_available, open_dataset
from txcls.data.splits import training_and_validation
from txcls.errors import DataError


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TXCLS_DATA", raising=False)
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_error_for_a_missing_published_set_says_how_to_get_it(empty_machine: Path) -> None:
    assert is_available("sample") and not is_available("ag_news")
    with pytest.raises(DataError, match=r"`txcls data fetch ag_news`.*--data PATH"):
        open_dataset(DataConfig(dataset="ag_news"))


@pytest.mark.parametrize("variable", ["TXCLS_DATA", "TXCLS_CACHE"])
def test_a_published_set_is_found_in_the_data_folder_and_the_cache(
    empty_machine: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = empty_machine / "sets" / "ag_news"
    folder.mkdir(parents=True)
    for name in ("train.csv", "test.csv"):
        (folder / name).write_text('"1","a","b"\n', encoding="utf-8")
    monkeypatch.setenv(variable, str(folder.parent))
    assert is_available("ag_news")
    assert open_dataset(DataConfig(dataset="ag_news")).load("test").texts == ["a b"]


def test_every_download_has_a_checksum_and_an_https_url() -> None:
    for file in (file for name in dataset_names() for file in dataset_info(name).files):
        assert file.url.startswith("https://")
        assert {"md5": 32, "sha256": 64}[file.checksum.partition(":")[0]] == len(file.checksum.partition(":")[2])


def test_splits_are_those_of_the_preset() -> None:
    config = load_preset("sample").data
    training, validation = training_and_validation(open_dataset(config), config)
    sample = txcls.dataset("sample")
    assert (sample.train.texts, sample.validation.texts) == (training.texts, validation.texts)
    texts, labels = sample.train
    assert texts == list(training.texts) and set(labels) == set(sample.classes)
    assert not set(texts) & set(sample.validation.texts)
    assert len(sample.test.texts) > 100 and set(sample.test.labels) == set(sample.classes)
    assert sample.name == "sample" and sample.info.is_shipped
