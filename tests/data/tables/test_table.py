import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from txcls.config import DataConfig
from txcls.data.datasets import Dataset, open_dataset
from txcls.data.splits import stratified_split
from txcls.data.tables.table import find_text_column
from txcls.errors import DataError


def open_file(path: Path, content: str | bytes | None = None, **columns: str) -> Dataset:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_dataset(DataConfig(dataset="table", **columns), path=path)


def rows_of(dataset: Dataset) -> list[tuple[str, str]]:
    rows = dataset.load("train")
    return [(text, rows.classes[label]) for text, label in zip(rows.texts, rows.labels, strict=True)]


TWO = [("good, really", "pos"), ('bad "film"\nhere', "neg")]
QUOTED = 'Text,label\n"good, really",pos\n"bad ""film""\nhere",neg\n'


@pytest.mark.parametrize(
    "name, content",
    [
        ("t.csv", QUOTED),
        ("t.csv", "\ufeff" + QUOTED),
        ("t.csv", QUOTED.encode("utf-16")),
        ("t.csv", QUOTED.replace("\n", "\r\n").replace("film\"\"\r\n", 'film""\n')),
        ("t.CSV", QUOTED),
        ("t.csv.gz", gzip.compress(QUOTED.encode(), mtime=0)),
        ("t.csv", QUOTED.replace("Text,", "Text;").replace('",', '";')),
        ("t.csv", 'id|Text|label\n1|"good, really"|pos\n2|"bad ""film""\nhere"|neg\n'),
        ("t.tsv", QUOTED.replace("Text,", "Text\t").replace('",', '"\t')),
        ("t.jsonl", "\n".join(json.dumps({"label": label, "Text": text}) for text, label in TWO)),
        ("t.json", json.dumps([{"label": label, "Text": text} for text, label in TWO])),
    ],
)  # fmt: skip
def test_every_text_format_gives_the_same_rows(tmp_path: Path, name: str, content: str | bytes) -> None:
    dataset = open_file(tmp_path / name, content)
    assert rows_of(dataset) == TWO
    assert (dataset.classes, dataset.splits, dataset.source) == (("neg", "pos"), ("train",), name)


def test_parquet_gives_the_same_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame(TWO, columns=["text", "label"]).astype({"label": "category"})
    frame.to_parquet(tmp_path / "t.parquet")
    assert rows_of(open_file(tmp_path / "t.parquet")) == TWO


def test_tabs_with_lone_quotes_are_read_as_they_stand(tmp_path: Path) -> None:
    dataset = open_file(tmp_path / "t.tsv", 'text\tlabel\n"Go\ta\n6" nail\tb\n')
    assert rows_of(dataset) == [('"Go', "a"), ('6" nail', "b")]


def test_a_megabyte_in_one_field_is_read(tmp_path: Path) -> None:
    dataset = open_file(tmp_path / "t.csv", f"text,label\n{'x ' * 500_000},a\ny,b\n")
    assert len(dataset.load("train").texts[0]) == 1_000_000


def test_odd_line_separators_inside_a_field_do_not_break_rows(tmp_path: Path) -> None:
    assert len(open_file(tmp_path / "t.csv", "text,label\na\u2028b\x0b\x85c\x00,x\nd,y\n").load("train")) == 2


@pytest.mark.parametrize(
    "header, chosen",
    [
        ("sentence,intent", ("1", "2")),
        ("Category,Headline,date", ("2", "1")),
        ("label,phrase", ("2", "1")),
        ("text,mood", ("1", "2")),
        ("id, message ,class", ("2", "3")),
        ("label,text,category", ("2", "1")),
    ],
)
def test_columns_are_guessed_from_usual_names(tmp_path: Path, header: str, chosen: tuple[str, str]) -> None:
    width = header.count(",") + 1
    rows = [[f"{row}{column}" for column in range(1, width + 1)] for row in "ab"]
    dataset = open_file(tmp_path / "t.csv", "\n".join([header, *map(",".join, rows)]))
    assert rows_of(dataset) == [(f"{row}{chosen[0]}", f"{row}{chosen[1]}") for row in "ab"]


def test_columns_asked_for_are_taken(tmp_path: Path) -> None:
    dataset = open_file(tmp_path / "t.csv", "text,label,a,b\n1,2,3,4\n5,6,7,8\n", text_column="b", label_column="a")
    assert rows_of(dataset) == [("4", "3"), ("8", "7")]


def test_numbers_and_truth_values_are_labels_in_natural_order(tmp_path: Path) -> None:
    lines = [{"text": "x", "label": label} for label in (10, 9.0, "b", True, "10", " a ")]
    dataset = open_file(tmp_path / "t.jsonl", "\n".join(map(json.dumps, lines)))
    assert dataset.classes == ("9", "10", "a", "b", "true")


