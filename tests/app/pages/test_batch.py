"""The Batch page: upload a file, and download it with predictions."""

import csv
import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, charts_of, html_of, open_page
from tests.app.jobs.conftest import finish, put
from tests.app.pages.test_train import has_button, until
from tests.app.shell.test_charts import described
from tests.app.tiny import PLAIN
from tests.conftest import TEXTS, make_checkpoint, measured_on_texts
from txcls.app.jobs import batch_file, queue
from txcls.app.jobs.queue import JobState
from txcls.app.jobs.sessions import Session
from txcls.app.jobs.worker import Job
from txcls.app.pages.batch import NO_ROW
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.data.hashes import sketch
from txcls.inference.predictor import Predictor

pytestmark = pytest.mark.usefixtures("jobs_folder")

ROWS = [*TEXTS, "=HYPERLINK(1) the bank", ""]


def table() -> str:
    out = io.StringIO()
    csv.writer(out).writerows([("id", "body"), *enumerate(ROWS)])
    return out.getvalue()


def with_file(name: str = "in.csv", content: str | bytes = "", **params: str) -> tuple[Session, AppTest]:
    session = Session.new()
    queue.start(session, "peek", {**put(session, name, content or table()), "only_columns": True})
    app = open_page("batch", job=session.token, **params)
    return session, until(app, lambda app: has_button("start_batch")(app) or bool(app.error))


def classify_file(session: Session, spec: dict[str, Any]) -> JobState:
    """Run the job that classifies a file to its end."""
    options = {
        "text_column": "body",
        "top_k": 2,
        "safe": True,
        "checkpoint": str(Predictor.load(PLAIN).checkpoint.path),
    }
    return finish(session, "batch", options | spec)


def rows_of(session: Session) -> list[dict[str, str]]:
    with (session.job("batch") / "scored.csv").open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def test_a_file_is_returned_with_classes_probabilities_and_runners_up() -> None:
    session, app = with_file()
    assert app.multiselect(key="batch_columns").value == ["body"]
    app.button(key="start_batch").click().run()
    until(app, lambda app: any(drawing.key == "chart_classified" for drawing in charts_of(app)))
    described(chart(app, "chart_classified"))
    rows = rows_of(session)
    predictions = Predictor.load(PLAIN).predict(ROWS, top_k=3)
    assert len(rows) == len(ROWS) and list(rows[0])[:4] == ["id", "body", "predicted_label", "probability"]
    for row, prediction in zip(rows[:-2], predictions[:-2], strict=True):
        assert row["predicted_label"] == prediction.label
        for rank, score in enumerate(prediction.ranked, start=1):
            suffix = "" if rank == 1 else f"_{rank}"
            assert row[f"predicted_label{suffix}"] == score.label
            assert float(row[f"probability{suffix}"]) == pytest.approx(score.probability, abs=1e-5)
    assert rows[-2]["body"].startswith("'=HYPERLINK"), "nothing that a spreadsheet would run"
    assert "<bdi>=HYPERLINK" in html_of(app) and "1 of its cells, such as those that begin with =" in body_text(app)
    assert rows[-1]["predicted_label"] == "" and "(no words)" in html_of(app)


def test_the_columns_of_training_are_chosen_or_a_note_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    config = make_checkpoint(tmp_path / "mine").config
    data = config.data.model_copy(update={"dataset": "table", "text_column": "details"})
    save_checkpoint(replace(Predictor.load("mine").checkpoint, config=config.model_copy(update={"data": data})))
    make_checkpoint(tmp_path / "other")
    content = "title,details,text\n" + "".join(f"a title {n},the bank rose {n},some words {n}\n" for n in range(9))
    _, app = with_file(content=content, checkpoint="other")
    assert app.multiselect(key="batch_columns").value == ["title", "text"] and not app.info
    app.selectbox(key="checkpoint_box").set_value("mine").run()
    assert app.multiselect(key="batch_columns").value == ["details"] and not app.info
    session, app = with_file(content=content.replace("details", "notes"), checkpoint="mine")
    assert "the file has no column 'details', as in training" in app.info[0].value
    finish(session, "peek", {**put(session, "b.csv", "words\nthe bank\na bank\n"), "only_columns": True})
    assert app.run().multiselect(key="batch_columns").value == ["words"] and not app.exception, "another file"


