"""The Report page for a classifier that a visitor has trained: it knows which rows it was trained and tested on."""

import csv
import io
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import streamlit as st

from tests.app.drawn import body_text, open_page
from tests.app.jobs.conftest import end_of, finish, put
from tests.app.pages.test_train import has_button, until
from tests.conftest import CLASSES, TEXTS, make_checkpoint, measured_on_texts
from txcls.app.jobs import queue
from txcls.app.jobs.json_lines import write_json
from txcls.app.jobs.own_table import StoredRows, write_rows
from txcls.app.jobs.sessions import Session
from txcls.app.pages.report import compute as compute_report
from txcls.app.shell import checkpoints, own_session
from txcls.app.shell.cache import Source
from txcls.app.shell.markdown import plain
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.checkpoint.load import load_checkpoint
from txcls.config import DataConfig
from txcls.evaluation.label_errors import DoubtfulLabels, DoubtfulRow
from txcls.evaluation.report import predict_rows

pytestmark = pytest.mark.usefixtures("jobs_folder")

NAME = f"{own_session.PREFIX}letters"
ROWS = [(f"{text} {n}", CLASSES[k % 4]) for n in range(6) for k, text in enumerate(TEXTS)]
HELD_OUT = list(range(0, len(ROWS), 5))
TRAINED = list(range(1, len(ROWS), 5))
FILE = "id,body,kind\n" + "".join(f'{n},"{text}",{label}\n' for n, (text, label) in enumerate(ROWS, start=100))


@pytest.fixture
def session() -> Session:
    """A session with a classifier, its rows, and the table that they come from."""
    new_session = Session.new()
    plain = make_checkpoint(new_session.own / "letters")
    data = DataConfig(dataset="table", text_column="body", label_column="kind")
    save_checkpoint(replace(plain, config=plain.config.model_copy(update={"data": data})))
    spec = {**put(new_session, "table.csv", FILE), "text_column": "body", "label_column": "kind"}
    texts, labels = ([row[n] for row in ROWS] for n in (0, 1))
    stored_rows = StoredRows(texts, labels, list(range(2, len(ROWS) + 2)), HELD_OUT, ((), ()), spec, TRAINED)
    write_rows(new_session.folder / "kept", "letters", stored_rows, texts[:2])
    return new_session


@pytest.fixture
def source(session: Session, monkeypatch: pytest.MonkeyPatch) -> Source:
    """The classifier, as the visitor's pages find it."""
    monkeypatch.setattr(own_session, "session", lambda: session)
    return checkpoints.source(NAME)


def test_mistakes_are_those_of_the_rows_held_out_by_their_numbers_in_the_file(session: Session) -> None:
    app = open_page("report", job=session.token, checkpoint=NAME)
    assert app.query_params["text"] in FILE and "The address also contains the text" in body_text(app)
    (table,) = (frame.value for frame in app.dataframe if "label's probability" in frame.value)
    assert len(table)
    for row, text in zip(table["row"], table["text"], strict=True):
        assert ROWS[row - 2][0] == text and row - 2 in HELD_OUT


def test_the_learning_curve_is_that_of_the_rows_it_was_trained_on(session: Session, source: Source) -> None:
    app = open_page("report", job=session.token, checkpoint=NAME)
    app.button(key="report_curve").click().run()
    result = end_of(session, "curve").result
    n = len(ROWS) - len(HELD_OUT)
    assert result["n_test"] == len(HELD_OUT) and [point[0] for point in result["points"]] == [f"{n // 2}", f"{n}"]
    app.run()
    assert not app.exception and f"From {n // 2} to {n} training rows" in body_text(app)


