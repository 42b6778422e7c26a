"""Classify each row of an uploaded file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
import streamlit as st

from txcls.app import menu
from txcls.app.jobs.own_files import file_name
from txcls.app.jobs.queue import JobState
from txcls.app.shell import checkpoints, layout, lecture, own, table_html, uploads, waiting
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.downloads import download_link
from txcls.app.shell.limits import limits
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import load_classifier
from txcls.data.columns import JOINED, text_columns
from txcls.data.examples import Example
from txcls.evaluation.report import CONFIDENCES
from txcls.figures import class_counts
from txcls.wording import percentage

MAX_K = 10
COMMAND = "On the command line: `python -m txcls predict CHECKPOINT --input FILE --output FILE`."


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.BATCH, has_box=False)
    st.html(table_html.STYLE)
    peek, batch = own.job("peek"), own.job("batch")
    with lecture.slide():
        st.subheader("1 · A file of texts", anchor=False)
        _file(opened, peek)
    if peek.status == "done":
        with lecture.slide():
            st.subheader("2 · Classify its rows", anchor=False)
            _classify(opened, peek, batch)
    if batch.status == "done":
        with lecture.slide(lecture.CLASSES):
            st.subheader("Result", anchor=False)
            _result(batch)
    load_classifier(opened)
    st.caption(
        f"Your files stay on this server and are deleted {own.retention()} after your last visit. Anyone with the "
        "address of this page can open them."
    )
    layout.close_page(opened)


def _file(opened: layout.Page, peek: JobState) -> None:
    """Draw an uploader, or the uploaded file and a choice of its text column."""
    if peek.status == "done":
        table = peek.result
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(str(table['name'])[:80])}** · {table['rows']:,} rows", width="content")
            st.button("Use another file", key="another_file", on_click=_use_another_file)
        names = [column["name"] for column in table["columns"]]
        guessed = list(text_columns(table["text_column"], names))
        st.session_state.setdefault("batch_columns", guessed)
        if not set(st.session_state["batch_columns"]) <= set(names):
            st.session_state["batch_columns"] = guessed
        with st.container(horizontal=True):
            if len(table["sheets"]) > 1:
                st.session_state["batch_sheet"] = table["sheet"]
                st.selectbox("Sheet", table["sheets"], key="batch_sheet", on_change=_sheet_changed, width=320)
            st.multiselect(
                "Text columns",
                names,
                key="batch_columns",
                width=320,
                persist_state="session",
                help="Several columns, such as subject and body, are joined.",
            )
        columns = [name for name in table["preview"][0] if name != "row"]
        st.html(table_html.table(columns, table["preview"], caption="The first rows"))
        return
    if not peek.is_active:
        st.markdown(
            "Upload a spreadsheet, CSV, TSV, JSON Lines, JSON or Parquet file with a column of texts. You get it back "
            f"with new columns: the class and its probability, and the next-best classes with theirs. {COMMAND}"
        )
        if limits().uploads:
            examples = checkpoints.examples(opened.view.checkpoint)
            st.button(f"Try it with {len(examples)} example texts", key="try_examples", on_click=_try, args=(examples,))
    uploads.start_job(
        "peek",
        "Your file",
        task="Reading the file",
        complete=lambda spec: {**spec, "only_columns": True},
        on_start=lambda spec: _forget_result(),
    )


def _try(examples: Sequence[Example]) -> None:
    """Take example texts as if they had been uploaded."""
    table = pandas.DataFrame({"text": [example.text for example in examples]})
    spec = uploads.save(table.to_csv(index=False).encode(), name="examples.csv")
    if spec is not None:
        _forget_result()
        waiting.start("peek", {**spec, "only_columns": True})


def _sheet_changed() -> None:
    spec = dict(own.job("peek").spec)
    _use_another_file()
    waiting.start("peek", {**spec, "sheet": st.session_state["batch_sheet"]})


def _use_another_file() -> None:
    _forget_result()
    waiting.forget("peek")
    st.session_state.pop("batch_columns", None)


def _forget_result() -> None:
    waiting.cancel("batch")
    waiting.forget("batch")


def _classify(opened: layout.Page, peek: JobState, batch: JobState) -> None:
    """Draw options and the button that starts the job, or the job's progress."""
    if batch.is_active:
        waiting.watch("batch", _progress)
        return
    waiting.failure(batch)
    n_classes = checkpoints.summary(opened.view.checkpoint).n_classes
    limit = max(1, min(n_classes, MAX_K))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        st.session_state.setdefault("batch_k", 3)
        st.session_state["batch_k"] = min(int(st.session_state["batch_k"]), limit)
        k = st.number_input(
            "Classes per row",
            1,
            limit,
            key="batch_k",
            width=160,
            help="Each with its probability, most probable first.",
        )
        below = st.selectbox(
            "Leave to a human below",
            (None, *CONFIDENCES),
            format_func=lambda confidence: "no row" if confidence is None else percentage(confidence, 0),
            key="batch_review",
            persist_state="session",
            width=200,
            help="Adds a column needs_review: yes for rows whose class has a lower probability. Report shows how many "
            "rows that is, and how often the others are right.",
        )
    is_delimited = str(peek.spec["file"]).removesuffix(".gz").endswith((".csv", ".tsv"))
    safe = True
    if is_delimited:
        safe = st.checkbox(
            "Put an apostrophe before cells that a spreadsheet would run as formulas",
            value=True,
            key="batch_safe",
            persist_state="session",
            help="A cell such as =HYPERLINK(…) in a text can leak data when the file is opened in a spreadsheet.",
        )
    st.button(
        f"Classify {peek.result['rows']:,} rows",
        key="start_batch",
        type="primary",
        disabled=not st.session_state["batch_columns"],
        on_click=_start,
        args=(opened.source, dict(peek.spec), int(k), below, bool(safe)),
    )


