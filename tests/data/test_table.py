import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from txcls.data.labelled import read_labelled
from txcls.data.table import Table, has_table_suffix
from txcls.errors import DataError

TWO = [("good, really", "pos"), ('bad "film"\nhere', "neg")]
QUOTED = 'Text,label\n"good, really",pos\n"bad ""film""\nhere",neg\n'
ROWS = [{"Text": text, "label": label} for text, label in TWO]
LINES = "\n".join(json.dumps({"label": label, "Text": text}) for text, label in TWO)
FORMATS = [
    ("t.csv", QUOTED.encode()),
    ("t.CSV", QUOTED.encode("utf-8-sig")),
    ("t.csv", QUOTED.encode("utf-16")),
    ("t.txt", QUOTED.replace("Text,", "Text\t").replace('",', '"\t').encode("utf-16")),
    ("t.csv", QUOTED.replace("\n", "\r\n").replace('film""\r\n', 'film""\n').encode()),
    ("t.csv.gz", gzip.compress(QUOTED.encode(), mtime=0)),
    ("t.csv", b"sep=;\r\n" + QUOTED.replace("Text,", "Text;").replace('",', '";').encode()),
    ("t.tsv", QUOTED.replace("Text,", "Text\t").replace('",', '"\t').encode()),
    ("t.jsonl", LINES.encode()),
    ("t.jsonl", LINES.replace("\n", "\r\n\n").encode("utf-16")),
    ("t.json", json.dumps(ROWS).encode()),
]


def values_of(table: Table) -> list[dict[str, Any]]:
    return [row.values for row in table.rows()]


def opened(path: Path, content: str | bytes) -> Table:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Table(path)


def workbook(path: Path, **sheets: list[list[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


@pytest.mark.parametrize("name, content", FORMATS)
def test_every_format_gives_the_same_rows_each_time(tmp_path: Path, name: str, content: bytes) -> None:
    table = opened(tmp_path / name, content)
    assert table.n_rows is None and set(table.columns) == {"Text", "label"}
    assert values_of(table) == ROWS == values_of(table)
    assert table.n_rows == 2 and has_table_suffix(name)
    assert not [note for note in table.notes if "UTF-16" not in note and note != "1 empty line was left out."]


def test_parquet_and_excel_give_the_same_rows_with_their_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["a", "b"], "when": pd.to_datetime(["2020-01-01", None]), "n": [1, 2]})
    frame["kind"] = pd.Categorical(["x", "y"])
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=1)
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    parquet, excel = Table(tmp_path / "t.parquet"), Table(tmp_path / "t.xlsx")
    assert (parquet.n_rows, excel.n_rows) == (2, None)
    for table in (parquet, excel):
        assert [(row["text"], row["n"], row["kind"]) for row in values_of(table)] == [("a", 1, "x"), ("b", 2, "y")]
    assert [row.values for row in parquet.rows(["n"])] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    "name, content, numbers, unit",
    [
        ("t.csv", 'text,label\n"two\nlines",a\n\nlast,b\n', [2, 4], "row"),
        ("t.csv", "sep=;\ntext;label\na;b\nc;d\n", [2, 3], "row"),
        ("t.jsonl", '{"text": "a"}\n\n{"text": "b"}\n', [1, 3], "line"),
        ("t.json", '[{"text": "a"}, {"text": "b"}]', [1, 2], "item"),
        ("t.txt", "__label__a one\n\n__label__b two\n", [1, 3], "line"),
    ],
)
def test_row_numbers_match_a_spreadsheet(
    tmp_path: Path, name: str, content: str, numbers: list[int], unit: str
) -> None:
    table = opened(tmp_path / name, content)
    assert [row.number for row in table.rows()] == numbers
    assert table.unit in (unit, "row")


