"""Classify each row of an uploaded file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas
import streamlit as st

from txcls.app import menu
from txcls.app.jobs.own_table import file_name
from txcls.app.jobs.queue import JobState
from txcls.app.shell import checkpoints, layout, lecture, own_session, table_html, uploads, waiting
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.downloads import download_link
from txcls.app.shell.limits import limits
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import load_classifier
from txcls.config import DataConfig
from txcls.data.columns import JOINER, columns_as_in_training, text_columns, why_not_as_in_training
from txcls.data.examples import Example
from txcls.evaluation.thresholds import CONFIDENCES
from txcls.figures import class_counts
from txcls.wording import percentage

MAX_K = 10
NO_ROW = 0.0
"""The confidence below which no row is left to a human; Streamlit forgets a chosen None."""
COMMAND = "On the command line: `python -m txcls predict CHECKPOINT --input FILE --output FILE`."


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.BATCH, has_box=False, prefers=checkpoints.latest_own_names())
    classifier = load_classifier(page)
    st.html(table_html.STYLE)
    peek_job, batch_job = own_session.job("peek"), own_session.job("batch")
    with lecture.slide():
        st.subheader("1 · A file of texts", anchor=False)
        _draw_file(page, peek_job, classifier.checkpoint.config.data)
    if peek_job.status == "done":
        with lecture.slide():
            st.subheader("2 · Classify its rows", anchor=False)
            _draw_options(page, peek_job, batch_job)
    if batch_job.status == "done":
        with lecture.slide(lecture.CLASSES):
            st.subheader("Result", anchor=False)
            _draw_result(batch_job)
    st.caption(
        f"Your files stay on this server and are deleted {own_session.retention()} after your last visit. Anyone with "
        f"the address of this page can open them. {own_session.TEXT_IN_ADDRESS}"
    )
    layout.close_page(page)


def _draw_file(page: layout.Page, peek_job: JobState, config: DataConfig) -> None:
    """Draw an uploader, or the uploaded file with a control for its text columns: first those of training, if it has
    them."""
    if peek_job.status == "done":
        file = peek_job.result
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(str(file['name'])[:80])}** · {file['rows']:,} rows", width="content")
            st.button("Use another file", key="another_file", on_click=_forget_file)
        names = file["columns"]
        trained_column, _ = columns_as_in_training(names, config)
        chosen_for = (page.source, *names)
        if st.session_state.get("batch_columns_for") != chosen_for or "batch_columns" not in st.session_state:
            st.session_state["batch_columns_for"] = chosen_for
            st.session_state["batch_columns"] = list(text_columns(trained_column or file["text_column"], names))
        with st.container(horizontal=True):
            if len(file["sheets"]) > 1:
                st.session_state["batch_sheet"] = file["sheet"]
                st.selectbox("Sheet", file["sheets"], key="batch_sheet", on_change=_read_sheet, width=320)
            st.multiselect(
                "Text columns",
                names,
                key="batch_columns",
                width=320,
                persist_state="session",
                help="Several columns, such as subject and body, are joined.",
            )
        if reason := why_not_as_in_training(names, config):
            st.info(f"The text column is guessed, since {plain(reason)}. Check that it has such texts.")
        columns = [name for name in file["preview"][0] if name != "row"]
        st.html(table_html.table(columns, file["preview"], caption="The first rows"))
        return
    if not peek_job.is_active:
        st.markdown(
            "Upload a spreadsheet, CSV, TSV, JSON Lines, JSON or Parquet file with a column of texts. The "
            f"download has new columns: the class and its probability, and the next-best classes with theirs. {COMMAND}"
        )
        if limits().uploads:
            examples = checkpoints.examples(page.view.checkpoint)
            st.button(
                f"Try it with {len(examples)} example texts",
                key="try_examples",
                on_click=_use_examples,
                args=(examples,),
            )
    uploads.start_job(
        "peek",
        "Your file",
        task="Reading the file",
        complete=lambda spec: {**spec, "only_columns": True},
        on_start=lambda spec: _forget_result(),
    )


def _use_examples(examples: Sequence[Example]) -> None:
    """Save the example texts as a file, and read it like an uploaded one."""
    table = pandas.DataFrame({"text": [example.text for example in examples]})
    spec = uploads.save(table.to_csv(index=False).encode(), name="examples.csv")
    if spec is not None:
        _forget_result()
        waiting.start("peek", {**spec, "only_columns": True})


def _read_sheet() -> None:
    spec = dict(own_session.job("peek").spec)
    _forget_file()
    waiting.start("peek", {**spec, "sheet": st.session_state["batch_sheet"]})


def _forget_file() -> None:
    _forget_result()
    waiting.forget("peek")
    st.session_state.pop("batch_columns", None)


def _forget_result() -> None:
    waiting.cancel("batch")
    waiting.forget("batch")


def _draw_options(page: layout.Page, peek_job: JobState, batch_job: JobState) -> None:
    """Draw options and the button that starts the job, or the job's progress."""
    if batch_job.is_active:
        waiting.watch("batch", _draw_progress)
        return
    waiting.failure(batch_job)
    n_classes = checkpoints.summary(page.view.checkpoint).n_classes
    max_k = max(1, min(n_classes, MAX_K))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        st.session_state.setdefault("batch_k", 3)
        st.session_state["batch_k"] = min(int(st.session_state["batch_k"]), max_k)
        k = st.number_input(
            "Classes per row",
            1,
            max_k,
            key="batch_k",
            width=160,
            help="Each with its probability, most probable first.",
        )
        review_below = st.selectbox(
            "Leave to a human below",
            (NO_ROW, *CONFIDENCES),
            format_func=lambda confidence: "no row" if confidence == NO_ROW else percentage(confidence, 0),
            key="batch_review",
            persist_state="session",
            width=200,
            help="Adds a column needs_review, which is yes for rows with a lower probability. The page Report shows "
            "how many rows that is, and the accuracy on the others.",
        )
    is_delimited = str(peek_job.spec["file"]).removesuffix(".gz").endswith((".csv", ".tsv"))
    escapes_formulas = True
    if is_delimited:
        escapes_formulas = st.checkbox(
            "Put an apostrophe before cells that a spreadsheet would run as formulas",
            value=True,
            key="batch_safe",
            persist_state="session",
            help="A cell such as =HYPERLINK(…) in a text can leak data when the file is opened in a spreadsheet.",
        )
    choose = " You can choose another at the top of the page." if len(checkpoints.names()) > 1 else ""
    st.markdown(f"The classifier is **{plain(page.source.name)}**, with {n_classes:,} classes.{choose}")
    st.button(
        f"Classify {peek_job.result['rows']:,} rows",
        key="start_batch",
        type="primary",
        disabled=not st.session_state["batch_columns"],
        on_click=_start_batch,
        args=(page.source, dict(peek_job.spec), int(k), review_below or None, bool(escapes_formulas)),
    )