def test_a_workbook_is_returned_without_formulas(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in (("id", "body"), (1, "the bank raised its rates"), (2, "'=1+1 a probe"), ("7", "2024-02-03")):
        book.active.append(row)
    book.active["B3"].value, book.active["B3"].data_type = "=1+1 a probe", "s"
    book.save(tmp_path / "in.xlsx")
    session = Session.new()
    spec = put(session, "in.xlsx", (tmp_path / "in.xlsx").read_bytes())
    job = classify_file(session, spec)
    assert job.status == "done", job.message
    sheet = openpyxl.load_workbook(session.job("batch") / str(job.result["file"])).active
    assert sheet is not None
    cells = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert cells[0][:4] == ["id", "body", "predicted_label", "probability"] and cells[1][1].startswith("the bank")
    assert isinstance(cells[1][3], float) and cells[2][1] == "=1+1 a probe"
    assert [row[0] for row in cells[1:]] == [1, 2, "7"] and cells[3][1] == "2024-02-03"
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)


def test_the_summary_has_the_texts_as_in_the_file_and_counts_apostrophes_added_for_spreadsheets() -> None:
    session = Session.new()
    spec = put(session, "in.csv", "id,@body\n@1,@bank hello\n2,the bank\n'3,'quoted' bank\n")
    for is_safe, n in ((True, 2), (False, 0)):
        result = classify_file(session, {**spec, "safe": is_safe, "text_column": "@body"}).result
        assert [row["text"] for row in result["preview"]] == ["@bank hello", "the bank", "'quoted' bank"]
        assert result["n_escaped"] == n


def test_rows_that_were_trained_on_are_pointed_out(tmp_path: Path) -> None:
    own = make_checkpoint(tmp_path / "own")
    save_checkpoint(own.with_metrics(data={"sketch": sketch(TEXTS)}))
    session = Session.new()
    spec = {**put(session, "in.csv", table()), "checkpoint": str(own.path), "model": "own"}
    assert classify_file(session, spec).status == "done"
    app = open_page("batch", job=session.token)
    assert any(f"own was trained on {len(TEXTS)} of these {len(ROWS)} rows" in warning.value for warning in app.warning)
    assert not classify_file(session, put(session, "in.csv", table())).result["warning"]


def test_without_a_checkpoint_in_the_address_the_latest_own_one_is_used() -> None:
    session, app = with_file()
    assert "classifier is **ag\\_news**" in body_text(app), "there is no own one"
    for age, name in enumerate(("latest", "first", "second")):
        made = make_checkpoint(session.own / name).path
        assert made is not None
        os.utime(made / "config.json", (1e9 - age, 1e9 - age))
    app = open_page("batch", job=session.token)
    assert "classifier is **yours · latest**, with 4 classes. You can choose another" in body_text(app)
    assert "The address also contains the text" in body_text(app)
    app = open_page("batch", job=session.token, checkpoint="ag_news")
    assert "classifier is **ag\\_news**" in body_text(app)


def test_no_row_is_left_to_a_human_unless_a_confidence_is_chosen() -> None:
    session, app = with_file()
    assert app.selectbox(key="batch_review").value == NO_ROW
    app.button(key="start_batch").click().run()
    assert queue.state(session, "batch").spec["review_below"] is None
    until(app, has_button("start_batch"))
    app.selectbox(key="batch_review").set_value(0.9).run()
    app.button(key="start_batch").click().run()
    assert queue.state(session, "batch").spec["review_below"] == 0.9


