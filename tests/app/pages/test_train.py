"""The Train page with its workers, seen by successive sessions."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from tests.app.drawn import body_text, chart, charts_of, html_of, open_page
from tests.app.jobs.conftest import put
from tests.app.shell.test_charts import described
from tests.app.tiny import PLAIN
from txcls.app.jobs import queue
from txcls.app.jobs.json_lines import write_json
from txcls.app.jobs.own_table import labelled_rows
from txcls.app.jobs.sessions import Session
from txcls.app.shell import limits, own_session
from txcls.checkpoint.folders import checkpoint_name

pytestmark = pytest.mark.usefixtures("jobs_folder")

TABLE = "id,message,kind\n" + "".join(
    f"{n},please refund bill {n % 7},money\n{n},parcel {n % 5} is still late,post\n" for n in range(25)
)
CONFLICT = "90,where is my parcel,post\n91,where is my parcel,money\n92,,money\n"


def limited(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    limits.limits.cache_clear()


def until(app: AppTest, expected: Callable[[AppTest], bool], *, seconds: float = 90) -> AppTest:
    """Rerun the page, as the browser does every second, until `expected` holds."""
    end = time.monotonic() + seconds
    while not expected(app):
        assert time.monotonic() < end, body_text(app)
        time.sleep(0.1)
        app.run()
        assert not app.exception, app.exception
    return app


def has_button(key: str) -> Callable[[AppTest], bool]:
    return lambda app: any(button.key == key for button in app.button)


def being_read(text: str = TABLE) -> Session:
    """A session whose table is being read."""
    session = Session.new()
    queue.start(session, "read", put(session, "table.csv", text))
    return session


def read(text: str = TABLE) -> tuple[Session, AppTest]:
    session = being_read(text)
    app = open_page("train", job=session.token)
    return session, until(app, lambda app: has_button("another_table")(app))


def test_a_table_is_surveyed_before_training() -> None:
    _, app = read(TABLE + CONFLICT)
    until(app, lambda app: bool(charts_of(app)))
    for key in ("chart_classes", "chart_rows_by_length"):
        described(chart(app, key))
    assert app.multiselect(key="text_column_box").value == ["message"]
    assert app.selectbox(key="label_column_box").value == "kind"
    options = str(app.segmented_control[0].options)
    assert "Same text, different labels · 1'" in options and "Repeated rows · 38'" in options, "rows, not groups"
    html = html_of(app)
    assert "52, 53" in html and "post / money" in html, "the lines of the file"


@pytest.mark.slow
def test_the_budget_is_found_again_by_a_reload_and_another_one_is_forecast_at_once() -> None:
    session, app = read()
    until(app, lambda app: queue.state(session, "plan").status == "done")
    app.run()
    first = queue.state(session, "plan")
    forecasts = [text.value for text in app.markdown if text.value.startswith("Forecast: **")]
    assert len(forecasts) == 1
    assert any("A token is a word" in caption.value for caption in app.caption)
    notes = next(caption.value for caption in app.caption if "fit the calibration" in caption.value)
    assert "tokens of a text are read" in notes and "starts from the pre" in notes and "Planned for " in notes
    app.slider(key="minutes").set_value(1).run()
    assert len([text for text in app.markdown if text.value.startswith("Forecast: **")]) == 1, "no worker is waited for"
    assert queue.state(session, "plan").since == first.since, "measured once"
    assert open_page("train", job=session.token).slider(key="minutes").value == 1


def test_a_measurement_that_another_run_of_the_page_has_just_started_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, lock = queue.enter("plan", "somebody")
    assert queue.take_turn(name)
    session = being_read()
    queue.start(session, "plan", {"only_plan": True})
    job = own_session.job  # as seen just before that start
    with monkeypatch.context() as race:
        race.setattr(own_session, "job", lambda kind: queue.JobState("none") if kind == "plan" else job(kind))
        app = until(open_page("train", job=session.token), has_button("start_training")).run()
    assert not app.warning
    app.run()
    os.close(lock)
    until(app, lambda app: "file" in queue.state(session, "plan").spec)


def test_the_preview_of_a_wide_table_begins_with_the_columns_chosen() -> None:
    others = [f"c{column}" for column in range(14)]
    rows = [",".join([*others, f"text {n} of some length", "ab"[n % 2]]) for n in range(9)]
    session, _ = read("\n".join([",".join([*others, "message", "kind"]), *rows]))
    [first, *_] = queue.state(session, "read").result["preview"]
    assert list(first) == ["row", "message", "kind", *others[:10]]
    queue.start(session, "peek", {**queue.state(session, "read").spec, "only_columns": True})  # the page Batch
    until(open_page("batch", job=session.token), lambda _: queue.state(session, "peek").status == "done")
    [first, *_] = queue.state(session, "peek").result["preview"]
    assert list(first) == ["row", "message", *others[:11]]


def test_another_sheet_and_several_columns_are_read_and_labels_merged(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["name", "what"])
    for n in range(60):
        book.active.append([f"row {n} of the code book", "x"])
    sheet = book.create_sheet("Answers")
    sheet.append(["subject", "body", "kind"])
    for n in range(40):
        sheet.append([f"my order {n}", f"it has not come and it is day {n}", ("Post", "post", "Bill", "n/a")[n % 4]])
    book.save(tmp_path / "t.xlsx")
    session = Session.new()
    file = put(session, "t.xlsx", (tmp_path / "t.xlsx").read_bytes())
    queue.start(session, "read", file)
    app = until(open_page("train", job=session.token), has_button("another_table"))
    app.selectbox(key="sheet_box").set_value("Answers").run()
    until(app, lambda app: bool(charts_of(app)))
    assert app.multiselect(key="text_column_box").value == ["subject", "body"]
    assert "4 classes" in [s.value for s in app.subheader]
    assert any("look like one class" in warning.value for warning in app.warning)
    assert app.button(key="merge").label == "Merge these labels, and drop missing ones"
    app.button(key="merge").click().run()
    until(app, lambda app: "2 classes" in [s.value for s in app.subheader])
    assert (spec := queue.state(session, "read").spec)["merge"] and spec["sheet"] == "Answers"


def test_all_counts_of_a_label_leave_out_the_rows_without_a_text() -> None:
    lines = [f"{n},{'' if n % 4 == 0 else f'order {n} is late'},{('Post', 'post', 'Bill')[n % 3]}" for n in range(48)]
    session, app = read("\n".join(["id,text,label", *lines, "48,order 48 is late,"]))
    until(app, lambda app: bool(charts_of(app)))
    survey = queue.state(session, "read").result
    assert survey["classes"] == {"Bill": 12, "Post": 12, "post": 12}
    assert "'post' (12) / 'Post' (12)" in survey["label_notes"][0]
    assert sum(n for _, n in survey["lengths"]) == 36
    assert "Not counted: 13 rows without a text or without a label." in [caption.value for caption in app.caption]


def test_texts_without_spaces_are_measured_in_characters() -> None:
    lines = [f"{'很快好吃' * (4 + n % 2)},{'ab'[n % 2]}" for n in range(20)]
    _, app = read("\n".join(["text,label", *lines]))
    until(app, lambda app: bool(charts_of(app)))
    described = (
        "Histogram of 20 texts: 16 to 20 characters, half of them 16 or fewer. The longest 1 % are in the last bar."
    )
    assert described in [caption.value for caption in app.caption]
    assert chart(app, "chart_rows_by_length").figure["layout"]["xaxis"]["title"]["text"] == "characters in a text"


def test_labels_are_merged_codes_named_and_email_headers_removed_with_one_click_each(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["text", "label"])
    for n in range(20):
        book.active.append([f"From: a@b.org\nSubject: order {n}\n\nit is late", ("B", "p", "b")[n % 3]])
    codes = book.create_sheet("Codes")
    for row in (["b", "bill"], ["p", "post"]):
        codes.append(row)
    book.save(tmp_path / "t.xlsx")
    session = Session.new()
    queue.start(session, "read", put(session, "t.xlsx", (tmp_path / "t.xlsx").read_bytes()))
    app = until(open_page("train", job=session.token), has_button("merge"))
    assert app.button(key="merge").label == "Merge these labels"
    app.button(key="merge").click().run()
    until(app, lambda app: any("are one class" in warning.value for warning in app.warning))
    app.button(key="code_book").click().run()
    until(app, lambda app: any("named after the code book" in caption.value for caption in app.caption))
    assert app.button(key="merge").label == "Keep the labels as written"
    assert {row["label"] for row in queue.state(session, "read").result["preview"]} == {"bill", "post"}
    app.button(key="strip_headers").click().run()
    until(app, lambda app: any("headers are removed" in caption.value for caption in app.caption))
    assert not app.warning
    name, lock = queue.enter("train", "somebody")
    assert queue.take_turn(name)
    until(app, lambda app: has_button("start_training")(app) and not app.button(key="start_training").disabled)
    app.button(key="start_training").click().run()
    rows = labelled_rows(session.folder, queue.state(session, "train").spec)
    os.close(lock)
    assert rows.train.classes == ("bill", "post") and rows.train.texts[0] == "order 0\n\nit is late"
    app.button(key="strip_headers").click().run()
    until(app, lambda app: any("begin with e" in warning.value for warning in app.warning))


@pytest.mark.slow
def test_training_ends_in_a_comparison_and_a_classifier_for_this_visitor_alone() -> None:
    session, app = read()
    app.button(key="start_training").click().run()
    until(app, lambda app: any(drawing.key.startswith("chart_live") for drawing in charts_of(app)))
    until(app, lambda app: len([t for t in chart(app, "chart_live").figure["data"] if len(t["x"]) > 1]) > 0)
    described(chart(app, "chart_live"))
    reopened = open_page("train", job=session.token)  # as after a reload, or in another tab
    assert any(drawing.key.startswith("chart_live") for drawing in charts_of(reopened)) or has_button("another_table")(
        reopened
    )
    if has_button("stop_training")(app):
        app.button(key="stop_training").click().run()
    until(app, lambda app: any(drawing.key == "chart_comparison" for drawing in charts_of(app)), seconds=150)
    assert not any("Forecast" in info.value for info in app.info), "a result is there: it is measured silently"
    assert not any(text.value.startswith("Forecast: **") for text in app.markdown), "nor is the one that is over drawn"
    until(app, lambda app: queue.state(session, "plan").status == "done")
    app.slider(key="minutes").set_value(1).run()
    until(app, lambda app: any(text.value.startswith("Forecast: **") for text in app.markdown))
    described(chart(app, "chart_comparison"))
    assert "Linear baseline" in html_of(app) and "Majority guess" in html_of(app)
    assert "Transformer − linear baseline" in html_of(app) and html_of(app).count(" points<") == 2
    assert any("Macro-F1: mean F1 of the classes" in caption.value for caption in app.caption)
    name = "yours · my_table"
    mine = open_page("classify", job=session.token, checkpoint=name)
    assert mine.query_params["checkpoint"] == name and mine.selectbox(key="checkpoint_box").value == name
    assert str(mine.text_area[0].value) in TABLE, "a held-out row of its own to try"
    other_visitor = open_page("classify", checkpoint=name)
    assert other_visitor.query_params["checkpoint"] == PLAIN and "There is no checkpoint" in body_text(other_visitor)
    assert name not in str(other_visitor.selectbox(key="checkpoint_box").options)
    mine = open_page("train", job=session.token)
    mine.button(key="forget").click().run()
    assert not session.folder.exists() and "job" not in mine.query_params


def test_a_cookie_leads_to_the_visitors_files_unless_the_address_does(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other, gone = Session.new(), Session.new(), Session.new()
    gone.remove()
    monkeypatch.setattr(ContextProxy, "cookies", {own_session.COOKIE: mine.token})
    assert open_page("train").query_params["job"] == mine.token
    assert open_page("train", job=other.token).query_params["job"] == other.token
    monkeypatch.setattr(ContextProxy, "cookies", {own_session.COOKIE: gone.token})
    app = open_page("train")
    assert "job" not in app.query_params and not app.warning


def test_an_expired_session_token_is_explained() -> None:
    session = Session.new()
    session.remove()
    for token in (session.token, "x", "../../etc", "<b>" * 20):
        app = open_page("train", job=token)
        assert any("no longer here" in warning.value for warning in app.warning)
        assert has_button("try_sample")(app) and not app.error


def test_a_classifier_gets_the_same_name_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_session, "open_session", Session.new)
    for name in ("bbc-text.csv", "my table.tsv.gz", "Tweets v1.2.CSV", f"{'Long' * 20}.xlsx"):
        assert own_session.free_name(name) == checkpoint_name(name)
    assert own_session.free_name("Tweets.csv") == own_session.free_name("Tweets.zip") == "Tweets"
    session = Session.new()
    monkeypatch.setattr(own_session, "open_session", lambda: session)
    names = []
    for labels in ("mood", "Queue/Team", "Queue/Team", "Queue/Team"):
        names.append(own_session.free_name("Tweets.csv", labels))
        (session.own / names[-1]).mkdir(parents=True)
    assert names == ["Tweets", "Tweets_Queue_Team", "Tweets_2", "Tweets_3"]


@pytest.mark.parametrize("page", ["train", "report", "batch"])
def test_a_spreadsheet_that_cannot_be_read_is_refused_with_advice(page: str) -> None:
    app = open_page(page)
    uploader = app.file_uploader[0]
    assert {".tab", ".ndjson", ".xlsm", ".gz"} <= set(uploader.allowed_type)
    uploader.upload("old.ods", b"x", "application/octet-stream").run()
    assert "this spreadsheet format is not supported; save it as" in body_text(app) and app.file_uploader


def test_a_host_switches_uploads_and_training_off(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, TXCLS_UPLOADS="off", TXCLS_TRAINING="off", TXCLS_MAX_MINUTES="3")
    app = open_page("train")
    assert any("TXCLS_UPLOADS=off" in info.value for info in app.info) and not app.get("file_uploader")
    app.button(key="try_sample").click().run()
    until(app, lambda app: any("TXCLS_TRAINING=off" in info.value for info in app.info))
    assert not has_button("start_training")(app)


def test_markup_in_a_table_reaches_the_page_as_text() -> None:
    bad = "<script>alert(1)</script> <img src=x onerror=alert(2)>"
    session = Session.new()
    rows = "".join(f'"{bad} {n}",{bad}\n"{bad} {n}","[x](http://example.com)"\n' for n in range(8))
    queue.start(session, "read", put(session, "table.csv", f"text,{bad}\n{rows}"))
    app = open_page("train", job=session.token)
    until(app, lambda app: bool(charts_of(app)))
    assert "<script>" not in html_of(app) and "<img" not in html_of(app)
    assert not [text for text in app.markdown if "<script>" in text.value]


def test_the_time_left_runs_down_and_what_is_over_cannot_be_stopped() -> None:
    session, app = read()
    name, lock = queue.enter("train", session.folder.name)
    assert queue.take_turn(name)
    folder = session.job("train")
    folder.mkdir()
    write_json(folder / "job.json", {"kind": "train", "id": name, "spec": {}, "since": 0.0})

    def drawn(**progress: Any) -> tuple[str, dict[str, bool]]:
        write_json(folder / "progress.json", {"share": 0.5, **progress})
        app.run()
        keys = ("stop_training", "cancel_training")
        return app.get("progress")[0].proto.text, {b.key: b.disabled for b in app.button if b.key in keys}

    now = time.monotonic()
    text, buttons = drawn(stage="training", phase="learn", end=now + 100)
    assert text.startswith("training · 1 min") and text.endswith(" left")
    assert buttons == {"stop_training": False, "cancel_training": False}
    text, buttons = drawn(stage="comparing", phase="compare", end=now)
    assert text == "comparing" and buttons == {"stop_training": True, "cancel_training": False}
    assert drawn(stage="packing", phase="save", share=1.0) == ("packing", {})
    os.close(lock)


def test_a_visitor_sees_their_place_in_the_queue_and_can_leave_it() -> None:
    name, lock = queue.enter("train", "somebody")
    assert queue.take_turn(name)
    _, app = read()
    app.button(key="start_training").click().run()
    assert any("1 job, yours or another visitor's, is ahead of this one" in info.value for info in app.info)
    assert any("Your classifier is not ready yet" in text.value for text in app.markdown)
    assert app.button(key="leave_queue").label == "Leave the queue"
    app.button(key="leave_queue").click().run()
    until(app, lambda app: has_button("start_training")(app))
    assert any("Cancelled" in info.value for info in app.info)
    os.close(lock)