def _start_batch(
    source: Source, spec: dict[str, Any], k: int, review_below: float | None, escapes_formulas: bool
) -> None:
    waiting.start(
        "batch",
        {
            "file": spec["file"],
            "names": spec["names"],
            "checkpoint": str(source.folder),
            "model": source.name,
            "text_column": JOINER.join(st.session_state["batch_columns"]),
            "sheet": spec.get("sheet"),
            "top_k": k,
            "review_below": review_below,
            "safe": escapes_formulas,
        },
    )


def _draw_progress(job: JobState) -> None:
    """Draw the progress bar and a button to cancel."""
    if job.status == "waiting" and job.ahead:
        st.info(waiting.in_queue(job.ahead))
    else:
        done, rows = job.progress.get("done"), job.progress.get("rows")
        status = plain(str(job.progress.get("stage", "starting")))
        if done is not None and rows:
            status += f": {done:,} of {rows:,} rows{waiting.time_left(job)}"
        st.progress(min(max(float(job.progress.get("share") or 0.0), 0.0), 1.0), status)
    st.button("Cancel", key="cancel_batch", on_click=waiting.cancel, args=("batch",))


def _draw_result(batch_job: JobState) -> None:
    """Draw the download, the number of rows per class, and the first rows."""
    session = own_session.session()
    if session is None:
        return
    result, name = batch_job.result, file_name(batch_job.spec)
    file = session.job("batch") / str(result["file"])
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.markdown(f"**{result['done']:,} rows** classified by {plain(str(batch_job.spec['model']))}.")
        if warning := result.get("warning"):
            st.warning(plain(warning))
        if result["done"] < result["rows"]:
            st.warning(
                f"The other {result['rows'] - result['done']:,} rows were not classified, because a file may take at "
                f"most {limits().minutes} minutes here (TXCLS_MAX_MINUTES). The download ends with the last classified "
                "row."
            )
        download_name = _download_name(name, file.suffix)
        download_link(f"Download {download_name}", file, name=download_name, key="download_batch", is_primary=True)
        if review := result.get("review"):
            st.markdown(plain(review))
        counts = {label or "(no words)": n for label, n in result["labels"].items()}
        most_frequent, n = next(iter(counts.items()))
        chart(
            class_counts(counts),
            key="chart_classified",
            alt=f"Bar chart of rows per predicted class, {len(counts)} classes; most frequent: {most_frequent[:40]}, "
            f"{n:,}",
        )
    with right:
        rows = [_preview_row(row) for row in result["preview"]]
        columns = list(rows[0])
        with st.container(height=520 if len(rows) > 8 else "content", border=False):
            st.html(table_html.table(columns, rows, numbers=("probability",), named=("class",), caption="Rows"))
        st.caption(
            f"The first {len(rows)} rows with their most probable class. The download has all rows and also the "
            "next-best classes."
            + (
                f" {n_escaped:,} of its cells, such as those that begin with = or @, would be run as formulas by a "
                "spreadsheet: an apostrophe is put before them."
                if (n_escaped := result.get("n_escaped", 0))
                else ""
            )
        )


def _preview_row(row: dict[str, Any]) -> dict[str, str]:
    probability = row.get("probability")
    percent = percentage(float(probability)) if probability not in (None, "") else ""
    review = {"review": str(row["needs_review"])} if "needs_review" in row else {}
    label = str(row["predicted_label"]) or "(no words)"
    return {"class": label, "probability": percent, **review, "text": str(row["text"])}


def _download_name(name: str, suffix: str) -> str:
    """The name of the download, such as `mine-classified.csv`; unusual characters become underscores."""
    stem = "".join(char if char.isalnum() or char in " -_." else "_" for char in Path(name).stem).strip(" .") or "file"
    return f"{stem[:60]}-classified{suffix}"


if __name__ == "__main__":
    main()
