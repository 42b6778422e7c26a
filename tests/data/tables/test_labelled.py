"""The labelled rows of a table: rows without a text or label are left out and counted."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.data.tables.test_table import FORMATS, TWO
from txcls.config import DataConfig
from txcls.data.classes import label_name, rows_in_classes
from txcls.data.columns import Guess
from txcls.data.datasets import open_dataset
from txcls.data.from_python import rows_from_python
from txcls.data.tables.labelled import TableRows, labelled_rows, notes_before_training, read_labelled
from txcls.data.tables.table import Table
from txcls.data.types import Dataset, LabelledTexts
from txcls.errors import DataError


def open_file(path: Path, content: str | bytes | None = None, **columns: str) -> Dataset:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_dataset(DataConfig(dataset="table", **columns), path=path)


def rows_of(dataset: Dataset) -> list[tuple[str, str]]:
    rows = dataset.load("train")
    return [(text, rows.classes[label]) for text, label in zip(rows.texts, rows.labels, strict=True)]


@pytest.mark.parametrize("name, content", FORMATS)
def test_a_preset_reads_the_same_rows_from_every_format(tmp_path: Path, name: str, content: bytes) -> None:
    dataset = open_file(tmp_path / name, content)
    assert rows_of(dataset) == TWO
    assert (dataset.classes, dataset.splits, dataset.source) == (("neg", "pos"), ("train",), name)


# Rows for `train FILE`


def labelled(path: Path, lines: list[dict[str, object]]) -> TableRows:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return labelled_rows(Table(path), Guess("t", "y", "", "", is_guessed=False))


def test_rows_without_text_or_label_are_left_out_and_counted(tmp_path: Path) -> None:
    texts, labels = ["one", None, "  ", "four", 5, 6.0], ["a", "a", "b", "", 1, 1.0]
    rows = labelled(tmp_path / "t.jsonl", [{"t": text, "y": label} for text, label in zip(texts, labels, strict=True)])
    assert rows.labelled == LabelledTexts(["one", "5", "6"], [1, 0, 0], ("1", "a"))
    assert rows.numbers == [1, 5, 6]
    assert rows.notes == (
        "2 rows without a text were left out (the first is line 2).",
        "1 row without a label was left out (line 4).",
    )
    with pytest.raises(DataError, match="no row has both a text in column 't' and a label in column 'y'"):
        labelled(tmp_path / "t.jsonl", [{"t": "a"}, {"y": "b"}])
    with pytest.raises(DataError, match=r"line 1: column 't' contains '\['a'\]' \(list\), expected a text"):
        labelled(tmp_path / "t.jsonl", [{"t": ["a"], "y": "b"}])


def test_class_names_are_the_same_from_files_and_python(tmp_path: Path) -> None:
    values: list[object] = [10, 9.0, "b", True, "10", "9.0", " a ", 1.5]
    rows = labelled(tmp_path / "t.jsonl", [{"t": "x", "y": value} for value in values])
    assert rows.labelled == rows_from_python(["x"] * len(values), values)
    assert rows.labelled.classes == ("9", "10", "1.5", "a", "b", "true")
    (tmp_path / "t.csv").write_text("text,label\na,1\nb,1.0\nc,2.0\n", encoding="utf-8")
    rows, _ = read_labelled(tmp_path / "t.csv")
    assert rows.labelled.classes == ("1", "2")
    assert rows.notes == ("Labels written in two ways are one class: '1' and '1.0'.",)
    assert label_name(pd.Timestamp("2020-01-31")) == "2020-01-31" and label_name(float("nan")) == label_name(None) == ""


def test_rows_of_unknown_classes_are_left_out() -> None:
    rows = LabelledTexts(["a", "b", "c", "d"], [0, 1, 2, 3], ("x", "new", "z", "Y"))
    known_rows, indices = rows_in_classes(rows, ("z", "x", "y"))
    assert known_rows == LabelledTexts(["a", "c"], [1, 0], ("z", "x", "y")) and list(indices) == [0, 2]
    assert rows_in_classes(rows, ("z", "x", "y"), loosely=True)[0].labels == [1, 0, 2]
    old = LabelledTexts(["a"], [0], ("4",))
    assert rows_in_classes(old, ("3.0", "4.0"), loosely=True)[0].labels == [1]


def test_variants_of_a_label_are_merged_and_placeholders_dropped_on_request(tmp_path: Path) -> None:
    names = ["Ham", "ham", "ham ", "SPAM", "spam", "spam", "n/a", "?", "NULL", "Ham"]
    lines = [{"text": f"message {n}", "label": name} for n, name in enumerate(names)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows, _ = read_labelled(tmp_path / "t.jsonl")
    assert len(rows.labelled.classes) == 7
    variants, missing = notes_before_training(rows.labelled)
    assert "'Ham' (2) / 'ham' (2), 'spam' (2) / 'SPAM' (1)" in variants and "--merge-labels" in variants
    assert all(f"'{name}' (1)" in missing for name in ("n/a", "?", "NULL"))
    merged, _ = read_labelled(tmp_path / "t.jsonl", merge=True)
    assert merged.labelled.classes == ("Ham", "spam") and merged.numbers == [1, 2, 3, 4, 5, 6, 10]
    assert merged.labelled.labels == [0, 0, 0, 1, 1, 1, 0] and "are one class" in merged.notes[0]


def test_two_text_columns_are_joined_and_only_visible_text_of_html_is_used(tmp_path: Path) -> None:
    head = "<html><head><style>p {margin: 0}</style></head>"
    page = head + "<body><p>Hello&nbsp;<b>you</b>,<br>bye &amp; thanks %s</p></body>"
    lines = [{"mail": {"subject": f"my order {n}", "body": page % n}, "queue": "ab"[n % 2]} for n in range(20)]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows, guess = read_labelled(tmp_path / "t.jsonl")
    assert guess.text_column == "mail.subject + mail.body" and guess.strip_html and guess.label_column == "queue"
    assert rows.labelled.texts[3] == "my order 3\nHello you,\nbye & thanks 3"
    assert any("HTML" in sentence for sentence in guess.sentences)
    again, _ = read_labelled(tmp_path / "t.jsonl", guess.config)
    assert again.labelled == rows.labelled
    unstripped, _ = read_labelled(tmp_path / "t.jsonl", guess.config.model_copy(update={"strip_html": False}))
    assert "<style>" in unstripped.labelled.texts[3]
