"""Damaged and hostile tables and archives raise DataError, quickly and in little memory."""

import base64
import gzip
import json
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import slow_but
from tests.data.tars import tar
from txcls.config import DataConfig
from txcls.data import limits
from txcls.data.archives import matching_files
from txcls.data.columns import Guess
from txcls.data.datasets import open_dataset
from txcls.data.published.clinc150 import open_clinc150
from txcls.data.tables import labelled, parquet
from txcls.data.tables.labelled import labelled_rows, read_labelled
from txcls.data.tables.parquet import parquet_rows
from txcls.data.tables.table import Table
from txcls.errors import DataError

pytestmark = pytest.mark.attack
MEGABYTE = b"a" * (1 << 20)


def write_gzip(path: Path, head: bytes, piece: bytes, n: int, tail: bytes = b"") -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(n):
            file.write(piece)
        file.write(tail)


def many_rows(path: Path) -> None:
    """20 million rows in a few hundred kilobytes."""
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 10_000_000, pa.int8()), pa.array(["hello there", "bye"]))
    pq.write_table(pa.table({"text": words, "label": words}), path, compression="zstd", store_schema=False)


def one_long_word(path: Path) -> None:
    """A hundred thousand rows of a megabyte each, in about a kilobyte."""
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int8()), pa.array(["a" * 1_000_000]))
    labels = pa.array(["x", "y"] * 50_000)
    pq.write_table(pa.table({"text": words, "label": labels}), path, compression="zstd", store_schema=False)


def long_texts(path: Path) -> None:
    """100 megabytes of texts in a few kilobytes."""
    table = pa.table({"text": ["a" * 1_000_000] * 100, "label": ["x", "y"] * 50})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def nested_words(path: Path) -> None:
    """A thousand rows with a list of a thousand texts of a megabyte each, in a few kilobytes."""
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int8()), pa.array(["a" * 1_000_000]))
    lists = pa.ListArray.from_arrays(pa.array(range(0, 1_000_001, 1000), pa.int32()), words)
    table = pa.table({"text": ["x"] * 1000, "label": ["x", "y"] * 500, "all": lists, "deep": lists})
    pq.write_table(table, path, compression="zstd", store_schema=False)


def shared_beginnings(path: Path) -> None:
    """Megabyte-long texts stored as differences from the previous text."""
    kinds = {"text": "DELTA_BYTE_ARRAY"}
    table = pa.table({"text": [f"{'a' * 1_000_000}{n % 7}" for n in range(100)], "label": ["x", "y"] * 50})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, column_encoding=kinds)


def sheets_of(rows: str, *, n: int = 1) -> Callable[[Path], None]:
    """A function that writes a workbook of n sheets with these rows; openpyxl would take minutes."""

    def write(path: Path) -> None:
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        numbers = range(1, n + 1)
        parts = "".join(
            f'<Override PartName="/xl/worksheets/s{k}.xml" ContentType="{kind}.worksheet+xml"/>' for k in numbers
        )
        space = 'xmlns="http://schemas.openxmlformats.org/'
        office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        links = "".join(
            f'<Relationship Id="r{k}" Type="{office}/worksheet" Target="worksheets/s{k}.xml"/>' for k in numbers
        )
        sheets = "".join(f'<sheet name="s{k}" sheetId="{k}" r:id="r{k}"/>' for k in numbers)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(
                "[Content_Types].xml",
                f'<Types {space}package/2006/content-types"><Override PartName="/xl/workbook.xml" '
                f'ContentType="{kind}.sheet.main+xml"/>{parts}</Types>',
            )
            archive.writestr(
                "_rels/.rels",
                f'<Relationships {space}package/2006/relationships"><Relationship Id="r0" '
                f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
            )
            archive.writestr(
                "xl/workbook.xml",
                f'<workbook {space}spreadsheetml/2006/main" xmlns:r="{office}"><sheets>{sheets}</sheets></workbook>',
            )
            archive.writestr(
                "xl/_rels/workbook.xml.rels",
                f'<Relationships {space}package/2006/relationships">{links}</Relationships>',
            )
            for k in numbers:
                body = f'<worksheet {space}spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>'
                archive.writestr(f"xl/worksheets/s{k}.xml", body)

    return write


def far_cells(column: str) -> str:
    """A cell in this column in each of 100,000 rows, with random numbers so that it does not compress too well."""
    rng = random.Random(0)
    return "".join(
        f'<row r="{n}"><c r="{column}{n}"><v>{rng.randrange(10**9)}</v></c></row>' for n in range(1, 100_001)
    )


def gaps() -> str:
    """Ten rows with 90,000 empty rows between them."""
    rng = random.Random(0)
    return "".join(f'<row r="{n}"><c r="A{n}"><v>{rng.random()}</v></c></row>' for n in range(1, 900_000, 90_000))


