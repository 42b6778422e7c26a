"""Any table that a visitor brings is read or answered with a sentence within two seconds, and the page never freezes.

At full size (TXCLS_FULL_SIZE, as set by `make attack`), there are thousands of damaged tables, otherwise a few hundred.
"""

import base64
import json
import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, Watch, page_with
from tests.browser.workbooks import packed, row, sheet, workbook
from tests.conftest import FULL_SIZE
from txcls.web.playground import export_playground

pytestmark = [pytest.mark.attack, pytest.mark.timeout(1800 if FULL_SIZE else 180)]

MAX_MS, MAX_FREEZE_MS = 2000, 300
ATTEMPTS = 3
"""One of several attempts must be as fast, since the machine may be busy; if its processors have other work, all take
longer."""
IN_THE_PAGE = """
const bytesOf = (data) => Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
/** Read a table and all that is derived from it, and measure for how long the page could not have answered. */
globalThis.use = async (source, isMeasured = true) => {
  let since = performance.now(), longest = 0, isOver = false;
  const {port1, port2} = new MessageChannel();
  const measure = () => { longest = Math.max(longest, performance.now() - since); since = performance.now(); };
  port1.onmessage = () => { measure(); if (!isOver) port2.postMessage(0); };
  if (isMeasured) port2.postMessage(0);
  const start = performance.now(), result = {refused: null, kind: null, nRows: 0, labelled: [], unlabelled: 0};
  const turn = () => isMeasured && new Promise((resolve) => setTimeout(resolve)); // the page acts on clicks in between
  try {
    const table = await readTable(source);
    await turn();
    const columns = await guessColumns(table), width = table.rows[0].length;
    result.nRows = table.rows.length;
    if (table.rows.some((cells) => cells.length !== width || cells.some((one) => typeof one !== "string"))
        || (table.headings && table.headings.length !== width)) throw new TypeError("a row of another width");
    await turn();
    const all = await examplesOf(table, columns, new Map(), {isChecked: false});
    await turn();
    variantsOf(all.labelled.map((one) => one.label));
    await turn();
    const {labelled, unlabelled} = await examplesOf(table, columns);
    await turn();
    Object.assign(result, {labelled: labelled.slice(0, 5), unlabelled: unlabelled.length});
    const folds = await foldsOf(labelled, 5, randomNumbers(1));
    if (folds.some((fold) => !(fold >= 0 && fold < 5))) throw new TypeError("a fold");
    if (columns.label === null) throw new Error(columns.problem);
  } catch (error) {
    result.refused = error.message;
    result.kind = error.constructor.name;
  }
  await turn();
  measure();
  isOver = true;
  return {...result, ms: performance.now() - start, longest};
};
globalThis.useFile = (name, data) => use(name === null ? data : new File([bytesOf(data)], name));
globalThis.useRepeated = (parts) => use(parts.map(([text, n]) => text.repeat(n)).join(""));
/** Whether a table was read, or answered with a sentence that was written for it. */
const isAnswer = ({kind, refused}) => refused === null || (kind === "Error" && /^[A-Z“].*(?:[.)]|FILE)$/.test(refused));
/** Damage a file in many ways; returns the attempts that were neither read nor answered with a sentence. */
globalThis.useDamaged = async (name, data, seeds) => {
  const bytes = bytesOf(data), wrong = [];
  for (const seed of seeds) {
    const random = randomNumbers(seed), below = (n) => Math.floor(random() * n);
    const damaged = bytes.slice(0, random() < 0.2 ? below(bytes.length) : undefined);
    for (let n = Math.ceil(random() * 8); n > 0; n--) {
      const place = below(damaged.length);
      if (random() < 0.3) damaged.copyWithin(place, below(damaged.length), below(damaged.length));
      else damaged[place] = below(256);
    }
    const result = await use(new File([damaged], name), false);
    if (!isAnswer(result)) wrong.push([seed, result.kind, result.refused]);
  }
  return wrong;
};
globalThis.useRandomTexts = async (alphabet, seeds) => {
  const wrong = [];
  for (const seed of seeds) {
    const random = randomNumbers(seed), below = (n) => Math.floor(random() * n);
    const text = Array.from({length: below(300)}, () => alphabet[below(alphabet.length)]).join("");
    const result = await use(text, false);
    if (!isAnswer(result)) wrong.push([text, result.kind, result.refused]);
  }
  return wrong;
};
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    modules = [f"playground/table/{name}" for name in ("read", "columns", "examples", "labels", "splits")]
    with page_with(browser, [*modules, "playground/training/optimizer"], IN_THE_PAGE) as page:
        yield page


def judged(attempt: Callable[[], dict[str, Any]], *, most: float = MAX_FREEZE_MS) -> dict[str, Any]:
    """The result of an attempt that answered in time and did not freeze the page."""
    times = []
    for _ in range(ATTEMPTS):
        result = attempt()
        assert result["kind"] in (None, "Error"), result["refused"]
        wait = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        if result["ms"] <= MAX_MS * wait and result["longest"] <= most * wait:
            return result
        times.append((round(result["ms"]), round(result["longest"])))
    pytest.fail(f"(milliseconds in all, without an answer): {times}")


def use(page: Page, data: bytes | str, name: str = "table.csv") -> dict[str, Any]:
    encoded = base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()
    return judged(lambda: page.evaluate("([name, data]) => useFile(name, data)", [name, encoded]))


def rows_of(n: int) -> list[tuple[str, str]]:
    return [(f"the {('red', 'green', 'blue', 'grey')[k % 4]} thing number {k} is here", "ab"[k % 2]) for k in range(n)]


ROWS = "".join(f"{text},{label}\n" for text, label in rows_of(40))
LARGE_TEXTS = {
    "five megabytes": [("text,label\n", 1), (ROWS, 3500)],
    "a million short lines": [("a,b\n", 1_000_000)],
    "a million lines of one column": [("a\n", 1_000_000)],
    "five million empty lines": [("\n", 5_000_000)],
    "one line": [("a", 5_000_000)],
    "one line of words": [("ab, ", 1_250_000)],
    "one cell": [(f"text,label\n{ROWS}", 1), ('"', 1), ("word ", 1_000_000), ('",a\n', 1)],
    "commas": [(",", 5_000_000)],
    "tabs": [("\t\n", 2_500_000)],
    "quotes": [('"', 5_000_000)],
    "an odd number of quotes": [('"', 5_000_001)],
    "opening quotes": [('"a,', 1_600_000)],
    "opening quotes in lines": [('"a\n', 1_600_000)],
    "closed and opening quotes": [('""a,"', 1_000_000)],
    "quotes that close in the next line": [('x,"a\n"b",y\n', 450_000)],
    "doubled quotes": [('"', 1), ('""x\n', 1_200_000)],
    "unclosed quotes": [("text,label\n", 1), ('"a text of some words,a\n"another text,b\n', 100_000)],
    "brackets": [("[", 5_000_000)],
    "braces": [('{"a":', 1_000_000)],
    "nested lists": [('[{"text":', 1), ("[", 1_000_000), ("]", 1_000_000), ("}]", 1)],
    "tags": [("text,label\n", 1), (f"{'<style>' * 50}<p>a text,a\n<br><!--{'<' * 300},b\n", 1000)],
    "many columns": [("x,", 399), ("y\n", 1), ("1,", 399), ("z\n", 1)] + [("1,", 399), ("w\n", 1)] * 3000,
    "labels": [("__label__a ", 300_000)],
}


@pytest.mark.parametrize("name", LARGE_TEXTS)
def test_large_pasted_texts(page: Page, name: str) -> None:
    judged(lambda: page.evaluate("(parts) => useRepeated(parts)", LARGE_TEXTS[name]))


def test_an_ordinary_table_of_many_rows_never_holds_a_slow_machine(page: Page) -> None:
    """Nothing takes longer than 60 ms, which a processor that is four times as slow does in 240."""
    text = "text\tlabel\n" + "".join(
        f"{one} and it was seen on day {n}\t{'abcdef'[n % 6]}\n" for n, (one, _) in enumerate(rows_of(36_000))
    )
    judged(lambda: page.evaluate("(parts) => useRepeated(parts)", [[text, 1]]), most=60)


def test_names_of_javascript_are_names_like_others(page: Page) -> None:
    labels = ("__proto__", "constructor", "toString")
    lines = [json.dumps({"__proto__": text, "constructor": labels[n % 3]}) for n, (text, _) in enumerate(rows_of(30))]
    result = use(page, "\n".join(lines), "table.jsonl")
    assert [one["label"] for one in result["labelled"]] == [*labels, *labels[:2]]
    rows = [f"{text},{labels[n % 3]}\n" for n, (text, _) in enumerate(rows_of(30))]
    result = use(page, "text,__proto__\n" + "".join(rows))
    assert [one["label"] for one in result["labelled"]] == [*labels, *labels[:2]]


def test_thousands_of_classes(page: Page) -> None:
    text = "".join(f"{text},c{n % 5000}\n" for n, (text, _) in enumerate(rows_of(20_000)))
    assert use(page, f"text,label\n{text}")["refused"].startswith("Column “label” has")


def test_json_with_other_keys_in_each_object(page: Page) -> None:
    assert "different keys" in use(page, "\n".join(f'{{"k{n}":1}}' for n in range(5000)), "x.jsonl")["refused"]
    wide = json.dumps([{f"k{n % 400}": 1} for n in range(100_000)])
    assert "100,000 rows of 400 columns" in use(page, wide, "x.json")["refused"]


# Workbooks

GOOD = [row(1, "text", "label"), *(row(n, *one) for n, one in enumerate(rows_of(40), start=2))]
SHEET = "xl/worksheets/sheet1.xml"
ATTRIBUTES = " ".join(f"a{n}=''" for n in range(90_000))
LAUGHS = "".join(f"<!ENTITY l{n + 1} '" + f"&l{n};" * 10 + "'>" for n in range(9))
LARGE = (400 if FULL_SIZE else 100) * 1_000_000
"""The bytes of a part that unpacks to far more than is read."""


def merged(cells: str, n: int) -> str:
    """The same merged cells n times."""
    return "<mergeCells>" + f'<mergeCell ref="{cells}"/>' * n + "</mergeCells>"


def with_headers(data: bytes, change: Callable[[bytearray, int], None]) -> bytes:
    """A zip file whose directory is changed: `change` gets the file and where each entry begins."""
    changed, place = bytearray(data), -1
    while (place := changed.find(b"PK\x01\x02", place + 1)) >= 0:
        change(changed, place)
    return bytes(changed)


def with_stated_sizes(data: bytes, size: int, name: str = "") -> bytes:
    """A zip file that states another unpacked size of its parts, or of one."""

    def change(changed: bytearray, place: int) -> None:
        if not name or changed[place + 46 :].startswith(name.encode()):
            changed[place + 24 : place + 28] = struct.pack("<I", size)

    return with_headers(data, change)


def encrypted(changed: bytearray, place: int) -> None:
    changed[place + 8] |= 1


def twice() -> bytes:
    out = BytesIO(workbook(GOOD))
    with zipfile.ZipFile(out, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr(SHEET, sheet(GOOD))
    return out.getvalue()


def sheets(n: int) -> bytes:
    """A workbook with n sheets, of which the relations name only the first."""
    return workbook(GOOD, sheets="".join(f'<sheet name="{k}" sheetId="{k}" r:id="rId1"/>' for k in range(1, n + 1)))


def with_sheet(xml: str | bytes) -> bytes:
    """A workbook whose sheet is this XML."""
    return workbook([], parts={SHEET: xml})


def large_sheet() -> str:
    return sheet([*GOOD, " " * LARGE])


def far_cells() -> bytes:
    """A cell in the last column of many rows that are far from each other."""
    return workbook([*GOOD, *(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1000, 41_000, 10))])


def diagonal() -> bytes:
    """A cell in each column."""
    letters = [f"{chr(65 + n // 676 % 26)}{chr(65 + n // 26 % 26)}{chr(65 + n % 26)}" for n in range(1, 16_000)]
    return workbook([f'<row r="{n}"><c r="{one}{n}"><v>1</v></c></row>' for n, one in enumerate(letters, start=1)])


def overlapping() -> bytes:
    rows = [*GOOD, row(99, "a", "b"), *(row(n, "text") for n in range(100, 9000))]
    return workbook(rows, after=merged("B99:B1048576", 9000))


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a large part": (lambda: with_sheet(large_sheet()), "A part of this workbook is larger than 8 MB."),
    "a large part that says it is small": (
        lambda: with_stated_sizes(with_sheet(large_sheet()), 1000, SHEET), "is larger than 8 MB."),
    "large shared strings": (
        lambda: workbook(["<row><c t='s'><v>0</v></c></row>"] * 6, strings=[" " * LARGE]), "is larger than 8 MB."),
    "parts that say they are small": (lambda: with_stated_sizes(workbook(GOOD), 77), "damaged"),
    "a workbook in a zip file in a zip file": (
        lambda: packed({"a.zip": packed({"b.xlsx": workbook(GOOD)})}), "This is a zip file."),
    "billion laughs": (
        lambda: with_sheet(f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]>{sheet(["&l9;"])}'), "DOCTYPE"),
    "billion laughs in UTF-16": (
        lambda: with_sheet(f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a/>'.encode("utf-16")), "DOCTYPE"),
    "an entity of its own": (lambda: workbook(["<row><c><v>&unknown;</v></c></row>"]), "damaged"),
    "cells in column XFD": (far_cells, ""),
    "a cell in each column": (diagonal, "columns, expected at most 500."),
    "the last row of a sheet": (lambda: workbook([*GOOD, row(1_048_576, "a last text", "a")]), ""),
    "rows beyond it": (lambda: workbook([*GOOD, '<row r="1e300"><c r="ZZZZZ9"><v>1</v></c></row>']), ""),
    "merged cells over the whole sheet": (lambda: workbook(GOOD, after=merged("A1:XFD1048576", 50_000)), ""),
    "merged cells over each other": (overlapping, "damaged"),
    "elements within each other": (lambda: workbook(["<row>" * 60_000, "</row>" * 60_000]), "damaged"),
    "a row of very many cells": (lambda: workbook([f"<row>{'<c><v>1</v></c>' * 400_000}</row>"]), "larger than 1 MB"),
    "a cell with very many attributes": (lambda: workbook([f"<row><c {ATTRIBUTES}><v>1</v></c></row>"]), ""),
    "opening brackets": (lambda: workbook(["<" * 5_000_000]), "larger than 1 MB."),
    "tags that do not end": (lambda: with_sheet("<worksheet><sheetData " * 300_000), ""),
    "comments that do not end": (lambda: workbook(["<!--" * 1_500_000]), "damaged"),
    "a part twice": (twice, "twice"),
    "an encrypted part": (lambda: with_headers(workbook(GOOD), encrypted), "This file is encrypted."),
    "zip64": (lambda: with_stated_sizes(workbook(GOOD), 0xFFFFFFFF), "zip64"),
    "half of a file": (lambda: workbook(GOOD)[:1500], "damaged or incomplete"),
    "without its end": (lambda: workbook(GOOD)[:-12], "damaged or incomplete"),
    "no relations": (lambda: packed({"[Content_Types].xml": "<a/>", "_rels/.rels": ""}), "damaged"),
    "relations outside": (lambda: workbook(GOOD, sheet_path="/../../../xl/worksheets/sheet1.xml"), ""),
    "100 sheets that are one": (lambda: sheets(100), ""),
    "1,000 sheets": (lambda: sheets(1000), "1,000 sheets"),
    "no sheet": (lambda: workbook(GOOD, sheets=""), "no sheet"),
    "no visible sheet": (lambda: workbook(GOOD, sheets='<sheet name="a" state="veryHidden" r:id="rId1"/>'), "hidden"),
    "only hidden rows": (lambda: workbook([row(1, "text", "label", attributes='hidden="1"')] * 9), "hidden"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_workbooks(page: Page, name: str) -> None:
    make, answer = HOSTILE[name]
    result = use(page, make(), "table.xlsx")
    assert not answer or answer in result["refused"]


@pytest.mark.parametrize("is_stored", [False, True], ids=["whole", "parts"])
def test_damaged_workbooks(page: Page, is_stored: bool) -> None:
    """If the parts are stored, not compressed, damage reaches their XML."""
    data, out = workbook(GOOD, strings=["<si><t>a</t></si>"] * 9, formats=[0, 14]), BytesIO()
    if is_stored:
        with zipfile.ZipFile(BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as stored:
            for entry in archive.infolist():
                stored.writestr(entry.filename, archive.read(entry))
        data = out.getvalue()
    given = [base64.b64encode(data).decode(), list(range(5000 if FULL_SIZE else 300))]
    assert page.evaluate("([data, seeds]) => useDamaged('table.xlsx', data, seeds)", given) == []


@pytest.mark.parametrize(
    "alphabet", [['"', ",", "\n", "a", " "], [*'\t;",|\n\r ab'], [*'[]{}":,\n1a\\'], [*"__label__ \n", "__label__"]]
)
def test_random_texts(page: Page, alphabet: str) -> None:
    seeds = list(range(10_000 if FULL_SIZE else 400))
    assert page.evaluate("([alphabet, seeds]) => useRandomTexts(alphabet, seeds)", [alphabet, seeds]) == []


@pytest.fixture
def playground_page(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """The playground, which must not report an error, freeze or leave this machine, whatever it gets."""
    context, watch = browser.new_context(viewport={"width": 1280, "height": 800}), Watch()
    context.set_default_timeout(PATIENCE_MS)
    context.set_offline(True)
    page = context.new_page()
    watch.on(page, "")
    page.goto(f"{export_playground(tmp_path / 'page').as_uri()}#layers=1&width=16")
    expect(page.locator("#progress")).to_contain_text("not trained yet")
    page.evaluate(LONG_TASKS)
    yield page
    context.close()
    assert not watch.problems


LONG_TASKS = """() => {
  globalThis.longest = 0
  const keep = (list) => list.getEntries().forEach(({duration}) => { longest = Math.max(longest, duration) })
  new PerformanceObserver(keep).observe({entryTypes: ["longtask"]})
}"""
PASTE = """(parts) => {
  const text = parts.map(([part, n]) => part.repeat(n)).join(""), data = new DataTransfer()
  globalThis.longest = 0
  data.setData("text", text)
  const settings = {clipboardData: data, bubbles: true, cancelable: true}
  const isTaken = !document.querySelector("#table").dispatchEvent(new ClipboardEvent("paste", settings))
  if (!isTaken) {
    document.querySelector("#table").value = text
    document.querySelector("#table").dispatchEvent(new Event("change"))
  }
}"""
DROP = """([name, data]) => {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0)), transfer = new DataTransfer()
  globalThis.longest = 0
  transfer.items.add(new File([bytes], name))
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}))
}"""


def dropped(page: Page, name: str, data: bytes) -> None:
    page.evaluate(DROP, [name, base64.b64encode(data).decode()])


def assert_answered(page: Page, place: str, answer: str) -> None:
    """The page says this, was never blocked for long, and learns from the next table."""
    expect(page.locator(place)).to_contain_text(answer)
    assert page.evaluate("longest") <= MAX_FREEZE_MS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    page.evaluate(PASTE, [["text,label\n" + "".join(f"{text},{label}\n" for text, label in rows_of(40)), 1]])
    expect(page.locator("#own")).to_contain_text("2 classes: a 20, b 20.")
    for sentence in ("#table-problem", "#problem"):
        expect(page.locator(sentence)).to_be_empty()
    page.get_by_role("button", name="One step").click()
    expect(page.locator("#progress")).to_contain_text("step 1")


PASTED: dict[str, tuple[list[tuple[str, int]], str, str]] = {
    "five megabytes": (LARGE_TEXTS["five megabytes"], "#own", "100,000 rows have a label. 3,000 of them"),
    "one class": ([("text,label\n", 1), ("a text,x\n", 50)], "#table-problem", "All rows have the same value"),
    "__proto__": (
        [("text,__proto__\n", 1), ("a text,__proto__\nanother text,constructor\n", 20)],
        "#own", "2 classes: __proto__ 20, constructor 20."),
    "markup": (
        [("<img src=x onerror=alert(1)>,<b>a</b>\n<script>alert(1)</script>,<i>c</i>\n", 20)],
        "#own", "2 classes: <b>a</b> 20, <i>c</i> 20."),
}  # fmt: skip


@pytest.mark.parametrize("name", PASTED)
def test_the_page_answers_hostile_tables(playground_page: Page, name: str) -> None:
    parts, place, answer = PASTED[name]
    playground_page.evaluate(PASTE, parts)
    assert_answered(playground_page, place, answer)


def test_the_page_answers_a_hostile_workbook(playground_page: Page) -> None:
    make, answer = HOSTILE["a large part that says it is small"]
    dropped(playground_page, "table.xlsx", make())
    assert_answered(playground_page, "#table-problem", answer)


def test_a_model_chosen_as_a_table_names_the_button_that_opens_it(playground_page: Page) -> None:
    file = {"name": "model.zip", "mimeType": "application/zip", "buffer": packed({"a/model.safetensors": "x"})}
    playground_page.locator("input[accept*='.xlsx']").first.set_input_files(file)
    sentence = playground_page.locator("#table-problem")
    expect(sentence).to_contain_text("This is a")
    expect(playground_page.get_by_role("button", name="Load a model")).to_be_visible()
    assert "“Load a model”" in sentence.inner_text()