@pytest.mark.parametrize(
    "content, rows",
    [
        (b"id|Text\n1|a \xc2\x85 \xe2\x80\xa8 b\n\n2|c\n", [("1", "a \x85 \u2028 b"), ("2", "c")]),
        (b"a\tb\n\"Go\tx\n6\" nail\ty\n", [('"Go', "x"), ('6" nail', "y")]),
        (
            b'a\tb\n"Go\tx\n"all ""in"" quotes"\ty\n"a" and "b"\tz\n',
            [('"Go', "x"), ('all "in" quotes', "y"), ('"a" and "b"', "z")],
        ),
        (b"text,label\na," + b"\nb,x\n", [("a", ""), ("b", "x")]),
        (
            b"label,text\nbig,'tis here\nbig,\"one, two\"\nsmall,rock 'n' roll\n",
            [("big", "'tis here"), ("big", "one, two"), ("small", "rock 'n' roll")],
        ),
    ],
)  # fmt: skip
def test_odd_separators_and_quotes_are_kept(tmp_path: Path, content: bytes, rows: list[tuple[str, str]]) -> None:
    name = "t.tsv" if b"\t" in content else "t.csv"
    assert [tuple(row.values()) for row in values_of(opened(tmp_path / name, content))] == rows


# Flaws that are corrected


@pytest.mark.parametrize("text, encoding", [("ภาษาไทยยาก", "cp874"), ("всё хорошо", "cp1251"), ("漢字の文", "euc-jp")])
def test_a_file_in_an_encoding_that_is_not_read_is_refused(tmp_path: Path, text: str, encoding: str) -> None:
    content = "text,label\n" + f"{text} {text},good\n" * 30
    with pytest.raises(DataError, match=r"t.csv: not UTF-8 or UTF-16, and Windows-1252 gives .*; save it as UTF-8"):
        opened(tmp_path / "t.csv", content.encode(encoding))


def test_a_file_that_is_not_utf8_is_read_and_noted(tmp_path: Path) -> None:
    content = "text,label\n" + "plain,x\n" * 20_000 + "café crème,ja\nnaïve,nein\n"
    table = opened(tmp_path / "t.csv", content.encode("cp1252"))
    assert [row["text"] for row in values_of(table)][-2:] == ["café crème", "naïve"]
    assert "read as Windows-1252" in table.notes[0] and table.encoding == "cp1252"


def test_a_file_in_two_encodings_is_read_line_by_line(tmp_path: Path) -> None:
    lines = ["text,label", *(f"caf\u00e9 {n} \u201cgood\u201d,ja" for n in range(9)), "plain,nein"]
    content = b"\n".join(line.encode("cp1252" if n in (3, 7) else "utf-8") for n, line in enumerate(lines))
    table = opened(tmp_path / "t.csv", content)
    assert [row["text"] for row in values_of(table)] == [line.partition(",")[0] for line in lines[1:]]
    assert table.notes[0].startswith("2 of 9 lines ") and "the first is line 4" in table.notes[0]


@pytest.mark.parametrize(
    "title", ["Report of tickets 2024\n\n", "Report of tickets 2024,,\nconfidential,,\n", "Report 2024\n"]
)
def test_title_lines_are_skipped(tmp_path: Path, title: str) -> None:
    rows = "".join(f"message number {n},{'xy'[n % 2]},{n}\n" for n in range(20))
    table = opened(tmp_path / "t.csv", f"{title}what they wrote,kind,n\n{rows}")
    assert table.columns == ("what they wrote", "kind", "n") and len(values_of(table)) == 20
    assert "is a title ('Report" in table.notes[0] and "column names are in row" in table.notes[0]