BOMBS: dict[str, Callable[[Path], None]] = {
    "field.csv.gz": lambda path: write_gzip(path, b'text,label\n"', MEGABYTE, 200, b'",x\nb,y\n'),
    "commas.csv.gz": lambda path: write_gzip(path, b"text,label\n", b"," * (1 << 20), 200, b"\n"),
    "empty_lines.csv.gz": lambda path: write_gzip(path, b"text,label\n", b"\n" * (1 << 20), 200, b"a,b\n"),
    "short_rows.csv.gz": lambda path: write_gzip(path, b"text,label\n", b"a,x\nb,y\n" * (1 << 17), 200),
    "line.jsonl.gz": lambda path: write_gzip(path, b'{"text":"', MEGABYTE, 200, b'","label":"x"}\n'),
    "item.json.gz": lambda path: write_gzip(path, b'[{"text":"', MEGABYTE, 200, b'","label":"x"}]'),
    "rows.parquet": many_rows,
    "word.parquet": one_long_word,
    "texts.parquet": long_texts,
    "nested.parquet": nested_words,
    "beginnings.parquet": shared_beginnings,
    "far.xlsx": sheets_of(far_cells("XFD")),
    "sheets.xlsx": sheets_of(gaps(), n=2000),
}

MEASURED = """
import sys, time
from pathlib import Path
from txcls.data.tables.table import Table
from txcls.errors import DataError
start = time.process_time()
try:
    for row in Table(Path(sys.argv[1])).rows():
        pass
except DataError as error:
    print(error)
seconds = time.process_time() - start
start = time.process_time()
sum(n for n in range(10_000_000))
loop = time.process_time() - start
# Not getrusage: its peak includes the parent process before exec.
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(int(peak.split()[1]) / 1024, seconds / loop)
"""
MAX_LOOPS = 6
"""Maximum time for a file, as a multiple of a loop over ten million numbers (2 seconds where that takes a third)."""


ONE_PER_READER = ("field.csv.gz", "item.json.gz", "texts.parquet", "nested.parquet", "far.xlsx")


@pytest.mark.parametrize("name", slow_but(ONE_PER_READER, BOMBS))
def test_decompression_bombs_are_refused_quickly_and_in_little_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    BOMBS[name](path)
    loops: list[float] = []
    # The minimum of up to three runs, since other processes may slow it down.
    while min(loops, default=MAX_LOOPS) >= MAX_LOOPS and len(loops) < 3:
        result = subprocess.run(
            [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, timeout=100
        )
        assert result.returncode == 0, result.stderr
        message, measurements = result.stdout.splitlines()
        megabytes, duration = map(float, measurements.split())
        loops.append(duration)
        assert name in message and len(message) < 500
        assert megabytes < 500, f"{megabytes:.0f} MB"
    assert min(loops) < MAX_LOOPS, loops


@pytest.mark.parametrize(
    "name, content, problem",
    [
        (
            "t.csv",
            "text,label\n" + "x" * (limits.MAX_FIELD_CHARACTERS + 1) + ",a\nb,c\n",
            "line 2: a field longer than 1,048,",
        ),
        (
            "t.tsv",
            "text\tlabel\n" + "x" * (limits.MAX_FIELD_CHARACTERS + 1) + "\ta\nb\tc\n",
            "line 2: a field longer than",
        ),
        ("t.csv", "text,label\n" + ("x" * 999 + ",") * 4500 + "\n", "line 2: longer than 4,194,304 characters"),
        ("t.csv", "text,label\n" + ('"\n' + "x" * 999 + '",') * 4500, "line 2: a row longer than 4,194,304"),
        ("t.csv", ",".join(map(str, range(10_001))) + "\n", "10,001 columns, expected at most 10,000"),
        ("t.csv", "text,label\n" + "\n" * 100_001 + "a,b\n", "100,000 empty lines before it"),
        ("t.jsonl", "{}" + " " * limits.MAX_ROW_CHARACTERS + "\n", "line 1: longer than"),
        ("t.jsonl", '{"text":"a","label":' + "[" * 101 + "]" * 101 + "}", "line 1: .*nested more than 100 levels deep"),
        ("t.json", '[{"text":"a","label":' + "[" * 500 + "]" * 500 + "}]", "item 1: .*nested more than 100 levels"),
        ("t.json", '[{"label":1,"text":"' + "x" * 5_000_000 + '"}]', "item 1: longer than 4,194,304 characters"),
        ("t.json", '[\n{"text":"a","label":1},\n{"text":"b" "label":2}]', "item 2, line 2: not JSON"),
        ("t.json", '[{"text":"a","label":1}\n{"text":"b","label":2}]', "item 2: not JSON"),
        ("t.json", '[{"text":"a","label":1}]\n]', "not JSON"),
        ("t.json", '[{"text":"a","label":1},', "not JSON"),
        ("t.json", '[{"text":"a","label":1},]', "not JSON"),
    ],
)
def test_limits_on_lines_fields_and_nesting_are_named_in_messages(
    tmp_path: Path, name: str, content: str, problem: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=rf"(?s){name}.*{problem}"):
        labelled_rows(Table(tmp_path / name), Guess("text", "label", "", "", is_guessed=False))


def test_too_many_training_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labelled, "MAX_TRAINING_ROWS", 20)
    table = pa.table({"text": [f"row {n}" for n in range(30)], "label": ["x", "y"] * 15})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("text,label\n" + "a,x\nb,y\n" * 15, encoding="utf-8")
    for name in ("t.parquet", "t.csv"):
        with pytest.raises(DataError, match=rf"{name}: more than 20 rows.*use a part of them"):
            open_dataset(DataConfig(dataset="table"), path=tmp_path / name)
        assert len(list(Table(tmp_path / name).rows())) == 30