@pytest.mark.parametrize(
    "name, content, problem",
    [
        ("t.csv", "", "empty; wanted a header"),
        ("t.csv", "text,label\n", "no rows"),
        ("t.csv", "foo,bar,baz\n1,2,3\n", "which column holds the text.*'foo', 'bar', 'baz'.*text_column"),
        ("t.csv", "text,bar,baz\n1,2,3\n", "which column holds the label.*label_column"),
        ("t.csv", "just one column\nx\n", "which column holds the text"),
        ("t.csv", "text,text,label\n1,2,3\n", "column 'text' occurs twice"),
        ("t.csv", "text,label\na,x\nb,y,z\n", "line 3: 3 fields, but the header has 2"),
        ("t.csv", 'text,label\n"a\nb",x\nc\n', "line 4: 1 fields"),
        ("t.csv", 'text,label\na,x\n"b,y\n', "line 3: unexpected end of data"),
        ("t.csv", "text,label\na,x\nb,\nc, \n", r"line 3 \(and 1 more\): no label in column 'label'"),
        ("t.csv", "text,label\na,x\n ,y\n", "line 3: no text in column 'text'"),
        ("t.csv", "text,label\na,x\nb,x\n", "all 2 rows have the label 'x'"),
        ("t.csv", "text,label\ncaf\u00e9,x\nb,y\n".encode("latin-1"), "line 2: byte 0xe9 is not utf-8; save"),
        ("t.csv", b"PK\x03\x04\xff\xfe\x00", "not utf-8"),
        ("t.csv.gz", b"\x1f\x8b\x08", "cannot read it"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text": ', "line 2: not JSON"),
        ("t.jsonl", '{"text": "a", "label": 1}\n\n[1]', "line 3: wanted an object"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"label": 2}', "line 2: no text"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text": "b"}', "line 2: no label"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text": 5, "label": 2}', r"line 2: column 'text' holds '5' \(int\)"),
        ("t.json", '[{"text": "a"', "line 1: not JSON"),
        ("t.json", "[" * 100_000, "JSON that cannot be read"),
        ("t.jsonl", "{}\n" + '{"text":' * 100_000, "line 2: not JSON"),
        ("t.json", "[]", "no rows"),
        ("t.parquet", b"PAR1", "not a readable Parquet file"),
        ("t.xlsx", b"", r"unknown format; wanted a name that ends in \.csv"),
        ("table", b"", "unknown format"),
    ],
)  # fmt: skip
def test_bad_table_is_refused_with_file_and_place_named(
    tmp_path: Path, name: str, content: str | bytes, problem: str
) -> None:
    with pytest.raises(DataError, match=rf"(?s){name}.*{problem}"):
        open_file(tmp_path / name, content)


def test_missing_file_and_missing_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"t\.csv: no such file"):
        open_file(tmp_path / "t.csv")
    with pytest.raises(DataError, match="no column 'body' for the text; there are 'text', 'label'"):
        open_file(tmp_path / "t.csv", QUOTED.lower(), text_column="body")
    with pytest.raises(DataError, match="column 'text' cannot be both"):
        open_file(tmp_path / "t.csv", QUOTED.lower(), label_column="text")


def test_one_row_per_class_is_refused_when_it_is_split(tmp_path: Path) -> None:
    dataset = open_file(tmp_path / "t.csv", QUOTED)
    rows = dataset.load("train")
    with pytest.raises(DataError, match="only one row of class 'neg', 'pos'"):
        stratified_split(rows.labels, fraction=0.1, seed=0, classes=rows.classes)


def test_folder_holds_train_and_test(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\na,x\nb,y\n", encoding="utf-8")
    (tmp_path / "test.jsonl").write_text('{"text": "c", "label": "y"}', encoding="utf-8")
    dataset = open_file(tmp_path)
    assert dataset.has_test and dataset.load("test").labels == [1]
    (tmp_path / "test.jsonl").write_text('{"text": "c", "label": "z"}', encoding="utf-8")
    with pytest.raises(DataError, match="label 'z' does not occur in the training rows"):
        dataset.load("test")
    (tmp_path / "train.tsv").write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"train\.csv and train\.tsv: which is it"):
        open_file(tmp_path)


def test_folder_without_train_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no train file there"):
        open_file(tmp_path)


def test_text_column_of_a_table_without_labels_is_found() -> None:
    for columns, column in ((["id", "message"], "message"), (["anything"], "anything")):
        assert find_text_column(columns, path=Path("t.csv"), text_column=None) == column
    with pytest.raises(DataError, match="which column holds the text"):
        find_text_column(["a", "b"], path=Path("t.csv"), text_column=None)
