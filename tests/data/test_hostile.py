"""Damaged and hostile tables and archives: one DataError that says what to do, soon and in little memory."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import slow_but
from txcls.config import DataConfig
from txcls.data import limits
from txcls.data.archives import matching_files
from txcls.data.datasets import open_dataset
from txcls.data.published.clinc150 import open_clinc150
from txcls.data.published.imdb import read_reviews
from txcls.data.tables import labelled, parquet
from txcls.data.tables.parquet import parquet_rows
from txcls.data.tables.stream import TableStream
from txcls.errors import DataError

MEGABYTE = b"a" * (1 << 20)


def packed(path: Path, head: bytes, piece: bytes, n: int, tail: bytes = b"") -> None:
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
    """A hundred thousand rows, each a megabyte long, in about a kilobyte."""
    words = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int8()), pa.array(["a" * 1_000_000]))
    labels = pa.array(["x", "y"] * 50_000)
    pq.write_table(pa.table({"text": words, "label": labels}), path, compression="zstd", store_schema=False)


def long_texts(path: Path) -> None:
    """100 megabytes of texts in some kilobytes."""
    table = pa.table({"text": ["a" * 1_000_000] * 100, "label": ["x", "y"] * 50})
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


BOMBS: dict[str, Callable[[Path], None]] = {
    "field.csv.gz": lambda path: packed(path, b'text,label\n"', MEGABYTE, 200, b'",x\nb,y\n'),
    "header.csv.gz": lambda path: packed(path, b"", MEGABYTE, 200, b",x\nb,y\n"),
    "field.tsv.gz": lambda path: packed(path, b"text\tlabel\n", MEGABYTE, 200, b"\tx\nb\ty\n"),
    "commas.csv.gz": lambda path: packed(path, b"text,label\n", b"," * (1 << 20), 200, b"\n"),
    "open_row.csv.gz": lambda path: packed(path, b"text,label\n", b'"\n",' * (1 << 18), 200, b"\n"),
    "empty_lines.csv.gz": lambda path: packed(path, b"text,label\n", b"\n" * (1 << 20), 200, b"a,b\n"),
    "short_rows.csv.gz": lambda path: packed(path, b"text,label\n", b"a,x\nb,y\n" * (1 << 17), 200),
    "line.jsonl.gz": lambda path: packed(path, b'{"text":"', MEGABYTE, 200, b'","label":"x"}\n'),
    "blank.jsonl.gz": lambda path: packed(path, b"", b" " * (1 << 20), 200),
    "item.json.gz": lambda path: packed(path, b'[{"text":"', MEGABYTE, 200, b'","label":"x"}]'),
    "items.json.gz": lambda path: packed(path, b"[", b'{"text":"a","label":"x"},' * 40_000, 200, b"{}]"),
    "rows.parquet": many_rows,
    "word.parquet": one_long_word,
    "texts.parquet": long_texts,
}

MEASURED = """
import sys, time
from pathlib import Path
import pyarrow.parquet
from txcls.config import DataConfig
from txcls.data.datasets import open_dataset
from txcls.errors import DataError
began = time.process_time()
try:
    open_dataset(DataConfig(dataset="table"), path=Path(sys.argv[1]))
except DataError as error:
    print(error)
