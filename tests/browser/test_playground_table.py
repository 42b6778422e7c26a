"""Tables that visitors bring to the playground are read in a real Chromium as the Python package reads them."""

import base64
import codecs
import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import page_with
from tests.browser.workbooks import cell, packed, row, workbook
from tests.data.spellings import OWN_CLASSES, SPELLINGS
from txcls.data.labels import label_name
from txcls.data.splits import first_copies, near_copies
from txcls.data.table import Table

MODULES = [f"playground/table/{name}" for name in ("read", "columns", "examples", "labels", "splits", "write")]
MODULES += ["playground/training/optimizer"]
IN_THE_PAGE = """
const sourceOf = (name, data) =>
  name === null ? data : new File([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], name);
// What a function returns, or its refusal, as JSON: Playwright takes long for long lists.
const answer = (attempt) => attempt().catch((error) => ({refused: error.message})).then(JSON.stringify);
globalThis.read = (name, data, options) => answer(async () => {
  const table = await readTable(sourceOf(name, data), options);
  return {...table, ...await guessColumns(table)};
});
globalThis.examples = (name, data, {columns = null, merges = [], isChecked = true} = {}) => answer(async () => {
  const table = await readTable(sourceOf(name, data));
  return examplesOf(table, columns ?? await guessColumns(table), new Map(merges), {isChecked});
});
Object.assign(globalThis, {foldsOf, randomNumbers, readTable, toCsv, variantsOf, withColumns});
"""
THINGS = ["router", "printer", "screen", "cable", "laptop", "charger", "keyboard", "scanner"]
PLACES = ["in the office", "near the kitchen", "on the second floor", "at the desk by the window"]
ENDS = {
    "fault": ("is broken again", "stopped working today", "makes a strange noise"),
    "order": ("please send two more", "how much does one cost", "we want to buy another"),
    "thanks": ("works well now, thank you", "is perfect, cheers", "thanks for the swift repair"),
}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """An empty page with the modules that read tables."""
    with page_with(browser, MODULES, IN_THE_PAGE) as page:
        yield page