def test_tables_without_column_names_are_read(tmp_path: Path) -> None:
    rows = "\n".join(f"{'spam' if n % 3 else 'ham'}\tmessage number {n}" for n in range(30))
    table = opened(tmp_path / "a.tsv", rows + "\n")
    assert table.columns == ("column 1", "column 2") and next(table.rows()).number == 1 and len(values_of(table)) == 30
    assert "The first line looks like data" in table.notes[0]
    assert len(values_of(opened(tmp_path / "b.csv", "my parcel is late again this week,bad\nall fine,good\n"))) == 2
    questions = "".join(f"{'note' if n % 3 else 'question'},what of number {n}\n" for n in range(30))
    assert len(values_of(opened(tmp_path / "d.csv", questions))) == 30, "a label that is also a common name of columns"
    for content in ("v1,v2\nham,x y\nspam,y z\nham,z\nspam,w\n", "text,label\nsome words,label\nother,label\nb,text\n"):
        assert opened(tmp_path / "c.csv", content).columns[0] in ("v1", "text")


def test_columns_without_a_name_are_numbered_or_left_out_if_empty(tmp_path: Path) -> None:
    lines = ["v1,v2,,,", "ham,hello there,,,", 'spam,"win, now",,,', "ham,torn apart, by commas,,"]
    table = opened(tmp_path / "spam.csv", "\r\n".join(lines))
    assert table.columns == ("v1", "v2", "column 3")
    assert values_of(table)[2] == {"v1": "ham", "v2": "torn apart", "column 3": " by commas"}
    assert "2 columns " in table.notes[0] and "'column 3'" in table.notes[1]
    table = opened(tmp_path / "twice.csv", "text,text,label\na,b,c\n")
    assert table.columns == ("text", "text (2)", "label") and "named 'text'" in table.notes[0]


def test_few_rows_with_too_many_fields_are_left_out_and_many_are_refused(tmp_path: Path) -> None:
    rows = [f"text {n},a" for n in range(40)]
    table = opened(tmp_path / "a.csv", "\n".join(["text,label", *rows, "one, two,b", "short"]))
    assert len(values_of(table)) == 41 and values_of(table)[-1] == {"text": "short", "label": None}
    assert table.left_out == [(1, "with more fields than columns", "row 42")]
    table = opened(tmp_path / "b.csv", "text,label\na, b,c\nd, e,f\ng,h\n")
    with pytest.raises(DataError, match=r"b\.csv, rows 2 to 3 \(2 rows\): more fields than the 2 columns"):
        values_of(table)


def test_another_encoding_and_empty_rows_between_others_are_noted(tmp_path: Path) -> None:
    rows = [f"text {n};a" for n in range(20)]
    lines = ["a title", "", "text;label", "", *rows, ";", "b;c;d", "", "e;f", "", ""]
    table = opened(tmp_path / "t.csv", "\n".join(lines).encode("utf-16"))
    assert len(values_of(table)) == 21 and table.n_left_out == 1
    assert table.notes[0] == "The file is not UTF-8; it was read as UTF-16."
    no_mark = opened(tmp_path / "t.csv", "\n".join(lines).encode("utf-16-le"))
    assert len(values_of(no_mark)) == 21 and no_mark.notes[0] == table.notes[0], "without a byte-order mark"
    assert (3, "empty", "") in table.left_out
    table = opened(tmp_path / "t.jsonl", '{"a": 1}\n\n{"a": 2}\n')
    assert len(values_of(table)) == 2 and table.left_out == [(1, "empty", "")]
    table = Table(workbook(tmp_path / "t.xlsx", A=[["text", "label"], ["a", "x"], [None, ""], [], ["b", "y"], []]))
    assert len(values_of(table)) == 2 and table.left_out == [(2, "empty", "")]


# Excel


def test_the_sheet_with_the_most_rows_is_read_and_another_can_be_chosen(tmp_path: Path) -> None:
    data = [["text", "label"], ["a", "x"], ["b", "y"]]
    path = workbook(tmp_path / "t.xlsx", Cover=[["Read me"]], Empty=[], Data=data)
    table = Table(path)
    assert table.sheet == "Data" and len(values_of(table)) == 2
    assert table.notes == ("Sheet: 'Data', not 'Cover'.",)
    workbook(path, Data=data, Other=[["text", "label"], *[["c", "z"]] * 5])
    assert Table(path).sheet == "Other" and values_of(Table(path, sheet="Data"))[0]["text"] == "a"
    with pytest.raises(DataError, match=r"no sheet 'None'; the sheets are 'Other', 'Data'"):
        Table(path, sheet="None")


