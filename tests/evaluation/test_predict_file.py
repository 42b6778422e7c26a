import csv
import io
import json
import os
import re
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest

from tests.conftest import TEXTS, Untrained, with_token_counts
from tests.data.test_table import workbook
from txcls.data.types import LabelledTexts
from txcls.errors import DataError, StoppedError
from txcls.evaluation import predict_file as module
from txcls.evaluation.linear import fit_linear, load_linear, save_linear
from txcls.evaluation.predict_file import predict_file
from txcls.inference.predictor import Predictor

STRANGE_TEXTS = ["", "  ", 'with "quotes", commas', "line\nbreak", "tab\there", "שלום", "a\u2028b"]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_ROWS", 8)


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
    raw = path.read_bytes()
    file = io.StringIO(raw.decode(), newline="")
    rows = list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True))
    return [{**row, "probability": float(row["probability"]) if row["probability"] else None} for row in rows]


PAIRWISE = [
    ("in.csv", "out.jsonl", 1),
    ("in.tsv", "out.parquet", 7),
    ("in.jsonl", "out.csv", 8),
    ("in.parquet", "out.csv", 9),
    ("in.csv", "out.tsv", 40),
    ("in.jsonl", "out.parquet", 40),
    ("in.parquet", "out.jsonl", 8),
    ("in.jsonl", "out.xlsx", 40),
]
"""Every format as input and as output, with numbers of rows around the size of a piece."""