def messages(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts and labels, of which a few words tell the label."""
    rng = random.Random(seed)
    kinds = [rng.choice(list(ENDS)) for _ in range(n)]
    return [
        (f"The {rng.choice(THINGS)} {rng.choice(PLACES)} {rng.choice(ENDS[kind])} ({number})", kind)
        for number, kind in enumerate(kinds)
    ]


def ask(page: Page, function: str, name: str | None, data: bytes | str, options: dict[str, Any]) -> dict[str, Any]:
    given = data if name is None else base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()
    answer = page.evaluate(f"(given) => {function}(...given)", [name, given, options])
    result: dict[str, Any] = json.loads(answer)
    return result


def read(page: Page, data: bytes | str, name: str = "table.csv", **options: Any) -> dict[str, Any]:
    """The table in a file, with its columns, or the sentence in `refused`."""
    return ask(page, "read", name, data, options)


def paste(page: Page, text: str, **options: Any) -> dict[str, Any]:
    return ask(page, "read", None, text, options)


def examples(page: Page, data: bytes | str, name: str = "table.csv", **options: Any) -> dict[str, Any]:
    """The rows to train on, and those to classify, or the sentence in `refused`."""
    return ask(page, "examples", name, data, options)


def pairs(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The texts and labels of a table that was read."""
    return [(cells[result["text"]], cells[result["label"]]) for cells in result["rows"]]


def as_csv(rows: Sequence[Sequence[object]], delimiter: str = ",", end: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    return out.getvalue()


def in_python(data: bytes, name: str, folder: Path) -> tuple[list[str], list[list[str]]]:
    """The column names and the rows of a file as `Table` reads them."""
    file = folder / name
    file.write_bytes(data)
    table = Table(file)
    rows = [[label_name(value) for value in row.values.values()] for row in table.rows()]
    return list(table.columns), rows


def saved(book: openpyxl.Workbook) -> bytes:
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def with_rows(rows: Iterable[Sequence[object]]) -> tuple[openpyxl.Workbook, Any]:
    """A workbook and its sheet with these rows."""
    book = openpyxl.Workbook()
    for one in rows:
        book.active.append(one)
    return book, book.active


AWKWARD = [
    ("text", "label"),
    ('He said "no", and left', "a"),
    ("two\nlines", "b"),
    ("comma, semicolon; tab\tand bar|", "a"),
    ('""', "b"),
    ("  spaces  ", "a"),
    ("=1+1", "b"),
    ("Überraschung für Zoë, 5 €", "a"),
    ("日本語のテキスト", "b"),
]


@pytest.mark.parametrize(
    "delimiter, end, encoding",
    [(",", "\n", "utf-8"), (";", "\r\n", "utf-8-sig"), ("\t", "\r", "utf-16"), ("|", "\n", "utf-16-be")],
)
def test_delimited_text_is_read_as_in_python(
    page: Page, tmp_path: Path, delimiter: str, end: str, encoding: str
) -> None:
    data = as_csv(AWKWARD, delimiter, end).encode(encoding)
    if encoding == "utf-16-be":
        data = codecs.BOM_UTF16_BE + data
    result = read(page, data)
    names, rows = in_python(data, "table.csv", tmp_path)
    assert result["headings"] == names == ["text", "label"]
    assert [[label_name(cell.replace("\r", "\n")) for cell in cells] for cells in rows] == [
        [label_name(cell) for cell in cells] for cells in result["rows"]
    ]
    assert (result["text"], result["label"]) == (0, 1)
    assert any("UTF-16" in note for note in result["notes"]) == ("16" in encoding)


def test_random_cells_are_read_as_they_were_written(page: Page) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        width = rng.randint(2, 5)
        alphabet = rng.choice(('",;\t\n aé', "ab ,;", '" \n\tb', "'|x,\t"))
        cells = ["".join(rng.choices(alphabet, k=rng.randint(0, 12))) + "x" for _ in range(width * 12)]
        rows = [cells[start : start + width] for start in range(0, len(cells), width)]
        names = ["text", "label", "c", "d", "e"][:width]
        result = read(page, as_csv([names, *rows], rng.choice(",;\t|"), rng.choice(("\n", "\r\n"))))
        assert (result["headings"], result["rows"]) == (names, rows), seed


def test_text_that_is_not_unicode_is_windows_1252(page: Page) -> None:
    rows = [("Kommentar", "Thema"), *((f"Gruß aus Köln für 5 € ({n})", "Lob" if n % 2 else "Tadel") for n in range(8))]
    result = read(page, as_csv(rows, ";").encode("cp1252"))
    assert pairs(result) == rows[1:]
    assert result["notes"] == ["The file is not UTF-8; it was read as Windows-1252."]


def test_pasted_tables_have_all_their_rows(page: Page) -> None:
    for text, n_rows in (
        ("late parcel\tdelivery\nno login\taccount\nlost parcel\tdelivery\n", 3),  # without names
        ("text\tlabel\nlate parcel\tdelivery\nno login\taccount\n", 2),
        ("Is it late?\tdelivery\nHello, all\nno login\taccount\nlost\tdelivery", 4),  # a row without a label
        ('"Great" he said\tblame\n"bad\tblame\n5" screen\tpraise\n', 3),  # quotes of the text
        ("sep=;\ntext;label\nlate, but here;a\nnever came;b\n", 2),
        ('text,label\n"a ""quoted"" text",x\n"unclosed, text,y\nlast,x\n', 3),
    ):
        result = paste(page, text)
        assert ([len(cells) for cells in result["rows"]], result["text"]) == ([2] * n_rows, 0), text


def test_a_row_without_a_label_is_one_to_classify(page: Page) -> None:
    missing = ("", "?", "-", "n/a", "NULL", "NaN", "#N/A")
    rows = [*messages(12), *((text, label) for (text, _), label in zip(messages(7, seed=5), missing, strict=True))]
    result = examples(page, as_csv([("text", "label"), *rows]))
    assert [(one["text"], one["label"]) for one in result["labelled"]] == rows[:12]
    assert [(one["text"], one["label"]) for one in result["unlabelled"]] == [(text, "") for text, _ in rows[12:]]
    assert any(note.startswith("7 rows have no label") for note in result["notes"])


def test_none_is_a_class_unless_other_labels_are_clearly_missing(page: Page) -> None:
    rows = [(f"message number {n} of many", ("none", "insult", "+", "-")[n % 4]) for n in range(16)]
    for first, expected in (("none", {"none": 4, "insult": 4, "+": 4, "-": 4}), ("?", {"insult": 4, "+": 4, "-": 4})):
        rows[0] = (rows[0][0], first)
        result = examples(page, as_csv([("text", "label"), *rows]))
        assert Counter(one["label"] for one in result["labelled"]) == expected


def test_labels_are_named_as_in_python(page: Page) -> None:
    labels = ["1.0", "1", "-2.00", "TRUE", "true", "2024-05-01 00:00:00", " a  b ", "1.5", "007"]
    rows = [(f"message number {n} of many", label) for n, label in enumerate(labels)]
    result = examples(page, as_csv([("text", "label"), *rows]), columns={"text": 0, "label": 1})
    assert [one["label"] for one in result["labelled"]] == [" ".join(label_name(label).split()) for label in labels]


def test_titles_above_the_names_and_repeated_names_are_left_out(page: Page) -> None:
    head, body = ("message", "kind"), messages(24)
    rows = [("Export of 3 May",), (), head, *body[:8], head, *body[8:16], head, *body[16:]]
    result = read(page, as_csv(rows))
    assert result["headings"] == list(head)
    assert pairs(result) == body
    assert result["notes"] == [
        "Row 1 is a title (“Export of 3 May”); the column names are in row 3.",
        "2 rows that repeat the column names were left out.",
    ]


def test_texts_may_contain_the_delimiter_without_quotes(page: Page) -> None:
    rows = [(text.replace(" (", ", ("), label) for text, label in messages(20)]
    result = paste(page, "".join(f"{text},{label}\n" for text, label in [("text", "label"), *rows]))
    assert pairs(result) == rows
    assert "more cells than the others; they were read as parts of the text." in result["notes"][0]


def forms_of_json(rows: list[tuple[str, str]]) -> dict[str, object]:
    names = ["text", "label"]
    records = [dict(zip(names, one, strict=True)) for one in rows]
    return {
        "records": records,
        "split": {"columns": names, "index": list(range(len(rows))), "data": rows},
        "columns": {name: {str(n): one[name] for n, one in enumerate(records)} for name in names},
        "index": {f"row {n}": one for n, one in enumerate(records)},
        "lists": {name: [one[name] for one in records] for name in names},
        "inside": {"version": 1, "data": records},
    }


def test_forms_of_json_are_read(page: Page) -> None:
    for form, content in forms_of_json(messages(12)).items():
        result = read(page, json.dumps(content), "table.json")
        assert (result["headings"], pairs(result)) == (["text", "label"], messages(12)), form


def test_json_may_have_texts_inside_objects(page: Page) -> None:
    items = [
        {"id": 10**17 + n, "ticket": {"subject": text[:9], "body": text}, "meta": {"queue": label, "tags": ["x", "y"]}}
        for n, (text, label) in enumerate(messages(20))
    ]
    for content in (json.dumps(items), "\n".join(map(json.dumps, items))):
        result = read(page, content, "table.json")
        assert result["headings"] == ["id", "ticket.subject", "ticket.body", "meta.queue", "meta.tags"]
        assert pairs(result) == messages(20)
        assert result["rows"][1][0] == str(10**17 + 1)  # more digits than JavaScript's numbers have
        assert result["rows"][0][4] == "x; y"


def test_broken_json_is_answered_with_its_line(page: Page) -> None:
    lines = [*(json.dumps({"text": text, "label": label}) for text, label in messages(5)), '{"text": oops}']
    assert read(page, "\n".join(lines), "x.jsonl")["refused"].startswith("Line 6 is not valid JSON:")


def test_fasttext_is_read(page: Page) -> None:
    lines = [f"__label__{label} {text}" for text, label in messages(12)]
    result = read(page, "\n".join(["__label__a __label__b both", *lines]), "x.txt")
    assert result["headings"] == ["label", "text"]
    assert pairs(result) == [("both", "a; b"), *messages(12)]


def test_lines_without_columns_are_texts_to_classify(page: Page) -> None:
    for text in ("Hello, my parcel is late\nThe app crashes, again\nNo comma here", "Only one text"):
        result = paste(page, text, isToClassify=True)
        assert [cells for [cells] in result["rows"]] == text.split("\n")
        assert result["headings"] is None and result["label"] is None
        assert paste(page, f"text\n{text}\nlast", isToClassify=True)["headings"] == ["text"]


# Workbooks


def test_a_workbook_is_read_as_in_python(page: Page, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    active = book.active
    active.append(["text", "label", "when", "day", "n", "share", "ok", "escaped"])
    for n, (text, label) in enumerate(messages(40)):
        when = datetime(2024, 2, 28 + n % 2, 14, n % 60, 30)  # noqa: DTZ001
        active.append(
            [text, label, when, date(1900 + 5 * n, 3, 1), n * 1001, n / 7, n % 2 == 0, f"a_x000D_\nb_x005F_x000D_{n}"]
        )
    data = saved(book)
    result = read(page, data, "table.xlsx")
    names, rows = in_python(data, "table.xlsx", tmp_path)
    assert result["headings"] == names
    for cells, expected in zip(result["rows"], rows, strict=True):
        assert float(cells.pop(5)) == pytest.approx(float(expected.pop(5)), rel=1e-12)
        assert [label_name(value) for value in cells] == expected
    assert (result["text"], result["label"], result["format"]) == (0, 1, "Excel")


def test_numbers_with_a_format_of_dates_are_dates(page: Page) -> None:
    formats = [0, 14, 22, 164, 165, 166]
    codes = {164: '#,##0.00 "Symphony"\\d', 165: "[h]:mm", 166: "[$-407]d. mmmm yyyy;@"}
    for serial, style, is_1904, expected in (
        (43831, 1, False, "2020-01-01"),
        (43831.75, 2, False, "2020-01-01 18:00:00"),
        (59, 1, False, "1900-02-28"),
        (61, 1, False, "1900-03-01"),
        (0.5, 2, False, "12:00:00"),
        (42369, 1, True, "2020-01-01"),
        (43831, 3, False, "43831"),  # an amount of money
        (1.5, 4, False, "1.5"),  # hours
        (43831, 5, False, "2020-01-01"),  # a format of one's own
        (-1, 1, False, "-1"),
    ):
        body = [row(1, "text", "date"), *(row(n, f"text {n}", cell(serial, style=style)) for n in range(2, 8))]
        result = read(page, workbook(body, formats=formats, codes=codes, is_1904=is_1904), "table.xlsx")
        assert {cells[1] for cells in result["rows"]} == {expected}


def test_all_kinds_of_strings_are_read(page: Page) -> None:
    rich = "<si><r><rPr><b/></rPr><t>bold </t></r><r><t>and plain</t></r><rPh><t>pho</t></rPh></si>"
    strings = [
        "<si><t>text</t></si>",
        "<si><t>label</t></si>",
        rich,
        "<si><t>漢字</t><rPh sb='0' eb='2'><t>カンジ</t></rPh></si>",
        "<si/>",
    ]
    body = [
        "<row r='1'><c r='A1' t='s'><v>0</v></c><c r='B1' t='s'><v>1</v></c></row>",
        "<row r='2'><c r='A2' t='s'><v>2</v></c><c r='B2' t='b'><v>1</v></c></row>",
        "<row r='3'><c r='A3' t='s'><v>3</v></c><c r='B3' t='e'><v>#N/A</v></c></row>",
        "<row r='4'><c r='A4' t='str'><f>A2</f><v>calculated &lt;b&gt;</v></c><c r='B4' t='b'><v>0</v></c></row>",
        "<row r='5'><c t='inlineStr'><is><r><t>in</t></r><r><t>line</t></r></is></c><c t='b'><v>1</v></c></row>",
        "<row><c t='d'><v>2020-01-31T00:00:00</v></c><c t='n'><v>1.50</v></c></row>",
        "<row r='9'><c r='A9' t='s'><v>999</v></c><c r='B9' t='s'><v>1</v></c></row>",
    ]
    result = read(page, workbook(body, strings=strings), "table.xlsx")
    assert result["rows"] == [
        ["bold and plain", "TRUE"], ["漢字", "#N/A"], ["calculated <b>", "FALSE"], ["inline", "TRUE"],
        ["2020-01-31", "1.5"], ["", "label"],
    ]  # fmt: skip


def test_merged_cells_label_every_row_of_their_block(page: Page) -> None:
    texts, kinds = messages(30), ("fault", "order", "thanks")
    body = [(kinds[n // 10] if n % 10 == 0 else None, text, n) for n, (text, _) in enumerate(texts)]
    book, active = with_rows([("Messages of May", None, None), ("kind", "message", "n"), *body])
    for cells in ("A1:C1", "A3:A12", "A13:A22", "A23:A32", "B40:B5000"):
        active.merge_cells(cells)
    result = read(page, saved(book), "table.xlsx")
    assert pairs(result) == [(text, kinds[n // 10]) for n, (text, _) in enumerate(texts)]
    assert result["notes"] == ["Row 1 is a title (“Messages of May”); the column names are in row 2."]


def test_the_first_visible_sheet_with_a_table_is_read(page: Page) -> None:
    book, cover = with_rows([["Survey"], ["Contact: someone@example.com"]])
    cover.title = "Cover"
    for name, n, state in (("Old", 60, "hidden"), ("Messages", 20, "visible"), ("More", 30, "visible")):
        other = book.create_sheet(name)
        other.sheet_state = state
        for one in [("message", "kind"), *messages(n, seed=n)]:
            other.append(one)
    result = read(page, saved(book), "table.xlsx")
    assert pairs(result) == messages(20, seed=20)
    assert result["notes"] == [
        "Sheet “Messages” was read; the hidden sheet “Old” has more rows (61); the sheet “More” has more rows (31)."
    ]


def test_hidden_rows_are_left_out_with_their_number(page: Page) -> None:
    book, active = with_rows([("message", "kind"), *messages(20)])
    for n in range(4, 22, 4):
        active.row_dimensions[n].hidden = True
    result = read(page, saved(book), "table.xlsx")
    assert pairs(result) == [one for n, one in enumerate(messages(20), start=2) if n % 4]
    assert result["notes"] == ["5 hidden rows of the sheet were left out."]


def test_formulas_without_values_are_answered_with_what_to_do(page: Page) -> None:
    body = [(text, f'=IF(1=1,"{label}","")', f"={n}+1") for n, (text, label) in enumerate(messages(20))]
    book, active = with_rows([("message", "kind", "number"), *body])
    never = "20 formulas in “{}” were never calculated and have no values. {}pen the file in a spreadsheet program and "
    assert read(page, saved(book), "table.xlsx")["refused"] == never.format("kind", "O") + "save it."
    for n, (_, label) in enumerate(messages(20), start=2):
        active[f"B{n}"] = label
    result = read(page, saved(book), "table.xlsx")
    assert pairs(result) == messages(20)
    assert result["notes"] == [never.format("number", "To use them: o") + "save it."]


OTHER_FILES = {
    "an encrypted workbook": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(900) + "EncryptedPackage".encode("utf-16-le"),
    "an old Excel file (.xls)": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000),
    "a LibreOffice file (.ods)": packed({"mimetype": "x", "content.xml": "<a/>"}),
    "a Word document (.docx)": packed({"[Content_Types].xml": "<a/>", "word/document.xml": "<a/>"}),
    "a binary workbook (.xlsb)": packed({"[Content_Types].xml": "<a/>", "xl/workbook.bin": "x"}),
    "a zip file": packed({"table.csv": "text,label\n"}),
    "a Parquet file": b"PAR1" + bytes(50) + b"PAR1",
    "a PDF": b"%PDF-1.7\n",
    "a packed file (.gz)": b"\x1f\x8b\x08" + bytes(20),
    "a web page or XML": b"<html><table><tr><td>text</td></tr></table></html>",
    "not a text file": b"text,label\n\0\0\0,a\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(30),
}


def test_other_files_are_answered_with_what_came_and_what_to_do(page: Page) -> None:
    for kind, content in OTHER_FILES.items():
        refused = read(page, content, "table.xls")["refused"]
        assert refused.startswith(f"This is {kind}")
        assert "Expected a table as .xlsx, .csv, .tsv, .txt or .jsonl." in refused


# Columns


def test_columns_are_guessed_from_names_and_contents(page: Page) -> None:
    rng = random.Random(0)
    for text, label in (
        ("reviewText", "Sentiment"),
        ("Nachricht", "Kategorie"),
        ("commentaire libre", "thème"),
        ("mensaje", "categoría"),
        ("a", "b"),
    ):
        rows = [("id", "date", label, "source", "price", text, "constant")]
        rows += [
            (f"T{n:05}", f"2024-05-{n % 28 + 1:02}", kind, rng.choice(("app", "web")), str(rng.random()), message, "x")
            for n, (message, kind) in enumerate(messages(200))
        ]
        result = read(page, as_csv(rows))
        assert (result["text"], result["label"]) == (5, 2)


def test_the_columns_that_predict_each_other_are_texts_and_labels(page: Page) -> None:
    rng = random.Random(1)
    rows = [("a", "b", "c"), *((text, rng.choice(("app", "web")), label if rng.random() < 0.7 else "other")
                               for text, label in messages(300))]  # fmt: skip
    assert read(page, as_csv(rows))["label"] == 2


def test_ids_dates_numbers_and_constants_are_neither_texts_nor_labels(page: Page) -> None:
    for column in (
        [f"id-{n}" for n in range(40)],
        [str(n) for n in range(40)],
        ["same"] * 40,
        [f"2024-01-{n % 28 + 1:02}" for n in range(40)],
        [f"person{n}@example.com" for n in range(40)],
    ):
        rows = [("x", "y"), *zip(column, (text for text, _ in messages(40)), strict=True)]
        result = read(page, as_csv(rows))
        assert (result["text"], result["label"]) == (1, None)
        assert result["problem"]


def test_html_is_read_as_its_visible_text(page: Page) -> None:
    html = (
        "<html><head><title>T</title><style>p {{color: red}}</style></head><body><p>{} &amp; caf&eacute;</p>"
        "<script>alert(1)</script><!-- <p>no</p> --><div>3 &lt; 4&nbsp;&#8364;<br>end</div></body></html>"
    )
    rows = [("text", "label"), *((html.format(text), label) for text, label in messages(12))]
    result = examples(page, as_csv(rows))
    assert [one["text"] for one in result["labelled"]] == [f"{text} & café\n3 < 4 €\nend" for text, _ in messages(12)]
    assert result["notes"] == ["The texts are HTML; only their visible text is read."]


# Labels


def variants(page: Page, counts: Mapping[str, int]) -> list[tuple[dict[str, int], str]]:
    labels = [label for label, n in counts.items() for _ in range(n)]
    return [(dict(one["from"]), one["to"]) for one in page.evaluate("(labels) => variantsOf(labels)", labels)]


def test_spellings_of_a_class_are_proposed_for_merging_and_those_of_others_are_not(page: Page) -> None:
    for counts, expected in SPELLINGS:
        assert variants(page, counts) == expected
    for counts in OWN_CLASSES:
        assert variants(page, counts) == []


def test_merged_labels_are_those_of_the_examples(page: Page) -> None:
    rows = [(text, label.upper() if n % 3 else label) for n, (text, label) in enumerate(messages(30))]
    merges = [[label.upper(), label] for label in ENDS]
    result = examples(page, as_csv([("text", "label"), *rows]), merges=merges)
    assert [one["label"] for one in result["labelled"]] == [label for _, label in messages(30)]


# Limits and splits


def test_rows_that_cannot_be_trained_on_are_answered_with_a_sentence(page: Page) -> None:
    cases: list[tuple[list[tuple[str, str]], str]] = [
        ([(text, "x") for text, _ in messages(20)], "All 20 rows with a label have the same, “x”."),
        ([(text, f"c{n % 61}") for n, (text, _) in enumerate(messages(122))], "Column “label” has 61 different labels"),
        (messages(5), "There are 5 rows with a text and a label. Expected at least 6"),
        ([("", label) for _, label in messages(9)], "Column “text” has no texts."),
        ([(f"{n}.5", label) for n, (_, label) in enumerate(messages(9))], "Column “text” has numbers, such as “0.5”."),
        ([(text, "?") for text, _ in messages(9)], "No row has both a text and a label in column “label”."),
    ]
    for rows, problem in cases:
        data = as_csv([("text", "label"), *rows])
        assert examples(page, data, columns={"text": 0, "label": 1})["refused"].startswith(problem)


def test_of_a_large_table_rows_are_drawn_in_proportion_to_the_classes(page: Page) -> None:
    rows = [(f"text {n} of many", "rare" if n in (7, 8) else "b" if n >= 9_000 else "a") for n in range(12_000)]
    result = examples(page, as_csv([("text", "label"), *rows]))
    counts = Counter(one["label"] for one in result["labelled"])
    assert sum(counts.values()) == 3000
    assert counts["b"] == pytest.approx(750, abs=5) and 1 <= counts["rare"] <= 2
    lines = [one["line"] for one in result["labelled"]]
    assert lines == sorted(set(lines))
    assert any("12,000 rows have a label. 3,000 of them" in note and "python -m txcls train FILE" in note
               for note in result["notes"])  # fmt: skip


def test_larger_files_are_answered_with_the_command(page: Page) -> None:
    refused = page.evaluate(
        "() => readTable(new File(['text,label\\n'.repeat(800_000)], 'table.csv')).catch((error) => error.message)"
    )
    assert "python -m txcls train FILE" in refused


def folds(page: Page, rows: Sequence[tuple[str, str]], k: int = 5, seed: int = 1) -> list[int]:
    given = [{"text": text, "label": label} for text, label in rows]
    result: list[int] = page.evaluate("([rows, k, seed]) => foldsOf(rows, k, randomNumbers(seed))", [given, k, seed])
    return result


def words(rng: random.Random, n: int) -> list[str]:
    return ["".join(rng.choice("abcdefghijklmnop") for _ in range(rng.randint(3, 8))) for _ in range(n)]


def test_folds_spread_each_class_and_depend_only_on_the_seed(page: Page) -> None:
    rng = random.Random(0)
    rows = [(" ".join(words(rng, 8)), rng.choice("aaaaabbc")) for _ in range(403)]
    of_rows = folds(page, rows)
    assert of_rows == folds(page, rows) != folds(page, rows, seed=2)
    for label in "abc":
        counts = Counter(fold for fold, (_, other) in zip(of_rows, rows, strict=True) if other == label)
        assert max(counts[fold] for fold in range(5)) - min(counts[fold] for fold in range(5)) <= 1


def test_equal_and_nearly_equal_texts_are_in_the_same_fold(page: Page) -> None:
    rng = random.Random(3)
    rows: list[tuple[str, str]] = []
    for n in range(150):
        text = words(rng, rng.choice((12, 30, 90)))
        changed = [*text[:-1], *words(rng, 1)]
        label = "ab"[n % 2]
        rows += [(" ".join(text), label), (" ".join(text).upper() + "!", label), (f"{n}. " + ", ".join(text), label)]
        rows += [(" ".join(changed), label)] if len(text) > 12 else []
    order = rng.sample(range(len(rows)), len(rows))
    rows = [rows[index] for index in order]
    texts = [text for text, _ in rows]
    of_rows = folds(page, rows)
    for first, fold in zip(near_copies(texts, first_copies(texts)), of_rows, strict=True):
        assert fold == of_rows[first]  # groups by Python's own comparison


def test_copies_stay_together_whatever_their_labels_unless_new_data_will_contain_them_too(page: Page) -> None:
    rng = random.Random(0)
    texts = [" ".join(words(rng, 9)) for _ in range(10)]
    of_rows = folds(page, [(text, rng.choice("ab")) for text in texts for _ in range(6)])
    assert all(len(set(of_rows[6 * n : 6 * n + 6])) == 1 for n in range(10))
    rows = [("see above", "a")] * 40 + [(" ".join(words(rng, 9)), "ab"[n % 2]) for n in range(160)]
    assert set(folds(page, rows)[:40]) == set(range(5))


# Output


def test_results_are_csv_in_which_no_spreadsheet_runs_a_formula(page: Page) -> None:
    """OWASP, CSV Injection."""
    cells = ["=1+1", "+1 234", "-5", "-1.5e3", "@x", "\tx", "＝1", "a=b", 'say "hi"', "", "-", "two\nlines"]
    safe = ["'=1+1", "'+1 234", "-5", "-1.5e3", "'@x", "'\tx", "'＝1", "a=b", 'say "hi"', "", "'-", "two\nlines"]
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([["text", "'=label", "p"], *([cell, "b", (7 * n + 1) / 7] for n, cell in enumerate(safe))])
    rows = [[cell, "b", (7 * n + 1) / 7] for n, cell in enumerate(cells)]
    text = page.evaluate("([head, rows]) => toCsv(head, rows)", [["text", "=label", "p"], rows])
    assert text == "\ufeff" + out.getvalue()
    assert page.evaluate("toCsv(['x', 'y'], [['a', 'b']])") == '"x","y"\n"a","b"\n'


def test_results_keep_the_visitors_own_columns(page: Page) -> None:
    data = as_csv([("id", "text", "probability"), (1, "Oil prices rise", 0.11), (2, "The striker scored twice", 0.22)])
    code = "async (data) => withColumns(await readTable(data), [['label', ['a', 'b']], ['probability', [0.5, 1]]])"
    result = page.evaluate(code, data)
    assert result["headings"] == ["id", "text", "probability", "label", "probability (2)"]
    assert result["rows"] == [
        ["1", "Oil prices rise", "0.11", "a", 0.5],
        ["2", "The striker scored twice", "0.22", "b", 1],
    ]