def test_a_long_json_array_is_read_piece_by_piece(tmp_path: Path) -> None:
    items = [{"text": f'say "{n}" [,] {{}} é\n', "n": n, "x": [n, {"y": None}]} for n in range(20_000)]
    (tmp_path / "t.json").write_text(json.dumps(items, indent=1), encoding="utf-8")
    assert [row.values for row in Table(tmp_path / "t.json").rows()] == items


def archive_of(path: Path, files: dict[str, bytes]) -> Path:
    path.write_bytes(gzip.compress(tar(files)))
    return path


def test_archives_with_too_long_or_too_compressed_texts_are_refused(tmp_path: Path) -> None:
    too_long = bytes(range(256)) * (limits.MAX_TEXT_FILE_BYTES // 256 + 1)
    archive = archive_of(tmp_path / "long.tar.gz", {"a.txt": too_long})
    with pytest.raises(DataError, match=r"a\.txt: more than 4,194,304 bytes"):
        list(matching_files(archive, re.compile(r"a\.txt")))
    archive = archive_of(tmp_path / "zeros.tar.gz", {"b.bin": bytes(50 << 20), "a.txt": b"hello"})
    with pytest.raises(DataError, match="unpacks to more than 100 times its size"):
        list(matching_files(archive, re.compile(r"a\.txt")))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(bytes(limits.MAX_TEXT_FILE_BYTES + 1))
    with pytest.raises(DataError, match=r"a\.txt: more than"):
        list(matching_files(tmp_path / "folder", re.compile(r"a\.txt")))


@given(
    value=st.recursive(
        st.none() | st.text(max_size=5) | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(max_size=5), x)
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_arbitrary_json_is_refused(tmp_path: Path, value: object) -> None:
    (tmp_path / "t.json").write_text(json.dumps(value), encoding="utf-8")
    (tmp_path / "t.jsonl").write_text(json.dumps(value), encoding="utf-8")
    for read in (
        lambda: open_clinc150(DataConfig(dataset="clinc150"), tmp_path / "t.json"),
        lambda: read_labelled(tmp_path / "t.json"),
        lambda: read_labelled(tmp_path / "t.jsonl"),
    ):
        with pytest.raises(DataError, match=r"t\.json"):
            read()


def test_long_and_nested_texts_of_parquet_are_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_BATCH_BYTES", 1 << 20)
    rows = [{"text": "w" * 300_000, "all": ["v" * 10_000, "u"], "deep": {"x": f"{n}"}} for n in range(40)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet", compression="zstd", row_group_size=25)
    assert [row for _, row in parquet_rows(tmp_path / "t.parquet")] == rows
    rows = [{"text": f"beginning {n}"} for n in range(3000)]
    kinds = {"text": "DELTA_BYTE_ARRAY"}
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet", use_dictionary=False, column_encoding=kinds)
    assert [row for _, row in parquet_rows(tmp_path / "t.parquet")] == rows


WITH_LIMITED_MEMORY = """
import resource, sys
from pathlib import Path
from txcls.data.tables.labelled import read_labelled
resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))
print(len(read_labelled(Path(sys.argv[1]))[0].labelled))
"""


def test_a_gzipped_table_of_20_megabytes_is_read_with_600_megabytes_of_memory(tmp_path: Path) -> None:
    words = base64.b85encode(random.Random(0).randbytes(16_000_000)).decode()
    lines = "".join(f"{words[n : n + 200]},{'xy'[n // 200 % 2]}\n" for n in range(0, len(words), 200))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"text,label\n{lines}".encode(), 1))
    command = [sys.executable, "-c", WITH_LIMITED_MEMORY, str(tmp_path / "t.csv.gz")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert result.stdout == "100000\n", result.stderr


def test_lone_surrogates_in_json_are_read(tmp_path: Path) -> None:
    lines = (
        '{"text": "hello \\ud800", "label": "a\\udfff", "\\ud801": 1}\n{"text": "bye", "label": "b", "\\ud801": 2}\n'
    )
    (tmp_path / "t.jsonl").write_text(lines, encoding="utf-8")
    dataset = open_dataset(DataConfig(dataset="table"), path=tmp_path / "t.jsonl")
    assert len(dataset.load("train")) == 2
    with pytest.raises(DataError, match=r"t\.jsonl.*write \.jsonl instead"):
        Table(tmp_path / "t.jsonl").schema()