def test_rows_to_review_and_rows_unlike_the_validation_texts_are_counted(tmp_path: Path) -> None:
    own = measured_on_texts(make_checkpoint(tmp_path / "own"))
    session = Session.new()
    spec = {**put(session, "in.csv", "id,body\n1,zqxj vvkw\n2,the zqxj\n3,\n"), "review_below": 0.999}
    assert classify_file(session, {**spec, "checkpoint": str(own.path), "model": "own"}).status == "done"
    app = open_page("batch", job=session.token)
    [warning] = [warning.value for warning in app.warning]
    assert "Unlike the validation texts: 2 of 2 rows have any unknown words" in warning.replace("\\", "")
    reasons = "2 with a probability below 99.9\u00a0% and 1 without words."
    assert f"3 of 3 rows need review (100.0\u00a0%): {reasons}" in body_text(app).replace("\\", "")


def test_the_time_left_is_estimated_from_the_rows_after_the_first_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the model, checking the rows and the first part take 50 seconds, each further part one."""
    session, now, reports = Session.new(), [0.0], list[dict[str, Any]]()

    def predict_file(*_: object, on_rows: Callable[[int, int], None], **__: object) -> None:
        for now[0], done in ((40.0, 0), (50.0, 500), (51.0, 1000), (52.0, 1500)):
            on_rows(done, 3000)
        raise InterruptedError

    monkeypatch.setattr(batch_file, "predict_file", predict_file)
    monkeypatch.setattr(batch_file.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(Job, "progress", lambda job, stage, **values: reports.append(values))
    spec = {**put(session, "in.csv", table()), "text_column": "body", "checkpoint": str(PLAIN)}
    with pytest.raises(InterruptedError):
        batch_file.run(Job(session.job("batch"), "batch", {**spec, "top_k": 1, "safe": True}))
    assert [report["end"] for report in reports if "end" in report] == [0.0, 0.0, 55.0, 55.0]


def test_long_texts_end_at_a_word_with_an_ellipsis() -> None:
    long = "the European Central Bank raised rates again on Thursday " * 9
    session, app = with_file(content=f"id,body\n1,{long}\n2,short\n")
    assert "again on Thursday the…</bdi>" in html_of(app), "the first rows of the file"
    job = classify_file(session, queue.state(session, "peek").spec)
    (first, second) = (row["text"] for row in job.result["preview"])
    assert long.startswith(first[:-1] + " ") and first.endswith("…") and len(first) <= 201 and second == "short"


@pytest.mark.parametrize(
    "content, begins",
    [
        ("id;body\n1;café müde, sagt er\n2;bank, raised\n".encode("cp1252"), b'\xef\xbb\xbf"id";"body";'),
        ("id,body\n1,café müde\n2,bank\n".encode(), b'\xef\xbb\xbf"id","body",'),
        (b"id,body\n1,cafe mude\n2,bank\n", b'"id","body",'),
    ],
)
def test_a_spreadsheets_csv_is_returned_in_the_same_dialect(content: bytes, begins: bytes) -> None:
    session = Session.new()
    spec = put(session, "in.csv", content)
    job = classify_file(session, spec)
    written = (session.job("batch") / str(job.result["file"])).read_bytes()
    assert written.startswith(begins) and written.count(b"\n") == 3
    delimiter = begins.decode("utf-8-sig")[4]
    rows = list(csv.DictReader(io.StringIO(written.decode("utf-8-sig")), delimiter=delimiter))
    assert rows[0]["body"].startswith(("café müde", "cafe mude"))
    assert rows[0]["predicted_label"] and rows[1]["id"] == "2"


@pytest.mark.slow
def test_a_damaged_file_gets_an_error_message(tmp_path: Path) -> None:
    for name, content in (("in.parquet", b"PAR1 no"), ("in.xlsx", b"PK no"), ("in.json", b"{"), ("in.csv", b"\0" * 50)):
        _, app = with_file(name, content)
        (message,) = [error.value.replace("\\", "") for error in app.error]
        assert str(tmp_path) not in message and "internal error" not in message, message