@pytest.mark.parametrize("source, target, n", PAIRWISE)
def test_every_row_comes_back_in_order_with_its_prediction(
    classifier: Predictor, tmp_path: Path, source: str, target: str, n: int
) -> None:
    reported: list[tuple[int, int | None]] = []
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
    assert result == n and reported == [(min(8 * piece, n), n) for piece in range(1, -(-n // 8) + 1)]
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
    predict_file(classifier, tmp_path / "in.csv", target, on_note=said.append)
    assert target.read_bytes().startswith(begins) and "café" in target.read_text("utf-8")
    assert said[-1] == "Texts: column 'body', guessed."
    predict_file(classifier, tmp_path / "in.csv", tmp_path / "out.tsv", text_column="body")
    assert b"id\tbody\tpredicted_label" in (tmp_path / "out.tsv").read_bytes()


@pytest.mark.parametrize("cells, mark", [(("0,5", "1,25"), ","), (("0.5", "1.25"), "."), (("1", "2"), ".")])
def test_a_table_with_decimal_commas_gets_decimal_commas(
    classifier: Predictor, tmp_path: Path, cells: tuple[str, str], mark: str
) -> None:
    (tmp_path / "in.csv").write_text("prix;body\n" + "".join(f"{cell};a text\n" for cell in cells), "utf-8")
    predict_file(classifier, tmp_path / "in.csv", tmp_path / "out.csv", text_column="body")
    lines = (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("prix;body;predicted_label;probability")
    assert all(re.fullmatch(rf"0\{mark}\d+", line.split(";")[3]) for line in lines[1:])


def test_a_probability_of_zero_is_written_with_a_decimal_comma_and_none_stays_empty(
    classifier: Predictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certain = np.eye(len(classifier.classes))[:1]
    monkeypatch.setattr(
        classifier, "probabilities_of_ids", lambda ids, **_: np.concatenate([certain, certain * np.nan])
    )
    (tmp_path / "in.csv").write_text("prix;body\n0,5;a text\n1,5;\n", "utf-8")
    predict_file(classifier, tmp_path / "in.csv", tmp_path / "out.csv", text_column="body", top_k=2)
    rows = [line.split(";") for line in (tmp_path / "out.csv").read_text("utf-8-sig").splitlines()]
    columns = [rows[0].index(name) for name in ("probability", "probability_2")]
    assert [[row[n] for n in columns] for row in rows[1:]] == [["1,0", "0,0"], ["", ""]]


def test_each_of_the_best_classes_has_its_own_columns(classifier: Predictor, tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.csv", 20), tmp_path / "out.jsonl"
    predict_file(classifier, source, target, text_column="body", top_k=2)
    for row, prediction in zip(read(target), classifier.predict(texts(20), top_k=2), strict=True):
        added = ["predicted_label", "probability", "predicted_label_2", "probability_2"]
        assert list(row) == ["id", "body", *added]
        best = [(row["predicted_label"], row["probability"]), (row["predicted_label_2"], row["probability_2"])]
        expected = [(score.label, pytest.approx(score.probability, abs=1e-6)) for score in prediction.ranked]
        assert [(label, float(share)) for label, share in best if label] == expected


def test_rows_below_a_probability_are_marked_for_review(classifier: Predictor, tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.csv", 20), tmp_path / "out.csv"
    predictions = classifier.predict(texts(20))
    known = sorted(prediction.probability for prediction in predictions if prediction.probability is not None)
    below = max((b - a, (a + b) / 2) for a, b in pairwise(known))[1]
    said: list[str] = []
    predict_file(classifier, source, target, text_column="body", review_below=below, on_note=said.append)
    rows = read(target)
    assert list(rows[0]) == ["id", "body", "predicted_label", "probability", "needs_review"]
    expected = ["no" if (prediction.probability or 0.0) >= below else "yes" for prediction in predictions]
    assert [row["needs_review"] for row in rows] == expected and len(set(expected)) == 2
    n, n_empty = expected.count("yes"), sum(prediction.label is None for prediction in predictions)
    assert n > n_empty > 0
    assert f"{n} of 20 rows" in said[-1] and f"{n_empty} without words" in said[-1]


def test_a_file_of_another_kind_is_said_to_be_unusual(classifier: Predictor, tmp_path: Path) -> None:
    counted = Predictor(with_token_counts(replace(classifier.checkpoint, path=tmp_path / "counted")))
    known = tmp_path / "known.csv"
    known.write_text("id,body\n" + "".join(f"1,{text}\n" for text in TEXTS))
    said: list[str] = []
    predict_file(counted, known, tmp_path / "out.csv", text_column="body", on_note=said.append)
    assert said == ["Texts: column 'body', as specified."]
    (tmp_path / "other.csv").write_text("id,body\n" + "1,很快，好吃\n" * 40 + "2,\n" * 9, encoding="utf-8")
    predict_file(
        counted, tmp_path / "other.csv", tmp_path / "out.csv", text_column="body", review_below=1.0, on_note=said.append
    )
    review, unusual = said[-2:]
    assert unusual.startswith("40 of 49 rows are unusual for this model (column unusual)")
    assert [row["unusual"] for row in read(tmp_path / "out.csv")] == ["yes"] * 40 + ["no"] * 9
    assert "49 of 49 rows need review (100.0\u00a0%): 40 with" in review and "9 without words" in review
    few = tmp_path / "few.csv"
    few.write_text("id,body\n" + "1,很快，好吃\n" * 9 + f"2,{TEXTS[0]}\n" * 91, encoding="utf-8")
    said.clear()
    predict_file(counted, few, tmp_path / "out.csv", text_column="body", on_note=said.append)
    assert not [note for note in said if "unusual" in note], "fewer than a tenth"


OWN = "probability,Predicted_Label,body,txcls_probability,needs_review\n0.25,mine,a text,keep,maybe\n"


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl", "out.parquet", "out.xlsx"])
def test_columns_of_the_input_are_never_overwritten(classifier: Predictor, tmp_path: Path, target: str) -> None:
    (tmp_path / "in.csv").write_text(OWN)
    said: list[str] = []
    path = tmp_path / target
    predict_file(classifier, tmp_path / "in.csv", path, text_column="body", review_below=0.5, on_note=said.append)
    reader = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".xlsx": pd.read_excel}.get(path.suffix)
    [row] = (reader(path) if reader else pd.read_json(path, lines=True)).astype(str).to_dict("records")
    kept, added = list(row.items())[:5], list(row)[5:]
    assert kept == list(zip(*(line.split(",") for line in OWN.splitlines()), strict=True))
    assert added == ["txcls_predicted_label", "txcls_txcls_probability", "txcls_needs_review"]
    assert row["txcls_predicted_label"] == classifier.predict(["a text"])[0].label
    assert "predicted_label is txcls_predicted_label" in said[1]


def test_a_stopped_run_leaves_the_older_file_and_nothing_else(classifier: Predictor, tmp_path: Path) -> None:
    source, target = write(tmp_path / "in.csv", 50), tmp_path / "out.csv"
    target.write_text("an older file")

    def stop(done: int, total: int | None) -> None:
        if done == 24:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError, match="stopped after 24 rows; nothing was written"):
        predict_file(classifier, source, target, on_rows=stop)
    assert target.read_text() == "an older file" and {path.name for path in tmp_path.iterdir()} == {"in.csv", "out.csv"}


def test_the_linear_model_beside_a_checkpoint_classifies_instead(classifier: Predictor, tmp_path: Path) -> None:
    rows = [f"{'bank shares' if n % 2 else 'striker goal'} {n}" for n in range(60)]
    names = classifier.classes[2], classifier.classes[0]
    fitted = fit_linear(LabelledTexts(rows, [n % 2 for n in range(60)], names))
    linear = load_linear(save_linear(fitted, tmp_path / "linear.skops"))
    (tmp_path / "in.csv").write_text("body\nthe striker\nbank\n" + '" "\n' + "很快，好吃\n", encoding="utf-8")
    counted = Predictor(with_token_counts(replace(classifier.checkpoint, path=tmp_path / "counted")))
    predict_file(counted, tmp_path / "in.csv", tmp_path / "out.csv", linear=linear, text_column="body")
    first, second, *_, foreign = read(tmp_path / "out.csv")
    assert foreign["unusual"] == "yes"
    assert (first["predicted_label"], second["predicted_label"]) == names
    assert first["probability"] == pytest.approx(linear.predict_proba(["the striker"]).max(), abs=1e-6)


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
    assert predict_file(hostile, tmp_path / "in.xlsx", tmp_path / "out.xlsx", text_column="text") == 2
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
    assert source.read_bytes() == before and len(list(tmp_path.iterdir())) == 4
