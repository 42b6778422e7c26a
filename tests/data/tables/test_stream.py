"""Tables read a few rows at a time: the same rows from every format, and bad ones refused by file and line."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from tests.data.tables.test_table import QUOTED, TWO
from txcls.data.tables import lines as rows_module
from txcls.data.tables.stream import TableStream
from txcls.errors import DataError

LINES = "\n".join(json.dumps({"label": label, "Text": text}) for text, label in TWO)


ROWS = [{"Text": text, "label": label} for text, label in TWO]


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("t.csv", QUOTED.encode(), ROWS),
        ("t.csv", b"\xef\xbb\xbf" + QUOTED.encode(), ROWS),
        ("t.csv", QUOTED.encode("utf-16"), ROWS),
        ("t.csv", QUOTED.replace("\n", "\r\n").replace('film""\r\n', 'film""\n').encode(), ROWS),
        (
            "t.csv",
            b"id|Text\n1|a \xc2\x85 \xe2\x80\xa8 b\n\n2|c\n",
            [{"id": "1", "Text": "a \x85 \u2028 b"}, {"id": "2", "Text": "c"}],
        ),
        ("t.csv.gz", gzip.compress(QUOTED.encode(), mtime=0), ROWS),
        ("t.tsv", QUOTED.replace("Text,", "Text\t").replace('",', '"\t').encode(), ROWS),
        (
            "t.tsv",
            b'text\tlabel\n"Go\ta\n6" nail\tb\n',
            [{"text": '"Go', "label": "a"}, {"text": '6" nail', "label": "b"}],
        ),
        ("t.jsonl", LINES.encode(), ROWS),
        ("t.jsonl", LINES.replace("\n", "\r\n\n").encode("utf-16"), ROWS),
        ("t.json", json.dumps([json.loads(line) for line in LINES.splitlines()]).encode(), ROWS),
        ("t.json", b" \n[ \n ] \n", []),
    ],
)
def test_every_format_gives_the_same_rows_as_often_as_asked(
    tmp_path: Path, name: str, content: bytes, expected: list[dict[str, str]]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    stream = TableStream(path)
    assert list(stream.rows()) == expected and list(stream.rows()) == expected
    if expected:
        survey = stream.survey()
        assert survey.rows == len(expected) and set(survey.columns) == set(expected[0])
        assert survey.text_column.lower() == "text"


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 16, 17])
def test_parts_are_the_rows_in_order(tmp_path: Path, n: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f'{{"text": "row {number}"}}\n' for number in range(n)), encoding="utf-8")
    stream = TableStream(path)
    parts = dict(stream.parts(8, wanted=lambda number: True))
    assert [row["text"] for number in sorted(parts) for row in parts[number]] == [f"row {one}" for one in range(n)]
    assert list(parts) == list(range(-(-n // 8))) and all(len(part) == 8 for part in list(parts.values())[:-1])
    assert dict(stream.parts(8, wanted=lambda number: number == 1)) == {k: v for k, v in parts.items() if k == 1}


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["a", "b"], "when": pd.to_datetime(["2020-01-01", None]), "n": [1, 2]})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=1)
    survey = TableStream(tmp_path / "t.parquet").survey()
    assert (survey.rows, survey.text_column) == (2, "text")
    assert [str(survey.schema.field(name).type)[:9] for name in ("when", "n")] == ["timestamp", "int64"]


def test_types_of_json_are_those_that_fit_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a", "n": 1}\n{"text": "b", "n": 1.5, "x": [1]}\n{"text": "c"}\n', encoding="utf-8")
    schema = TableStream(path).survey(typed=True).schema
    assert [str(schema.field(name).type) for name in ("text", "n")] == ["string", "double"]
    path.write_text('{"text": "a", "n": 1}\n{"text": "b", "n": "one"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"different kinds .* write \.jsonl instead"):
        TableStream(path).survey(typed=True)
    assert TableStream(path).survey().columns == ("text", "n")


@pytest.mark.parametrize(
    "name, content, problem",
    [
        ("t.csv", b"", "empty; wanted a header"),
        ("t.csv", b"text,label\n", "no rows"),
        ("t.csv", b"foo,bar\n1,2\n", "which column holds the text"),
        ("t.csv", b"text,text,label\n1,2,3\n", "column 'text' occurs twice"),
        ("t.csv", b"text,label\na,x\nb,y,z\n", "line 3: 3 fields, but the header has 2"),
        ("t.csv", b'text,label\na,x\n"b,y\n', "line 3: unexpected end of data"),
        ("t.csv", b"text,label\n" + b"a,x\n" * 50_000 + b"caf\xe9,x\n", "line 50002: byte 0xe9 is not utf-8; save"),
        ("t.csv", "text\na\n".encode("utf-16")[:-1], "is not utf-16"),
        ("t.csv.gz", b"\x1f\x8b\x08", "cannot read it"),
        ("t.csv.gz", gzip.compress(b"text\n" + b"some words\n" * 90_000, mtime=0)[:-90], "cannot read it"),
        ("t.jsonl", b'{"text": "a"}\n{"text": ', "line 2: not JSON"),
        ("t.jsonl", b'{"text": "a"}\n\n"b"', "line 3: wanted an object"),
        ("t.jsonl", b'{"text": "a"}\n{"label": 2}', "line 2: no text in column 'text'"),
        ("t.jsonl", b'{"text": "a"}\n{"text": 5}', r"line 2: column 'text' holds '5' \(int\)"),
        ("t.json", b'[{"text": "a"', "line 1: not JSON"),
        ("t.parquet", b"PAR1", "not a readable Parquet file"),
        ("t.xlsx", b"", r"unknown format; wanted a name that ends in \.csv"),
    ],
)
def test_a_bad_table_is_refused_with_file_and_place_named(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"(?s){name}.*{problem}"):
        TableStream(tmp_path / name).survey()


def test_a_missing_text_in_parquet_and_a_missing_file_are_named(tmp_path: Path) -> None:
    pd.DataFrame({"text": ["a", None]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet, row 2: no text in column 'text'"):
        TableStream(tmp_path / "t.parquet").survey()
    with pytest.raises(DataError, match=r"no\.csv: no such file"):
        TableStream(tmp_path / "no.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(DataError, match="a folder, wanted a file"):
        TableStream(tmp_path / "d.csv")


def test_a_quote_that_is_never_closed_does_not_take_all_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "LONGEST_FIELD", 1000)
    (tmp_path / "t.csv").write_text("text\na\n" + '"b' + "\nmore" * 100_000, encoding="utf-8")
    with pytest.raises(DataError, match="line 3: a field longer than 1,000 characters"):
        TableStream(tmp_path / "t.csv").survey()
