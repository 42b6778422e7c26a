"""Train a classifier on a visitor's labelled table: check the rows, train, compare, download."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from txcls.app import menu
from txcls.app.jobs.own_files import SAMPLES, file_name
from txcls.app.jobs.queue import JobState
from txcls.app.pages.train import forecast
from txcls.app.pages.train import progress as training_view
from txcls.app.pages.train import survey as survey_view
from txcls.app.shell import checkpoints, layout, lecture, own, state, table_html, uploads, waiting
from txcls.app.shell.limits import limits
from txcls.app.shell.markdown import plain
from txcls.data.columns import JOINED, text_columns

SAMPLE_TITLES = {"sample": "600 short messages, six kinds", "who_won": "Match reports: who won?"}
DEFAULT_MINUTES = 5


def main() -> None:
    """Draw the page."""
    opened = layout.open_plain_page(menu.TRAIN)
    st.html(table_html.STYLE)
    read = own.job("read")
    _where_it_is(read)
    with lecture.slide():
        st.subheader("1 · Your labelled texts", anchor=False)
        _table(read)
    if read.status == "done" and "classes" in read.result:
        with lecture.slide():
            st.subheader(f"2 · What is in {plain(str(read.result['name'])[:60])}", anchor=False)
            survey_view.charts(read.result)
        survey_view.problems(read.result, unit=str(read.result["unit"]))
        with lecture.slide():
            st.subheader("3 · Train", anchor="training")
            _training(read)
    trained = own.job("train")
    if trained.status == "done":
        with lecture.slide():
            st.subheader(f"Result: {plain(own.PREFIX + str(trained.result['name']))}", anchor="result")
            training_view.result(trained.result)
    if checkpoints.own_names():
        with lecture.slide():
            st.subheader("Your classifiers", anchor=False)
            training_view.mine(opened)
    _open_model()
    _privacy()
    layout.close_page(opened)


def _where_it_is(read: JobState) -> None:
    """Draw a line at the top with a link to the current training run or its result, which are far below."""
    trained = own.job("train")
    if trained.is_active and read.status == "done":
        st.markdown("Your training runs: [see how far it is](#training)")
    elif trained.status == "done":
        st.markdown(f"Your classifier **{plain(str(trained.result['name']))}** is ready: [its result](#result)")


# The table


def _table(read: JobState) -> None:
    """Draw an uploader and samples, or the table that was read with its columns."""
    if read.status == "done":
        _chosen(read)
        return
    if not read.is_active:
        st.markdown(
            "Upload a table with a text column and a label column: a spreadsheet, CSV, TSV, JSON Lines, JSON or "
            "Parquet. A few hundred rows are enough to begin with. You get a classifier that every page can open, "
            "compared with a linear baseline."
        )
    left, right = st.columns([3, 2], gap="large")
    with left:
        uploads.start_job("read", "Your table", task="Looking through the table", on_start=forecast.measure_early)
    if not read.is_active:
        with right:
            st.markdown("Or try it with one of these:")
            for name in SAMPLES:
                spec = {"sample": name, "names": {}}
                st.button(SAMPLE_TITLES[name], key=f"try_{name}", on_click=_read, args=(spec,))


def _read(spec: dict[str, Any]) -> None:
    """Start reading a table, and measuring it for the forecast at the same time."""
    if waiting.start("read", spec):
        forecast.measure_early(spec)


def _chosen(read: JobState) -> None:
    """Draw the table that was read: its columns, which can be corrected, and its first rows."""
    survey = read.result
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(str(survey['name'])[:80])}** · {survey['rows']:,} rows", width="content")
        st.button("Take another table", key="another_table", on_click=_another)
    for note in survey["notes"]:
        st.caption(plain(note))
    if "problem" in survey:
        st.error(plain(survey["problem"]))
    if survey["columns"]:
        _columns(read)
        survey_view.preview(survey)


def _columns(read: JobState) -> None:
    """Draw boxes for sheet and columns, how they were guessed, and what to check in labels and texts."""
    survey = read.result
    names = [column["name"] for column in survey["columns"]]
    changed: dict[str, Any] = {"on_change": _columns_changed, "args": (dict(read.spec),), "width": 320}
    with st.container(horizontal=True):
        if len(survey["sheets"]) > 1:
            st.session_state["sheet_box"] = survey["sheet"]
            st.selectbox("Sheet", survey["sheets"], key="sheet_box", **{**changed, "on_change": _sheet_changed})
        text, label = (survey.get(field) or read.spec.get(field) for field in ("text_column", "label_column"))
        st.session_state["text_column_box"] = list(text_columns(text, names)) if text else []
        st.multiselect(
            "Columns of the texts",
            names,
            key="text_column_box",
            placeholder="Choose a column",
            help="Several columns, such as subject and body, are joined.",
            **changed,
        )
        st.session_state["label_column_box"] = label
        st.selectbox(
            "Column of the labels",
            names,
            index=None if label is None else 0,  # a guessed column can be changed, not cleared
            key="label_column_box",
            placeholder="Choose a column",
            **changed,
        )
    if reasons := survey.get("reasons"):
        st.caption(" ".join(plain(reason) for reason in reasons))
    for note in (*survey.get("label_notes", ()), *survey.get("text_notes", ())):
        st.warning(plain(note))
    if survey.get("can_merge"):
        is_merged = bool(read.spec.get("merge"))
        st.button(
            "Keep the labels as they are written" if is_merged else "Merge these labels, drop missing ones",
            key="merge_labels",
            on_click=_read,
            args=({**read.spec, "merge": not is_merged},),
        )


def _columns_changed(spec: Mapping[str, Any]) -> None:
    """Read the table again with the chosen columns."""
    chosen = {
        "text_column": JOINED.join(st.session_state["text_column_box"]),
        "label_column": st.session_state["label_column_box"],
    }
    _read({**spec, **{field: name for field, name in chosen.items() if name}})


def _sheet_changed(spec: Mapping[str, Any]) -> None:
    """Read another sheet, and guess its columns."""
    _read({"file": spec["file"], "names": spec["names"], "sheet": st.session_state["sheet_box"]})


def _another() -> None:
    for kind in ("read", "plan"):
        waiting.cancel(kind)
        waiting.forget(kind)


# Training


def _training(read: JobState) -> None:
    """Draw the time budget with its forecast and the button, or the current training run."""
    if not limits().training:
        st.info(
            "Training is switched off on this server (TXCLS_TRAINING=off). On a machine of your own: "
            "`python -m txcls train FILE`"
        )
        return
    trained = own.job("train")
    if trained.is_active:
        waiting.watch("train", training_view.live, on_done=training_view.show_from_now_on)
        return
    waiting.failure(trained)
    limit = limits().minutes
    if limit > 1:
        minutes = int(
            st.slider(
                "Time budget, in minutes", 1, limit, min(own.last_minutes() or DEFAULT_MINUTES, limit), key="minutes",
                persist_state="session", on_change=lambda: own.remember_minutes(st.session_state["minutes"]), width=420,
            )
        )  # fmt: skip
    else:
        minutes = 1
        st.markdown("On this server, training takes at most one minute (TXCLS_MAX_MINUTES).")
    can, speed = forecast.draw(read.spec, minutes)
    spec = {**_spec(read, minutes), **speed}
    st.button("Train", key="start_training", type="primary", on_click=_train, args=(spec,), disabled=not can)


def _spec(read: JobState, minutes: int) -> dict[str, Any]:
    """The spec of the training job."""
    source = {name: read.spec[name] for name in ("sample", "file", "names") if name in read.spec}
    columns = {name: read.result[name] for name in ("text_column", "label_column", "sheet") if read.result.get(name)}
    merge = {"merge": True} if read.spec.get("merge") else {}
    return {**source, **columns, **merge, "minutes": minutes}


def _train(spec: dict[str, Any]) -> None:
    waiting.cancel("plan")
    name = str(spec["sample"]) if "sample" in spec else file_name(spec)
    waiting.start("train", {**spec, "as": own.free_name(name)})


# Open a classifier, and delete the visitor's files


def _open_model() -> None:
    """Draw an uploader for a previously downloaded classifier."""
    job = own.job("open")
    with st.expander("Open a model that you downloaded here", expanded=job.status != "none"):
        if job.status == "done":
            st.success(f"Opened as {own.PREFIX}{job.result['name']}: {job.result['classes']:,} classes.")
        uploads.start_job(
            "open",
            "A classifier as a zip",
            task="Opening",
            complete=lambda spec: {**spec, "as": own.free_name(file_name(spec))},
            on_done=training_view.show_from_now_on,
            types=["zip"],
            limits_line="Only weights (safetensors) and JSON are read; anything else in the file is refused.",
        )


def _privacy() -> None:
    """Draw who can see uploaded files, and how long they are kept."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"Your files and classifiers are on this server only, and are removed {own.retention()} after your last "
            "visit. The address of this page leads to them: bookmark it to come back, and share it with nobody who "
            "should not see them. Links on the pages do not contain it."
        )
        if own.session() is not None:
            st.button("Remove everything now", key="forget", on_click=_forget)


def _forget() -> None:
    own.forget_session()
    state.change_view(checkpoint="", versus="")


if __name__ == "__main__":
    main()