took = time.process_time() - began
# Not getrusage, which begins with the size of the process that started this one.
[peak] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(int(peak.split()[1]) / 1024, took)
"""


ONE_FOR_EACH_READER = ("field.csv.gz", "item.json.gz", "texts.parquet")


@pytest.mark.parametrize("name", slow_but(ONE_FOR_EACH_READER, BOMBS))
def test_a_small_file_that_holds_far_too_much_is_refused_soon_and_in_little_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    BOMBS[name](path)
    seconds = []
    while (
        min(seconds, default=2.0) >= 2.0 and len(seconds) < 3
    ):  # the best of three: other processes slow this one down
        ran = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, timeout=100)
        assert ran.returncode == 0, ran.stderr
        message, figures = ran.stdout.splitlines()
        megabytes, took = map(float, figures.split())
        seconds.append(took)
        assert name in message and len(message) < 500
        assert megabytes < 500, f"{megabytes:.0f} MB"
    assert min(seconds) < 2, seconds


@pytest.mark.parametrize("name", ["short_rows.csv.gz", "word.parquet"])
def test_a_look_at_a_table_reads_its_first_rows_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    BOMBS[name](path)
    dataset = open_dataset(DataConfig(dataset="table"), path=path, sampled=True)
    read = dataset.load("train")
    assert 10 < len(read) <= limits.SAMPLE_ROWS and dataset.classes == ("x", "y")
    assert dataset.description == f"a sample: the first {len(read):,} rows; the file has more"


@pytest.mark.parametrize(
    "name, content, problem",
    [
        (
            "t.csv",
            "text,label\n" + "x" * (limits.LONGEST_FIELD + 1) + ",a\nb,c\n",
            "line 2: a field longer than 1,048,",
        ),
        ("t.tsv", "text\tlabel\n" + "x" * (limits.LONGEST_FIELD + 1) + "\ta\nb\tc\n", "line 2: a field longer than"),
        ("t.csv", "text,label\n" + ("x" * 999 + ",") * 4500 + "\n", "line 2: longer than 4,194,304 characters"),
        ("t.csv", "text,label\n" + ('"\n' + "x" * 999 + '",') * 4500, "line 2: a row longer than 4,194,304"),
        ("t.csv", ",".join(map(str, range(10_001))) + "\n", "10,001 columns, wanted 10,000 at most"),
        ("t.csv", "text,label\n" + "\n" * 100_001 + "a,b\n", "100,000 empty lines before it"),
        ("t.jsonl", json.dumps({"text": "x" * (limits.LONGEST_FIELD + 1), "label": 1}), "line 1: 1,048,577 characters"),
        ("t.jsonl", "{}" + " " * limits.LONGEST_ROW + "\n", "line 1: longer than"),
        ("t.jsonl", '{"text":"a","label":' + "[" * 101 + "]" * 101 + "}", "line 1: .*nested more than 100 levels deep"),
        ("t.json", '[{"text":"a","label":' + "[" * 500 + "]" * 500 + "}]", "item 1: .*nested more than 100 levels"),
        ("t.json", '[{"label":1,"text":"' + "x" * 5_000_000 + '"}]', "item 1: longer than 4,194,304 characters"),
        ("t.json", '[\n{"text":"a","label":1},\n{"text":"b" "label":2}]', "line 3: not JSON"),
        ("t.json", '[{"text":"a","label":1}\n{"text":"b","label":2}]', "line 2: not JSON"),
        ("t.json", '[{"text":"a","label":1}]\n]', "line 2: not JSON"),
        ("t.json", '[{"text":"a","label":1},', "not JSON"),
        ("t.json", '[{"text":"a","label":1},]', "not JSON"),
    ],
)
def test_lines_fields_and_nesting_have_limits_that_the_message_names(
    tmp_path: Path, name: str, content: str, problem: str
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    for read in (
        lambda path: open_dataset(DataConfig(dataset="table"), path=path),
        lambda path: TableStream(path).survey(),
    ):
        with pytest.raises(DataError, match=rf"(?s){name}.*{problem}"):
            read(tmp_path / name)


def test_a_table_of_too_many_rows_to_hold_is_refused_and_a_look_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labelled, "MAX_ROWS", 20)
    table = pa.table({"text": [f"row {n}" for n in range(30)], "label": ["x", "y"] * 15})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("text,label\n" + "a,x\nb,y\n" * 15, encoding="utf-8")
    for name, rows_there in (("t.parquet", "30 rows, wanted 20 at most"), ("t.csv", "more than 20 rows")):
        with pytest.raises(DataError, match=rf"{name}: {rows_there}.*use a part of them"):
            open_dataset(DataConfig(dataset="table"), path=tmp_path / name)
        assert TableStream(tmp_path / name).survey().rows == 30


def test_a_long_json_array_is_read_piece_by_piece(tmp_path: Path) -> None:
    items = [{"text": f'say "{n}" [,] {{}} é\n', "n": n, "x": [n, {"y": None}]} for n in range(20_000)]
    (tmp_path / "t.json").write_text(json.dumps(items, indent=1), encoding="utf-8")
    assert list(TableStream(tmp_path / "t.json").rows()) == items


def test_keys_and_values_that_no_encoding_can_write_are_read(tmp_path: Path) -> None:
    lines = (
        '{"text": "hello \\ud800", "label": "a\\udfff", "\\ud801": 1}\n{"text": "bye", "label": "b", "\\ud801": 2}\n'
    )
    (tmp_path / "t.jsonl").write_text(lines, encoding="utf-8")
    dataset = open_dataset(DataConfig(dataset="table"), path=tmp_path / "t.jsonl")
    assert len(dataset.load("train")) == 2
    with pytest.raises(DataError, match=r"t\.jsonl.*write \.jsonl instead"):
        TableStream(tmp_path / "t.jsonl").survey(typed=True)


def test_a_packed_file_that_breaks_off_in_the_middle_of_a_wrong_byte_is_refused(tmp_path: Path) -> None:
    """Looking for the line of the wrong byte meets the end of the file, which the command line took for Ctrl-C."""
    whole = gzip.compress(b"text,label\ncaf\xe9,x\n" + bytes(range(256)) * 2000)
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"t\.csv\.gz: cannot read it \(Compressed file ended"):
        TableStream(tmp_path / "t.csv.gz").survey()


def tar(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def test_an_archive_with_a_text_too_long_or_swelling_is_refused(tmp_path: Path) -> None:
    archive = tar(tmp_path / "long.tar.gz", {"a.txt": bytes(range(256)) * (limits.LONGEST_FILE // 256 + 1)})
    with pytest.raises(DataError, match=r"a\.txt: more than 4,194,304 bytes"):
        list(matching_files(archive, re.compile(r"a\.txt")))
    archive = tar(tmp_path / "zeros.tar.gz", {"b.bin": bytes(50 << 20), "a.txt": b"hello"})
    with pytest.raises(DataError, match="unpacks to more than 100 times its size"):
        list(matching_files(archive, re.compile(r"a\.txt")))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_bytes(bytes(limits.LONGEST_FILE + 1))
    with pytest.raises(DataError, match=r"a\.txt: more than"):
        list(matching_files(tmp_path / "folder", re.compile(r"a\.txt")))


def test_the_longest_texts_that_are_published_are_read(tmp_path: Path) -> None:
    """20 Newsgroups has a post of 160,616 characters, IMDB a review of 13,704; a file of ten times that is no bomb."""
    review = " ".join(f"word{n}" for n in range(100_000)).encode()
    files = {f"aclImdb/train/{name}/{n}_7.txt": review for n, name in enumerate(("neg", "pos"))}
    assert max(map(len, read_reviews(tar(tmp_path / "i.tar.gz", files), "train").texts)) == len(review) > 800_000


WHOLE: dict[str, bytes] = {}
for ending in ("csv", "tsv", "jsonl", "json", "csv.gz", "parquet"):
    ROWS = [{"text": f'the train {n} é, "quoted"', "label": "ab"[n % 2], "n": n} for n in range(60)]
    if ending == "parquet":
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(ROWS), sink, row_group_size=25)
        WHOLE[ending] = sink.getvalue()
    elif ending.startswith("json"):
        lines = [json.dumps(row) for row in ROWS]
        WHOLE[ending] = ("\n".join(lines) if ending == "jsonl" else f"[{','.join(lines)}]").encode()
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, ["text", "label", "n"], delimiter="\t" if ending == "tsv" else ",")
        writer.writeheader()
        writer.writerows(ROWS)
        WHOLE[ending] = text.getvalue().encode()
    if ending.endswith(".gz"):
        WHOLE[ending] = gzip.compress(WHOLE[ending])

Edit = tuple[int, bytes]
EDITS = st.lists(st.tuples(st.integers(0, 1 << 14), st.binary(max_size=8)), max_size=5)


def damaged(raw: bytes, edits: list[Edit], cut: int) -> bytes:
    changed = bytearray(raw)
    for place, piece in edits:
        place %= len(changed) or 1
        changed[place : place + len(piece)] = piece
    return bytes(changed[: len(changed) - cut % (len(changed) or 1)] if cut else changed)


def answer_or_problem(read: Callable[[], int], path: Path) -> str | None:
    """None where reading gives rows or one clear error; else what it gives."""
    try:
        n = read()
    except DataError as error:
        message = str(error)
        return None if path.name in message and "\n" not in message and len(message) < 2500 else message
    return None if n >= 0 else f"{n} rows"


@pytest.mark.parametrize("ending", WHOLE)
@given(edits=EDITS, cut=st.one_of(st.just(0), st.integers(0, 1 << 14)))
@example(edits=[], cut=0)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_table_gives_rows_or_one_clear_error(
    tmp_path: Path, ending: str, edits: list[Edit], cut: int
) -> None:
    path = tmp_path / f"t.{ending}"
    path.write_bytes(damaged(WHOLE[ending], edits, cut))
    for read in (
        lambda: len(open_dataset(DataConfig(dataset="table"), path=path).load("train")),
        lambda: len(open_dataset(DataConfig(dataset="table"), path=path, sampled=True).load("train")),
        lambda: TableStream(path).survey().rows,
        lambda: sum(1 for _ in TableStream(path).rows()),
    ):
        assert answer_or_problem(read, path) is None


@given(edits=EDITS, cut=st.one_of(st.just(0), st.integers(0, 1 << 14)), mode=st.sampled_from(["gz", "xz", "bz2", ""]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_archive_gives_reviews_or_one_clear_error(
    tmp_path: Path, edits: list[Edit], cut: int, mode: str
) -> None:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=f"w:{mode}") as archive:
        for n, name in enumerate(["neg", "pos"] * 4):
            entry = tarfile.TarInfo(f"aclImdb/train/{name}/{n}_3.txt")
            entry.size = 20
            archive.addfile(entry, io.BytesIO(b"a film of many words"))
    path = tmp_path / "aclImdb_v1.tar"
    path.write_bytes(damaged(sink.getvalue(), edits, cut))
    assert answer_or_problem(lambda: len(read_reviews(path, "train")), path) is None


@given(
    value=st.recursive(
        st.none() | st.text(max_size=5) | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(max_size=5), x)
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_json_value_is_no_clinc_file_or_table(tmp_path: Path, value: object) -> None:
    (tmp_path / "t.json").write_text(json.dumps(value), encoding="utf-8")
    (tmp_path / "t.jsonl").write_text(json.dumps(value), encoding="utf-8")
    for read in (
        lambda: open_clinc150(DataConfig(dataset="clinc150"), tmp_path / "t.json"),
        lambda: TableStream(tmp_path / "t.json").survey(text_column="text"),
        lambda: TableStream(tmp_path / "t.jsonl").survey(text_column="text"),
    ):
        with pytest.raises(DataError, match=r"t\.json"):
            read()


def test_dictionary_sizes_of_parquet_are_read_from_their_pages(tmp_path: Path) -> None:
    for n in (10, 1_000, 300_000):
        pq.write_table(pa.table({"text": ["w" * n] * 40}), tmp_path / "t.parquet", compression="zstd")
        with (tmp_path / "t.parquet").open("rb") as raw:
            chunk = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0).column(0)
            assert parquet._dictionary_bytes(raw, chunk) == n + 4
    assert [row["text"] for _, row in parquet_rows(tmp_path / "t.parquet")] == ["w" * 300_000] * 40