def _start(source: Source, spec: dict[str, Any], k: int, below: float | None, safe: bool) -> None:
    waiting.start(
        "batch",
        {
            "file": spec["file"],
            "names": spec["names"],
            "checkpoint": str(source.folder),
            "model": source.name,
            "text_column": JOINED.join(st.session_state["batch_columns"]),
            "sheet": spec.get("sheet"),
            "top_k": k,
            "review_below": below,
            "safe": safe,
        },
    )


def _progress(now: JobState) -> None:
    """Draw the progress bar and a button to cancel."""
    if now.status == "waiting" and now.ahead:
        st.info(waiting.in_queue(now.ahead))
    else:
        done, rows = now.progress.get("done"), now.progress.get("rows")
        words = plain(str(now.progress.get("stage", "starting")))
        if done is not None and rows:
            share = done / rows
            passed = own.seconds_since(now.since)
            words += f": {done:,} of {rows:,} rows"
            words += f" · about {own.duration(passed * (1 - share) / share)} left" if share > 0.02 else ""
        st.progress(min(max(float(now.progress.get("share") or 0.0), 0.0), 1.0), words)
    st.button("Cancel", key="cancel_batch", on_click=waiting.cancel, args=("batch",))


def _result(batch: JobState) -> None:
    """Draw the download, the number of rows per class, and the first rows."""
    session = own.session()
    if session is None:
        return
    result, name = batch.result, file_name(batch.spec)
    file = session.job("batch") / str(result["file"])
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.markdown(f"**{result['done']:,} rows** classified by {plain(str(batch.spec['model']))}.")
        if result["done"] < result["rows"]:
            st.warning(
                f"The other {result['rows'] - result['done']:,} rows did not fit into the {limits().minutes} minutes "
                "that a file may take here (TXCLS_MAX_MINUTES). The file ends with the last row that was classified."
            )
        renamed = _renamed(name, file.suffix)
        download_link(f"Download {renamed}", file, name=renamed, key="download_batch", is_primary=True)
        if (n := result.get("n_review")) is not None:
            st.markdown(
                f"**{n:,} rows need review** ({percentage(n / result['done'])}): the class has less than "
                f"{percentage(float(batch.spec['review_below']), 0)}."
            )
        counts = {label or "(no words)": n for label, n in result["labels"].items()}
        first = next(iter(counts.items()))
        chart(
            class_counts(counts),
            key="chart_classified",
            alt=f"Bar chart of rows per predicted class, {len(counts)} classes: most are {first[0][:40]}, {first[1]:,}",
        )
    with right:
        rows = [_preview_row(row) for row in result["preview"]]
        columns = list(rows[0])
        with st.container(height=520 if len(rows) > 8 else "content", border=False):
            st.html(table_html.table(columns, rows, numbers=("probability",), named=("class",), caption="Rows"))
        st.caption(
            f"The first {len(rows)} rows with their most probable class. The file has all rows, and the next-best "
            "classes."
        )


def _preview_row(row: dict[str, Any]) -> dict[str, str]:
    probability = row.get("probability")
    shown = percentage(float(probability)) if probability not in (None, "") else ""
    review = {"review": str(row["needs_review"])} if "needs_review" in row else {}
    label = str(row["predicted_label"]) or "(no words)"
    return {"class": label, "probability": shown, **review, "text": str(row["text"])}


def _renamed(name: str, suffix: str) -> str:
    """`mine.csv` becomes `mine-classified.csv`; only letters, digits and ` -_.` of the name are kept."""
    stem = "".join(char if char.isalnum() or char in " -_." else "_" for char in Path(name).stem).strip(" .") or "file"
    return f"{stem[:60]}-classified{suffix}"


if __name__ == "__main__":
    main()
