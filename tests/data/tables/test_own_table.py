"""Tables as people have them: read forgivingly, and what was done about each oddity is said."""

import gzip
import json
import zipfile
from datetime import date
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from txcls.data.tables.own_table import OwnTable, is_own_table, read_own_table
from txcls.errors import DataError


def written(path: Path, text: str, *, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def read(path: Path, text: str, *, encoding: str = "utf-8") -> OwnTable:
    return read_own_table(written(path, text, encoding=encoding))


def test_unnamed_columns_of_the_usual_spam_csv_are_dropped_and_said(tmp_path: Path) -> None:
    lines = ["v1,v2,,,", "ham,hello there,,,", 'spam,"win, now",,,', "ham,torn apart, by commas,,"]
    table = read(tmp_path / "spam.csv", "\r\n".join(lines))
    assert list(table.columns) == ["v1", "v2"] and len(table) == 3
    assert table.columns["v2"] == ["hello there", "win, now", "torn apart"]
    assert table.notes == ("3 columns without a name were dropped; 1 rows have something there.",)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_a_file_that_is_not_utf8_is_read_and_said(tmp_path: Path, encoding: str) -> None:
    table = read(tmp_path / "a.csv", "text,label\ncafé crème,ja\nnaïve,nein\n", encoding=encoding)
    assert table.columns["text"] == ["café crème", "naïve"]
    assert table.notes == ("The file is not UTF-8; it was read as Windows-1252 (Latin-1).",)


def test_utf8_and_utf16_are_read_without_a_word(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        table = read(tmp_path / "a.csv", "text,label\ncafé,ja\n", encoding=encoding)
        assert table.columns == {"text": ["café"], "label": ["ja"]} and table.notes == ()


def test_a_first_line_that_is_a_row_is_read_as_one(tmp_path: Path) -> None:
    rows = "\n".join(f"{'spam' if n % 3 else 'ham'}\tmessage number {n}" for n in range(30))
    table = read(tmp_path / "a.tsv", rows + "\n")
    assert list(table.columns) == ["column 1", "column 2"] and len(table) == 30 and table.places[0] == 1
    assert "The first line looks like a row" in table.notes[0]
    long = read(tmp_path / "b.csv", "my parcel is late again this week,bad\nall fine here,good\n")
    assert len(long) == 2


def test_column_names_are_not_taken_for_a_row(tmp_path: Path) -> None:
    table = read(tmp_path / "a.csv", "v1,v2\nham,x y\nspam,y z\nham,z\nspam,w\n")
    assert list(table.columns) == ["v1", "v2"] and len(table) == 4 and table.places == [2, 3, 4, 5]
    usual = read(tmp_path / "b.csv", "text,label\nsome words,label\nother words,label\nmore words,text\n")
    assert list(usual.columns) == ["text", "label"] and len(usual) == 3


def test_few_rows_with_too_many_fields_are_left_out_and_many_are_refused(tmp_path: Path) -> None:
    rows = [f"text {n},a" for n in range(40)]
    table = read(tmp_path / "a.csv", "\n".join(["text,label", *rows, "one, two,b", "short"]))
    assert len(table) == 41 and table.columns["label"][-1] is None
    assert table.notes == (
        "1 row with more fields than columns was left out (the first in line 42); quote fields that hold the "
        "delimiter.",
    )
    with pytest.raises(DataError, match=r"line 2 and 1 more: more fields than the 2 columns"):
        read(tmp_path / "b.csv", "text,label\na, b,c\nd, e,f\ng,h\n")


def test_columns_of_the_same_name_are_numbered(tmp_path: Path) -> None:
    table = read(tmp_path / "a.csv", "text,text,label\na,b,c\n")
    assert list(table.columns) == ["text", "text (2)", "label"] and "called 'text'" in table.notes[0]


def test_the_same_rows_are_read_from_every_format(tmp_path: Path) -> None:
    rows = [{"text": "good morning", "label": "x"}, {"text": "good, night", "label": "y"}]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "semi.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    for name in ("a.csv", "a.tsv", "semi.csv", "a.parquet", "a.xlsx", "a.json", "a.jsonl", "a.csv.gz"):
        table = read_own_table(tmp_path / name)
        assert table.columns == {"text": ["good morning", "good, night"], "label": ["x", "y"]}, name
        assert table.name == name and is_own_table(name)


def test_objects_that_lack_a_column_have_a_gap_there(tmp_path: Path) -> None:
    table = read(tmp_path / "a.jsonl", '{"text": "a"}\n{"label": "x", "text": "b"}\n')
    assert table.columns == {"text": ["a", "b"], "label": [None, "x"]} and table.unit == "line"


def test_an_excel_sheet_gives_values_and_other_sheets_are_named(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["text", "stars", "on"], ["fine", 5, date(2024, 2, 3)], [None, None, None], ["bad", 1.5, None]):
        sheet.append(row)
    book.create_sheet("notes").append(["something else"])
    book.save(tmp_path / "a.xlsx")
    table = read_own_table(tmp_path / "a.xlsx")
    assert table.columns["stars"] == [5, 1.5] and table.columns["on"][0] == "2024-02-03 00:00:00"
    assert list(table.places) == [2, 4] and table.unit == "row"
    assert table.notes == ("Only the first sheet, 'Sheet', was read; there are others: 'notes'.",)


def test_cells_beside_the_headings_of_a_sheet_lose_no_row(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["kind", "message"], ["a", "one"], ["b", "two", None, "see above"], ["a", "three", "x", "y"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    table = read_own_table(tmp_path / "a.xlsx")
    assert table.columns == {"kind": ["a", "b", "a"], "message": ["one", "two", "three"]}
    assert table.notes == ("2 columns without a name were dropped; 2 rows have something there.",)


def test_what_is_no_workbook_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_text("text,label\na,b\n")
    with pytest.raises(DataError, match=r"a\.xlsx: not a readable Excel file .* save it as \.xlsx or CSV"):
        read_own_table(tmp_path / "a.xlsx")
    with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
        archive.writestr("hello.txt", "no workbook")
    with pytest.raises(DataError, match="not a readable Excel file"):
        read_own_table(tmp_path / "b.xlsx")
    with zipfile.ZipFile(tmp_path / "c.xlsx", "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * 50_000_000)
    with pytest.raises(DataError, match="unpacks to more than 100 times"):
        read_own_table(tmp_path / "c.xlsx")


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.xls", "x", r"save it as \.xlsx or as CSV"),
        ("a.docx", "x", "unknown format"),
        ("a.csv", "", "empty"),
        ("a.csv", "text,label\n", "no rows below the column names"),
        ("a.csv", ",,\na,b,c\n", "no rows below the column names"),
        ("a.jsonl", "\n", "no rows"),
        ("a.csv", "text\x00,label\nx,y", "NUL"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path / name, content)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_own_table(tmp_path / "none.csv")