def test_cells_of_a_workbook_are_values_with_dates_and_line_breaks_as_text(tmp_path: Path) -> None:
    rows = [
        ["text", "stars", "on", "at"],
        ["two_x000D_\nlines", 5, date(2024, 2, 3), pd.Timestamp("2024-02-03 10:30").to_pydatetime()],
        [None, None, None],
        ["bad", 1.5, None, None, "beside"],
    ]
    table = Table(workbook(tmp_path / "t.xlsx", Sheet=rows))
    first, last = list(table.rows())
    assert list(first.values.values()) == ["two\nlines", 5, "2024-02-03", "2024-02-03 10:30:00", None]
    assert last == (4, {"text": "bad", "stars": 1.5, "on": None, "at": None, "column 5": "beside"})


def test_a_hidden_sheet_is_not_read_unless_it_is_asked_for(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    book.active.append(["a", "x"])
    old = book.create_sheet("old")
    old.sheet_state = "hidden"
    for row in (["text", "label"], ["b", "y"], ["c", "y"]):
        old.append(row)
    book.save(tmp_path / "t.xlsx")
    table = Table(tmp_path / "t.xlsx")
    assert [row["text"] for row in values_of(table)] == ["a"]
    assert table.notes == ("Sheet: 'Sheet', not 'old' (hidden).",)
    assert [row["text"] for row in values_of(Table(tmp_path / "t.xlsx", sheet="old"))] == ["b", "c"]


def test_a_label_merged_over_rows_is_that_of_each_row_and_errors_are_empty(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["kind", "text"], ["x", "a"], [None, "b"], [None, "c"], ["y", "d"], ["#REF!", "e"]):
        book.active.append(row)
    book.active["A6"].data_type = "e"
    book.active.merge_cells("A2:A4")
    book.save(tmp_path / "t.xlsx")
    rows = values_of(Table(tmp_path / "t.xlsx"))
    assert [(row["kind"], row["text"]) for row in rows] == [*zip("xxxy", "abcd", strict=True), (None, "e")]


def test_only_a_needed_column_of_formulas_that_were_never_calculated_is_refused(tmp_path: Path) -> None:
    rows = [["text", "label", "n"], *([f"text {n}", "ab"[n % 2], '=IF(1=1,"a","b")'] for n in range(4))]
    table = Table(workbook(tmp_path / "t.xlsx", Data=[*rows, ["=> see below", "a"]]))
    assert table.notes == ("Formulas that were never calculated: 5 (first: cell C2).",)
    assert table.rows_with_uncalculated_formulas(["text"]) == {6} and not table.rows_with_uncalculated_formulas(
        ["label"]
    )
    read, _ = read_labelled(table.path)
    assert read.numbers == [2, 3, 4, 5] and "Rows left out: 1 with an uncalculated formula (row 6)." in read.notes
    with pytest.raises(DataError, match="formulas in column 'n' were never calculated; open the file"):
        read_labelled(table.path, label_column="n")
    table = Table(workbook(table.path, Data=[[text, formula] for text, _, formula in rows]))
    with pytest.raises(DataError, match="without values: 'n'; formulas have values once"):
        read_labelled(table.path)


# Forms of JSON and Parquet


@pytest.mark.parametrize(
    "form", ["split", "records", "index", "columns", "table", "list", "lines", "in an object", "one object"]
)
def test_each_form_of_json_that_pandas_writes_is_read(tmp_path: Path, form: str) -> None:
    rows = [{"text": f"text {n}", "label": "ab"[n % 2]} for n in range(4)]
    frame = pd.DataFrame(rows)
    written = {
        "list": json.dumps(frame.to_dict("list")),
        "lines": frame.to_json(orient="records", lines=True),
        "in an object": json.dumps({"version": 1, "data": rows, "tags": ["x"]}),
        "one object": json.dumps(rows[0]),
    }
    (tmp_path / "t.json").write_text(written[form] if form in written else frame.to_json(orient=form))
    expected = rows[:1] if form == "one object" else rows
    read = [{name: row[name] for name in ("text", "label")} for row in values_of(Table(tmp_path / "t.json"))]
    assert read == expected


def test_class_names_stored_in_a_parquet_file_are_the_labels(tmp_path: Path) -> None:
    features = {"text": {"_type": "Value"}, "label": {"names": ["no", "yes"], "_type": "ClassLabel"}}
    metadata = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    table = pa.table({"text": ["a", "b", "c"], "label": [1, 0, None]}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "t.parquet")
    read = Table(tmp_path / "t.parquet")
    assert [row["label"] for row in values_of(read)] == ["yes", "no", None]
    assert read.notes == ("Class names of column 'label' are those stored in the file.",)


# What is refused


@pytest.mark.parametrize(
    "name, content, problem",
    [
        ("t.csv", b"", "empty; expected a line"),
        ("t.csv", b"text,label\n", "no rows below the column names"),
        ("t.csv", b"text\x00,label\nx,y", "NUL"),
        ("t.csv", b'text,label\na,x\n"b,y\n' + b"c,y\n" * 100, "line 3: the file ends inside a quoted field"),
        ("t.csv", "text\na\n".encode("utf-16")[:-1], "(is not|codec)"),
        ("t.csv.gz", b"\x1f\x8b\x08", "cannot read it"),
        ("t.csv.gz", gzip.compress(b"text\n" + b"some words\n" * 90_000, mtime=0)[:-90], "cannot read it"),
        ("t.jsonl", b'{"text": "a"}\n{"text": ', "line 2: not JSON"),
        ("t.jsonl", b'{"text": "a"}\n\n"b"', "line 3: expected an object"),
        ("t.json", b" \n[ \n ] \n", "no rows"),
        ("t.json", b"[1, 2]", "item 1: expected an object"),
        ("t.json", b"[" * 100_000, "nested too deeply"),
        ("t.parquet", b"PAR1", "not a readable Parquet file"),
        ("t.xlsx", b"text,label\na,b\n", "not a readable Excel file"),
        ("t.txt", b'so, "it" is\nplain\n"he" said, no, never\nthe end\nand more\n', "a text file without columns"),
        ("t.xls", b"", r"save other workbooks as \.xlsx"),
        ("t.docx", b"", r"unknown format; expected a name that ends in \.csv"),
    ],
)
def test_a_bad_table_is_refused_with_file_and_place_named(
    tmp_path: Path, name: str, content: bytes, problem: str
) -> None:
    with pytest.raises(DataError, match=rf"(?s){name}.*{problem}"):
        values_of(opened(tmp_path / name, content))


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_file_of_one_column_keeps_rows_with_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    other = ";" if delimiter == "," else ","
    texts = [f"one text{other} with parts{other * (n % 3)} {n}" if n % 4 else f"plain {n}" for n in range(40)]
    texts[7] = f'"quoted{delimiter} with the file\'s own delimiter"'
    table = opened(tmp_path / "texts.csv", "\n".join(["text", *texts]))
    assert table.columns == ("text",)
    texts[7] = texts[7].strip('"')
    assert [row.values["text"] for row in table.rows()] == texts


def test_lines_of_a_quoted_text_do_not_choose_the_delimiter(tmp_path: Path) -> None:
    file = tmp_path / "posts.csv"
    text = 'a,"Hello,\nTable:\n' + "| x\n" * 9 + '",0.5'
    file.write_text(f'id,text,share\n{text}\nb,"no, thanks",0.1\n', encoding="utf-8")
    assert Table(file).columns == ("id", "text", "share")
    assert [row.values["id"] for row in Table(file).rows()] == ["a", "b"]