def test_labels_of_all_rows_are_checked_and_corrections_go_to_train(
    session: Session, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("report", job=session.token, checkpoint=NAME)
    assert "All rows of your table" in body_text(app)

    def edit(frame: Any, **_: Any) -> Any:
        frame["corrected"] = ["Sports", None, *frame["corrected"][2:]]
        return frame

    monkeypatch.setattr(st, "data_editor", edit)
    app.button(key="report_doubtful").click().run()
    assert not app.exception, app.exception
    result = end_of(session, "doubtful").result
    assert (result["n_checked"], result["n_rows"]) == (len(ROWS), len(ROWS))
    assert "Linear models, none" in result["sentence"] and f"on {len(ROWS)} rows of your table" in result["sentence"]
    assert [ROWS[row["row"] - 2][0] for row in result["doubtful"]] == [row["text"] for row in result["doubtful"]]
    doubted = [asdict(DoubtfulRow(n + 2, *ROWS[n], "World", 0.1, 0.9)) for n in (2, 7)]
    sentence = str(DoubtfulLabels([DoubtfulRow(**row) for row in doubted], 20, 0.6, 0.25))
    changes = {"doubtful": doubted, "sentence": sentence, "advice": ["a.b"]}
    write_json(session.job("doubtful") / "result.json", {**result, **changes})
    app.run()
    assert plain(sentence) in body_text(app) and r"- a\.b" in body_text(app)
    assert "1 corrected and 1 dropped" in body_text(app)
    app.button(key="report_correct_table").click().run()
    until(app, has_button("report_train_corrected"))
    download = session.job("correct") / str(queue.state(session, "correct").result["download"])
    app.button(key="report_train_corrected").click().run()
    assert not app.exception, app.exception
    spec = queue.state(session, "read").spec
    assert spec["label_column"] == "kind" and list(spec["names"].values()) == ["my table-corrected.csv"]
    for file in (session.folder / spec["file"], download):
        corrected = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig"))))
        assert len(corrected) == len(ROWS) - 1 and list(corrected[0]) == ["id", "body", "kind"]
        by_id = {row["id"]: row["kind"] for row in corrected}
        assert by_id["102"] == "Sports" and "107" not in by_id and by_id["103"] == ROWS[3][1]


def test_only_downloads_are_made_safe_for_spreadsheets(session: Session) -> None:
    spec = put(session, "sums.csv", "body,kind\n=1+1,a\n" + "".join(f"text {n},{'ab'[n % 2]}\n" for n in range(9)))
    spec |= {"text_column": "body", "label_column": "kind", "corrections": {"3": "b", "4": ""}}
    job = finish(session, "correct", spec)
    safe = (session.job("correct") / job.result["download"]).read_text("utf-8-sig").splitlines()
    unchanged = (session.folder / job.result["file"]).read_text("utf-8-sig").splitlines()
    assert safe[:3] == ['"body","kind"', '"\'=1+1","a"', '"text 0","b"'] and len(safe) == 10
    assert unchanged == [safe[0], '"=1+1","a"', *safe[2:]]


def test_all_rows_held_out_from_a_visitors_table_are_classified_and_counted(
    session: Session, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compute_report, "MAX_REPORT_ROWS", 3)
    predictions = compute_report.on_test_rows(source).predictions
    assert predictions is not None and len(predictions) == len(HELD_OUT)
    assert compute_report.row_numbers(source) == [row + 2 for row in HELD_OUT]
    app = open_page("report", job=session.token, checkpoint=NAME)
    assert f"Measured on {len(HELD_OUT)} test rows" in body_text(app).replace("\\", "")


def test_a_report_on_a_table_equals_the_classifiers_predictions(session: Session, source: Source) -> None:
    spec = {"checkpoint": str(source.folder), "state": source.state, "own": "letters"}
    job = finish(session, "report", {**put(session, "again.csv", FILE), **spec})
    app = open_page("report", job=session.token, checkpoint=NAME)
    counted = f"letters was trained on {len(TRAINED)} of these {len(ROWS)} rows"
    assert body_text(app).count(f"{counted}, so these results are better") == 2, "above the metrics and in the notes"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "session_state", {})
        own = compute_report.on_own_table(source, job)
    assert own is not None and own.report.predictions is not None
    expected = predict_rows(checkpoints.classifier(source), own.report.predictions.rows)
    np.testing.assert_allclose(own.report.predictions.probabilities, expected.probabilities, atol=1e-6)
    assert own.report.metrics["n"] == len(ROWS)


def test_a_report_on_a_table_has_its_row_numbers_and_counts_unknown_classes_as_errors(
    session: Session, source: Source
) -> None:
    lines = [(text, CLASSES[n % len(TEXTS) % 3]) for n, (text, _) in enumerate(ROWS)]
    lines[20] = lines[20][0], CLASSES[(20 % len(TEXTS) + 1) % 3]  # unlike the other rows with nearly this text
    lines[3:3] = [("", CLASSES[0]), *[("words of another kind", "Weather")] * 12]
    table = "body,kind\n" + "".join(f'"{text}",{label}\n' for text, label in lines)
    spec = {"checkpoint": str(source.folder), "state": source.state, "own": "letters"}
    finish(session, "report", {**put(session, "other.csv", table), **spec})
    app = open_page("report", job=session.token, checkpoint=NAME)
    accuracy, with_unknown = (float(metric.value.split("\u00a0")[0]) for metric in app.metric[:2])
    assert app.metric[1].label == "Unknown as errors"
    assert 0 < with_unknown < accuracy and with_unknown == pytest.approx(accuracy * 48 / 60, abs=0.1)
    app.button(key="report_doubtful").click().run()
    assert not app.exception, app.exception
    tables = [frame.value for frame in app.dataframe if "label's probability" in frame.value]
    assert len(tables) == 2 and all(len(table) for table in tables), "the mistakes and the doubtful labels"
    for frame in tables:
        assert [lines[row - 2] for row in frame["row"]] == list(zip(frame["text"], frame["label"], strict=True))


def test_a_table_unlike_the_validation_texts_is_pointed_out(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    measured_on_texts(load_checkpoint(session.own / "letters"))
    monkeypatch.setattr(own_session, "session", lambda: session)
    source = checkpoints.source(NAME)
    table = "body,kind\n" + f"zqxj vvkw qqq,{CLASSES[0]}\n" * 20
    spec = {"checkpoint": str(source.folder), "state": source.state, "own": "letters"}
    finish(session, "report", {**put(session, "other.csv", table), **spec})
    app = open_page("report", job=session.token, checkpoint=NAME)
    said = "Unlike the validation texts: 20 of 20 rows have "
    assert [said in warning.value.replace("\\", "") for warning in app.warning].count(True) == 1


def test_other_columns_can_be_chosen_as_on_train(session: Session, source: Source) -> None:
    table = "body,kind,section\n" + "".join(f'"{text}",x{n % 2},{label}\n' for n, (text, label) in enumerate(ROWS))
    spec = {"checkpoint": str(source.folder), "state": source.state, "own": "letters"}
    finish(session, "report", {**(file := put(session, "other.csv", table)), **spec})
    app = open_page("report", job=session.token, checkpoint=NAME)
    assert app.selectbox(key="label_column_box").value == "section" and not app.error, "the column with the classes"
    app.selectbox(key="label_column_box").set_value("kind").run()
    until(app, lambda app: any("none of its labels" in error.value for error in app.error))
    app.selectbox(key="label_column_box").set_value("section").run()
    until(app, lambda app: any(head.value == f"On {len(ROWS)} rows of my other\\.csv" for head in app.subheader))
    assert app.multiselect(key="text_column_box").value == ["body"] and not app.error
    assert app.selectbox(key="label_column_box").value == "section"
    app.button(key="report_back").click().run()
    assert not (session.folder / file["file"]).exists() and app.file_uploader
