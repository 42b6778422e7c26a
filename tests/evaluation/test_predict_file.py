"""Files of any size are classified in parts: only whole rows are written, and a killed run can be resumed."""

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from tests.conftest import TEXTS, Untrained, make_checkpoint, with_token_counts
from tests.data.tables.test_table import workbook
from txcls.data.hashes import sketch
from txcls.data.tables.safe_csv import escape_formula
from txcls.data.tables.table import Table
from txcls.errors import DataError, StoppedError
from txcls.evaluation import predict_file as module
from txcls.evaluation.predict_file import predict_file
from txcls.inference.predictor import Predictor

ROOT = Path(__file__).parents[2]
STRANGE_TEXTS = ["", "  ", 'with "quotes", commas', "line\nbreak", "tab\there", "שלום", "a\u2028b"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART_ROWS", 8)
    monkeypatch.setattr(module, "CHUNK_ROWS", 3)


def texts(n: int) -> list[str]:
    return [STRANGE_TEXTS[i // 5 % 7] if i % 5 == 4 else f"{TEXTS[i % 8]} {i}" for i in range(n)]


def write(path: Path, n: int) -> Path:
    """A table of n rows with the columns id and body."""
    frame = pd.DataFrame({"id": [str(i) for i in range(n)], "body": texts(n)})
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return [
            {name: None if value != value else value for name, value in row.items()}
            for row in pd.read_parquet(path).to_dict("records")
        ]
    if path.suffix == ".xlsx":
        rows = pd.read_excel(path, keep_default_na=False, dtype={"id": str}).to_dict("records")
        return [{**row, "probability": row["probability"] or None} for row in rows]
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    file = io.StringIO(raw.decode(), newline="")
    rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True))
    return [{**row, "probability": float(row["probability"]) if row["probability"] else None} for row in rows]


PAIRWISE = [
    ("in.csv", "out.jsonl", 1),
    ("in.tsv", "out.parquet", 7),
    ("in.jsonl", "out.csv.gz", 8),
    ("in.parquet", "out.csv", 9),
    ("in.csv", "out.tsv", 40),
    ("in.jsonl", "out.parquet", 40),
    ("in.parquet", "out.jsonl", 8),
    ("in.jsonl", "out.xlsx", 40),
]
"""Every format as input and as output, with numbers of rows around the size of a part."""


@pytest.mark.parametrize("source, target, n", PAIRWISE)
def test_every_row_comes_back_in_order_with_its_prediction(
    classifier: Predictor, tmp_path: Path, source: str, target: str, n: int
) -> None:
    reported: list[tuple[int, int]] = []
    write(tmp_path / source, n)
    result = predict_file(
        classifier,
        tmp_path / source,
        tmp_path / target,
        text_column="body",
        on_rows=lambda *progress: reported.append(progress),
    )
    rows = read(tmp_path / target)
    assert [row["body"] for row in rows] == texts(n) and [row["id"] for row in rows] == [str(i) for i in range(n)]
    for row, prediction in zip(rows, classifier.predict(texts(n)), strict=True):
        assert list(row) == ["id", "body", "predicted_label", "probability"]
        assert row["predicted_label"] == (prediction.label or "")
        if prediction.label is None:
            assert row["probability"] is None
        else:
            assert row["probability"] == pytest.approx(prediction.ranked[0].probability, abs=1e-6)
    counts = [count for count, _ in reported]
    assert result.n_rows == n == result.checked.n_rows and (reported[0], reported[-1]) == ((0, n), (n, n))
    assert counts == sorted(set(counts)) and {8 * part for part in range(n // 8 + 1)} <= set(counts)
    assert {path.name for path in tmp_path.iterdir()} == {source, target}


@pytest.mark.parametrize(
    "content, begins",
    [
        ("id;body\n1;café, sagt er\n".encode("cp1252"), b"\xef\xbb\xbfid;body;predicted_label;probability\n"),
        ("id,body\n1,café\n".encode("cp1252"), b"\xef\xbb\xbfid,body,"),
        ("id,body\n1,café\n".encode("utf-8-sig"), b"\xef\xbb\xbfid,body,"),
        ("id\tbody\n1\tcafé\n".encode("utf-16"), b"\xef\xbb\xbfid,body,"),
        ("id,body\n1,café\n".encode(), b"id,body,"),
    ],
)
def test_a_csv_has_the_delimiter_and_the_byte_order_mark_that_its_input_suggests(
    classifier: Predictor, tmp_path: Path, content: bytes, begins: bytes
) -> None:
    (tmp_path / "in.csv").write_bytes(content)
    said: list[str] = []
    target = tmp_path / "out.csv"
    predict_file(classifier, tmp_path / "in.csv", target, on_checked=lambda checked: said.extend(checked.notes))
    assert target.read_bytes().startswith(begins) and "café" in target.read_text("utf-8")
    assert said[-1] == "Texts: column 'body', guessed."
    predict_file(classifier, tmp_path / "in.csv", tmp_path / "out.tsv", text_column="body")
    assert b"id\tbody\tpredicted_label" in (tmp_path / "out.tsv").read_bytes()


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl", "out.parquet"])
def test_each_of_the_best_classes_has_its_own_columns(classifier: Predictor, tmp_path: Path, target: str) -> None:
    source = write(tmp_path / "in.csv", 20)
    predict_file(classifier, source, tmp_path / target, text_column="body", top_k=2)
    for row, prediction in zip(read(tmp_path / target), classifier.predict(texts(20), top_k=2), strict=True):
        added = ["predicted_label", "probability", "predicted_label_2", "probability_2"]
        assert list(row) == ["id", "body", *added]
        best = [(row["predicted_label"], row["probability"]), (row["predicted_label_2"], row["probability_2"])]
        expected = [(score.label, pytest.approx(score.probability, abs=1e-6)) for score in prediction.ranked]
        assert [(label, float(share)) for label, share in best if label] == expected


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl", "out.parquet"])
def test_rows_below_a_probability_are_marked_for_review(classifier: Predictor, tmp_path: Path, target: str) -> None:
    source = write(tmp_path / "in.csv", 20)
    predictions = classifier.predict(texts(20))
    known = sorted(prediction.probability for prediction in predictions if prediction.probability is not None)
    below = max((b - a, (a + b) / 2) for a, b in pairwise(known))[1]
    result = predict_file(classifier, source, tmp_path / target, text_column="body", review_below=below)
    rows = read(tmp_path / target)
    assert list(rows[0]) == ["id", "body", "predicted_label", "probability", "needs_review"]
    expected = ["no" if (prediction.probability or 0.0) >= below else "yes" for prediction in predictions]
    assert [row["needs_review"] for row in rows] == expected and len(set(expected)) == 2
    n, n_empty = expected.count("yes"), sum(prediction.label is None for prediction in predictions)
    assert n > n_empty > 0
    assert result.review == (
        f"{n} of 20 rows need review ({5 * n}.0\u00a0%): {n - n_empty} with a probability below {100 * below:g}\u00a0% "
        f"and {n_empty} without words."
    )


def test_a_file_of_another_kind_is_said_to_be_unusual(classifier: Predictor, tmp_path: Path) -> None:
    counted = Predictor(with_token_counts(replace(classifier.checkpoint, path=tmp_path / "counted")))
    known = tmp_path / "known.csv"
    known.write_text("id,body\n" + "".join(f"1,{text}\n" for text in TEXTS))
    assert predict_file(counted, known, tmp_path / "out.csv", text_column="body").unusual == ""
    (tmp_path / "other.csv").write_text("id,body\n" + "1,很快，好吃\n" * 40 + "2,\n" * 9, encoding="utf-8")
    result = predict_file(counted, tmp_path / "other.csv", tmp_path / "out.csv", text_column="body", review_below=1.0)
    assert result.unusual == "40 of 49 rows are unusual for this model: their predictions may be wrong."
    assert "49 of 49 rows need review (100.0\u00a0%): 40 with" in result.review and "9 without words" in result.review


def test_an_interrupted_run_is_kept_and_resumed(classifier: Predictor, tmp_path: Path) -> None:
    source, target, whole = write(tmp_path / "in.csv", 50), tmp_path / "out.csv", tmp_path / "whole.csv"
    predict_file(classifier, source, whole, review_below=1.0)
    target.write_text("an older file")

    def stop(done: int, total: int) -> None:
        if done == 24:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(
        StoppedError, match=r"stopped after 24 of 50 rows, which are saved in .*out\.csv\.parts; continue with --resume"
    ):
        predict_file(classifier, source, target, review_below=1.0, on_rows=stop)
    assert target.read_text() == "an older file"
    with pytest.raises(DataError, match=r"out\.csv\.parts holds an unfinished run; continue it with --resume"):
        predict_file(classifier, source, target)
    seen: list[int] = []
    result = predict_file(
        classifier, source, target, review_below=1.0, resume=True, on_rows=lambda n, _: seen.append(n)
    )
    assert "of 26 rows classified in this run need review" in result.review
    assert seen[0] == 24, "finished parts are not repeated"
    assert target.read_bytes() == whole.read_bytes() and not (tmp_path / "out.csv.parts").exists()
    with pytest.raises(DataError, match=r"nothing to resume: there is no .*out\.csv\.parts"):
        predict_file(classifier, source, target, resume=True)


def test_a_run_with_another_input_or_checkpoint_cannot_be_resumed(
    classifier: Predictor, tmp_path: Path, untrained: Untrained
) -> None:
    source, target = write(tmp_path / "in.csv", 20), tmp_path / "out.csv"

    def stop(done: int, total: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(StoppedError):
        predict_file(classifier, source, target, on_rows=stop)
    other = untrained(classes=("a", "b"))
    with pytest.raises(DataError, match=r"different settings \(checkpoint_sha256\) and cannot be resumed"):
        predict_file(other, source, target, resume=True)
    with pytest.raises(DataError, match=r"different settings \(precision\) and cannot be resumed"):
        predict_file(classifier, source, target, precision="bfloat16", resume=True)
    write(source, 21)
    with pytest.raises(DataError, match=r"different settings \(input_sha256\) and cannot be resumed"):
        predict_file(classifier, source, target, resume=True)
    (tmp_path / "out.csv.parts" / "plan.json").write_text("{")
    with pytest.raises(DataError, match=r"plan\.json cannot be read"):
        predict_file(classifier, source, target, resume=True)


def test_a_bad_row_is_named_before_any_row_is_classified(classifier: Predictor, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    for last, problem in (
        ("one field too many,2,3\n", r"row 102: more fields than the 2 columns; quote .* or remove such rows"),
        ('"cut o', "line 102: the file ends inside a quoted field"),
    ):
        source.write_text("text,n\n" + "fine,1\n" * 100 + last)
        with pytest.raises(DataError, match=problem):
            predict_file(classifier, source, tmp_path / "o.csv", on_rows=lambda *_: pytest.fail("rows were classified"))
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_the_check_of_all_rows_also_finds_those_trained_on(
    classifier: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = Predictor(classifier.checkpoint.with_metrics(data={"sketch": sketch(texts(20))}))
    source, readings, rows_of = write(tmp_path / "in.csv", 40), [], Table.rows

    def counted(table: Table, *args: Any, **options: Any) -> Any:
        readings.append(table)
        return rows_of(table, *args, **options)

    monkeypatch.setattr(Table, "rows", counted)
    checked = predict_file(trained, source, tmp_path / "out.csv", text_column="body").checked
    assert "was trained on 21 of these 40 rows" in checked.warning, "another empty row is the same text"
    assert len(readings) == 3, "read to sample the columns, to check all rows and to classify them"
    checked = predict_file(classifier, source, tmp_path / "other.csv", text_column="body").checked
    assert (checked.n_rows, checked.text_column, checked.warning) == (40, "body", "")


def test_html_is_mentioned(classifier: Predictor, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("text\n" + "<style>p {margin: 0}</style><p>bank shares</p>\n" * 10)
    checked = predict_file(classifier, source, tmp_path / "out.csv").checked
    assert "style sheets and scripts are read as words" in checked.warning
    config = classifier.checkpoint.config
    data = config.data.model_copy(update={"strip_html": True})
    checkpoint = replace(classifier.checkpoint, config=config.model_copy(update={"data": data}))
    checked = predict_file(Predictor(checkpoint), source, tmp_path / "stripped.csv").checked
    assert "only their visible text is read" in checked.warning


def test_a_full_disk_leaves_whole_parts(classifier: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = write(tmp_path / "in.csv", 20), tmp_path / "out.csv"

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    def fill(done: int, total: int) -> None:
        if done == 8:
            monkeypatch.setattr("os.fsync", full)

    with pytest.raises(DataError, match="No space left"):
        predict_file(classifier, source, target, on_rows=fill)
    assert sorted(path.name for path in (tmp_path / "out.csv.parts").iterdir()) == ["00000000", "plan.json"]


def start(arguments: list[str], cwd: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.evaluation.small_parts", "predict", "tiny", "--input", "in.csv", *arguments]
    return subprocess.Popen(command, cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True)


def parts_of(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.isdigit()} if folder.exists() else set()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_killed_process_leaves_whole_rows_and_is_resumed(tmp_path: Path) -> None:
    make_checkpoint(tmp_path / "tiny")
    write(tmp_path / "in.csv", 2000)
    folder = tmp_path / "out.csv.parts"
    uninterrupted = start(["--output", "whole.csv"], tmp_path)
    assert "wrote 2,000 rows to whole.csv" in uninterrupted.communicate(timeout=300)[1]
    whole = (tmp_path / "whole.csv").read_bytes()
    header_end = whole.index(b"\n") + 1
    process = start(["--output", "out.csv"], tmp_path)
    while len(parts_of(folder)) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL and not (tmp_path / "out.csv").exists()
    written = b"".join((folder / name).read_bytes() for name in sorted(parts_of(folder)))
    assert written and whole[header_end:].startswith(written), "every part is whole"
    resumed = start(["--output", "out.csv", "--resume"], tmp_path)
    resumed.communicate(timeout=300)
    assert resumed.returncode == 0
    assert (tmp_path / "out.csv").read_bytes() == whole and not folder.exists()


FORMULAS = ["=cmd|' /C calc'!A0", "@SUM(A1)", "+1+cmd", "-2+3", "\tx y", "\rx y", "＝1+1"]


@pytest.mark.parametrize("target", ["out.csv", "out.tsv"])
def test_a_table_made_safe_for_spreadsheets_holds_no_formula(tmp_path: Path, untrained: Untrained, target: str) -> None:
    hostile = untrained(classes=("=1+1", "@b", "+c", "-d"))
    rows = [{"=id": number, "text": f"{text} the striker"} for text, number in zip(FORMULAS, "123", strict=False)]
    rows += [{"=id": "-5", "text": "-12.5 the"}, {"=id": "+3e5", "text": "plain the"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    predict_file(hostile, tmp_path / "in.jsonl", tmp_path / target, spreadsheet_safe=True)
    delimiter = "\t" if target.endswith("tsv") else ","
    with (tmp_path / target).open(encoding="utf-8", newline="") as file:
        written = list(csv.reader(file, delimiter=delimiter, strict=True))
    assert written[0] == ["'=id", "text", "predicted_label", "probability"]
    assert [row[0] for row in written[1:]] == ["1", "2", "3", "-5", "+3e5"]
    assert all(row[2][:2] in ("'=", "'@", "'+", "'-") for row in written[1:])
    assert [row[1][0] for row in written[1:]] == ["'", "'", "'", "'", "p"]
    assert all(escape_formula(formula) == f"'{formula}" for formula in FORMULAS)
    predict_file(hostile, tmp_path / "in.jsonl", tmp_path / f"as_is.{target}")
    assert b"'=id" not in (tmp_path / f"as_is.{target}").read_bytes()
    with pytest.raises(DataError, match="spreadsheet-safe output is CSV or TSV"):
        predict_file(hostile, tmp_path / "in.jsonl", tmp_path / "out.jsonl", spreadsheet_safe=True)


def test_a_workbook_keeps_the_types_of_cells_and_holds_no_formula(
    untrained: Untrained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dates = [pd.Timestamp(text).to_pydatetime() for text in ("2024-02-03", "2024-02-03 10:30")]
    row = ["=1+1 the", 5, 1.5, True, *dates, "7", "2024-02-03"]
    workbook(tmp_path / "in.xlsx", Sheet=[["text", *"bcdefgh"], row, ["plain the"]])
    book = openpyxl.load_workbook(tmp_path / "in.xlsx")
    book["Sheet"]["A2"].data_type = "s"
    book.save(tmp_path / "in.xlsx")
    hostile = untrained(classes=("=1+1", "@b", "+c", "-d"))
    assert predict_file(hostile, tmp_path / "in.xlsx", tmp_path / "out.xlsx", text_column="text")[0] == 2
    cells = list(openpyxl.load_workbook(tmp_path / "out.xlsx").active.iter_rows())
    assert [cell.value for cell in cells[0][:2]] == ["text", "b"] and [cell.value for cell in cells[1][:8]] == row
    assert cells[1][4].number_format == "yyyy-mm-dd" and isinstance(cells[1][9].value, float)
    assert all(cell.data_type != "f" for line in cells for cell in line) and cells[2][1].value is None
    odd = [{"text": "the \ud800\0\uffff", "n": 10**18 + 1, "list": [1]}, {"text": "the", "n": float("nan")}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in odd))
    predict_file(hostile, tmp_path / "in.jsonl", tmp_path / "out.xlsx", text_column="text")
    read = [[cell.value for cell in line[:3]] for line in openpyxl.load_workbook(tmp_path / "out.xlsx").active]
    assert read[1:] == [["the ", str(10**18 + 1), "[1]"], ["the", None, None]]
    monkeypatch.setattr(module, "MAX_SHEET_ROWS", 2)
    with pytest.raises(DataError, match=r"out\.xlsx: 2 rows do not fit into a workbook, which has at most 1 below"):
        predict_file(hostile, tmp_path / "in.jsonl", tmp_path / "out.xlsx", text_column="text")
    with pytest.raises(DataError, match=r"expected \.csv, \.tsv, \.jsonl, \.parquet or \.xlsx"):
        predict_file(hostile, tmp_path / "in.jsonl", tmp_path / "out.xlsm", text_column="text")


@pytest.mark.parametrize("other", ["./sub/../in.csv", "hard.csv", "soft.csv"])
def test_writing_over_the_input_is_refused(classifier: Predictor, tmp_path: Path, other: str) -> None:
    source = write(tmp_path / "in.csv", 3)
    before = source.read_bytes()
    (tmp_path / "sub").mkdir()
    os.link(source, tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to("in.csv")
    with pytest.raises(DataError, match="same file as --input"):
        predict_file(classifier, source, tmp_path / other, text_column="body")
    assert source.read_bytes() == before and not list(tmp_path.glob("*.parts"))
