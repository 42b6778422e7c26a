import gzip
from pathlib import Path

import pytest

from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.data.splits import training_and_validation
from txcls.data.unlabelled_texts import open_texts

TEXT = "One line\nand another.\r\n\r\n  \nA second paragraph.\n\n\nThe third\n"


def text_config(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"dataset": "text", **settings})


@pytest.mark.parametrize(
    "unit, texts",
    [
        ("lines", ["One line", "and another.", "A second paragraph.", "The third"]),
        ("paragraphs", ["One line and another.", "A second paragraph.", "The third"]),
    ],
)
def test_a_file_is_split_into_lines_or_paragraphs(tmp_path: Path, unit: str, texts: list[str]) -> None:
    (tmp_path / "book.txt").write_bytes(TEXT.encode())
    split = open_texts(text_config(unit=unit), path=tmp_path / "book.txt")
    assert [*split.training, *split.validation] == texts and split.validation == texts[-1:]
    assert (split.source, split.info.name) == ("book.txt", "text")


def test_a_folder_is_read_in_order_of_names_and_documents_are_not_split(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "2.TXT").write_text("two\ntwo", encoding="utf-8")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfone\n"))
    (tmp_path / "c.txt").write_text("three\n\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("not asked for", encoding="utf-8")
    opened = open_texts(text_config(unit="documents", validation_fraction=0.6), path=tmp_path)
    assert (opened.training, opened.validation) == (["one"], ["two\ntwo", "three"])


def test_labelled_sets_give_training_rows_and_never_test_rows() -> None:
    config = DataConfig(validation_fraction=0.2)
    split, dataset = open_texts(config), open_dataset(config)
    train, validation = training_and_validation(dataset, config)
    assert (split.training, split.validation) == (train.texts, validation.texts)
    assert not {*split.training, *split.validation} & set(dataset.load("test").texts)


@pytest.fixture
def news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with 400 rows of news in AG News' format."""
    rows = (f'"{n % 4 + 1}","Headline {n}","{"Something long happened here. " * 40}"\n' for n in range(400))
    (tmp_path / "ag_news").mkdir()
    (tmp_path / "ag_news" / "train.csv").write_text("".join(rows), encoding="utf-8")
    (tmp_path / "ag_news" / "test.csv").write_text('"1","Test","Unread"\n', encoding="utf-8")
    monkeypatch.setenv("TXCLS_DATA", str(tmp_path))
    return tmp_path


def mixture_config(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"dataset": "mixture", "sources": ["ag_news", "sample"], **settings})


@pytest.mark.parametrize("rule", ["hash", "stratified"])
def test_a_mixture_reads_only_training_texts(news: Path, rule: str) -> None:
    split = open_texts(mixture_config(validation_fraction=0.2, validation=rule))
    allowed: list[str] = []
    for name in ("ag_news", "sample"):
        source = DataConfig.model_validate({"dataset": name, "validation_fraction": 0.2, "validation": rule})
        dataset = open_dataset(source)
        train, validation = training_and_validation(dataset, source)
        allowed += train.texts
        held_out = {*validation.texts, *dataset.load("test").texts} - {*train.texts}
        assert held_out and not held_out & {*split.training, *split.validation}, name
    assert sorted([*split.training, *split.validation]) == sorted(allowed)
    assert not {*split.training} & {*split.validation}
    assert 5 < len(split.validation) < 20, "about one in a hundred"
    assert "AG News" in split.info.title and "research" in split.info.terms
    assert split.rows == {"ag_news": 400, "sample": len(open_dataset(DataConfig()).load("train"))}
