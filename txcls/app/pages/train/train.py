"""Train a classifier on a visitor's labelled table: check the rows, train, compare, download."""

from typing import Any

import streamlit as st

from txcls.app import menu
from txcls.app.jobs.own_table import SAMPLES, file_name
from txcls.app.jobs.queue import JobState
from txcls.app.pages.train import forecast, table_charts
from txcls.app.pages.train import progress as training_view
from txcls.app.shell import checkpoints, layout, lecture, own_session, table_html, uploads, view_state, waiting
from txcls.app.shell.limits import limits
from txcls.app.shell.markdown import plain
from txcls.checkpoint.comparison import Comparison

SAMPLE_TITLES = {"sample": "Short messages, six kinds", "who_won": "Match reports: who won?"}
DEFAULT_MINUTES = 5
REMEDIES = {
    "merge": ("Merge these labels", "Keep the labels as written"),
    "strip_headers": ("Remove the e-mail headers", "Keep the e-mail headers"),
    "code_book": ("Name the classes after the code book", "Keep the codes as class names"),
}
"""Ways to read a table differently: the button that chooses each, and the one that undoes it."""


def main() -> None:
    """Draw the page."""
    page = layout.open_plain_page(menu.TRAIN)
    st.html(table_html.STYLE)
    read_job = own_session.job("read")
    _draw_status(read_job)
    with lecture.slide():
        st.subheader("1 · Your labelled texts", anchor=False)
        _draw_table(read_job)
        if read_job.status != "done":
            st.caption("Then: 2 · The rows, 3 · Train.")
    if read_job.status == "done" and "classes" in read_job.result:
        with lecture.slide():
            st.subheader(f"2 · The rows: {plain(str(read_job.result['name'])[:60])}", anchor=False)
            table_charts.draw_charts(read_job.result)
        table_charts.draw_problems(read_job.result, unit=str(read_job.result["unit"]))
        with lecture.slide():
            st.subheader("3 · Train", anchor="training")
            _draw_training(read_job)
    train_job = own_session.job("train")
    if train_job.status == "done":
        with lecture.slide():
            st.subheader(f"Result: {plain(own_session.PREFIX + str(train_job.result['name']))}", anchor="result")
            if labels := train_job.spec.get("label_column"):
                st.caption(f"Predicts column **{plain(str(labels))}** from **{plain(train_job.spec['text_column'])}**.")
            _offer_longer_training(train_job)
            training_view.draw_result(train_job.result, page)
    if checkpoints.own_names():
        with lecture.slide():
            st.subheader("Your classifiers", anchor=False)
            training_view.draw_own_classifiers(page)
    _draw_opener()
    _draw_privacy()
    layout.close_page(page)


def _draw_status(read_job: JobState) -> None:
    """Draw a line at the top with a link to the current training run or its result, which are far below."""
    train_job = own_session.job("train")
    if train_job.is_active and read_job.status == "done":  # waiting or running: the line is not redrawn in between
        st.markdown("Your classifier is not ready yet: [see the progress](#training)")
    elif train_job.status == "done":
        name = f"Your classifier **{plain(str(train_job.result['name']))}**"
        state = "has hardly been trained" if _is_hardly_trained(train_job) else "is ready"
        st.markdown(f"{name} {state}: [see the result](#result)")


def _is_hardly_trained(train_job: JobState) -> bool:
    comparison = train_job.result.get("comparison")
    return comparison is not None and Comparison.from_dict(comparison).is_hardly_trained


# The table


def _draw_table(read_job: JobState) -> None:
    """Draw an uploader and samples, or the table that was read with its columns."""
    if read_job.status == "done":
        _draw_survey(read_job)
        return
    if not read_job.is_active:
        st.markdown(
            "Upload a table with a text column and a label column: a spreadsheet, CSV, TSV, JSON Lines, JSON or "
            "Parquet. A few hundred rows are enough to begin with. You get a classifier that every page can open, "
            "compared with a linear baseline."
        )
    left, right = st.columns([3, 2], gap="large")
    with left:
        uploads.start_job("read", "Your table", task="Looking through the table", on_start=forecast.measure_early)
    if not read_job.is_active:
        with right:
            st.markdown("Or try it with one of these:")
            for name in SAMPLES:
                spec = {"sample": name, "names": {}}
                st.button(SAMPLE_TITLES[name], key=f"try_{name}", on_click=_start_reading, args=(spec,))


def _start_reading(spec: dict[str, Any]) -> None:
    """Start reading a table, and at the same time measuring it for the forecast."""
    if waiting.start("read", spec):
        forecast.measure_early(spec)


def _draw_survey(read_job: JobState) -> None:
    """Draw the table that was read: its columns, which can be corrected, and its first rows."""
    survey = read_job.result
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{plain(str(survey['name'])[:80])}** · {survey['rows']:,} rows", width="content")
        st.button("Use another table", key="another_table", on_click=_forget_table)
    for note in survey["notes"]:
        st.caption(plain(note))
    if "problem" in survey:
        st.error(plain(survey["problem"]))
    if survey["columns"]:
        _draw_columns(read_job)
        table_charts.draw_preview(survey)


def _draw_columns(read_job: JobState) -> None:
    """Draw boxes for sheet and columns, how they were guessed, and what to check in labels and texts."""
    survey = read_job.result
    uploads.column_boxes(read_job, _start_reading)
    if reasons := survey.get("reasons"):
        st.caption(" ".join(plain(reason) for reason in reasons))
    for note in (*survey.get("label_notes", ()), *survey.get("text_notes", ())):
        st.warning(plain(note))
    with st.container(horizontal=True):
        for option, value in survey.get("remedies", {}).items():
            is_on = bool(read_job.spec.get(option))
            button = REMEDIES[option][is_on]
            if option == "merge" and not is_on and survey.get("has_placeholders"):
                button = f"{button}, and drop missing ones" if survey["has_variants"] else "Drop missing labels"
            st.button(
                button,
                key=option,
                on_click=_start_reading,
                args=({**read_job.spec, option: None if is_on else value},),
            )


def _forget_table() -> None:
    for kind in ("read", "plan"):
        waiting.cancel(kind)
        waiting.forget(kind)


# Training


def _draw_training(read_job: JobState) -> None:
    """Draw the time budget with its forecast and the button, or the current training run."""
    if not limits().training:
        st.info(
            "Training is switched off on this server (TXCLS_TRAINING=off). On your own machine, run "
            "`python -m txcls train FILE`."
        )
        return
    train_job = own_session.job("train")
    if train_job.is_active:
        waiting.watch("train", training_view.draw_progress, on_done=training_view.open_classifier)
        return
    waiting.failure(train_job)
    limit = limits().minutes
    if limit > 1:
        minutes = int(
            st.slider(
                "Time budget, in minutes", 1, limit, min(own_session.last_minutes() or DEFAULT_MINUTES, limit),
                key="minutes", persist_state="session", width=420,
                on_change=lambda: own_session.remember_minutes(st.session_state["minutes"]),
            )
        )  # fmt: skip
    else:
        minutes = 1
        st.markdown("On this server, training takes at most one minute (TXCLS_MAX_MINUTES).")
    can_train, forecast_spec = forecast.draw(read_job.spec, minutes)
    spec = {**_training_spec(read_job, minutes), **forecast_spec}
    st.button(
        "Train", key="start_training", type="primary", on_click=_start_training, args=(spec,), disabled=not can_train
    )


def _training_spec(read_job: JobState, minutes: int) -> dict[str, Any]:
    """The spec of the training job without the name of the classifier."""
    source = {name: read_job.spec[name] for name in ("sample", "file", "names") if name in read_job.spec}
    columns = {
        name: read_job.result[name] for name in ("text_column", "label_column", "sheet") if read_job.result.get(name)
    }
    options = {name: read_job.spec[name] for name in REMEDIES if read_job.spec.get(name)}
    return {**source, **columns, **options, "minutes": minutes}


def _start_training(spec: dict[str, Any]) -> None:
    waiting.cancel("plan")
    name = str(spec["sample"]) if "sample" in spec else file_name(spec)
    waiting.start("train", {**spec, "as": own_session.free_name(name, str(spec.get("label_column", "")))})


def _offer_longer_training(train_job: JobState) -> None:
    """Draw a button that trains again for as long as all rows and planned steps take, if the time was too short."""
    longer = train_job.result.get("longer") or {}
    if "missed" not in longer or not limits().training:  # an earlier version stored no reason
        return
    needed, limit = int(longer["minutes"]), limits().minutes
    minutes = min(needed, limit)
    reason = str(longer["reason"])
    if _is_hardly_trained(train_job):
        reason += " This classifier has hardly been trained."
    less = f" This server allows at most {_minutes(limit)} (TXCLS_MAX_MINUTES)." if limit < needed else ""
    st.warning(f"{reason} At the speed of this run, {longer['missed']} take about {_minutes(needed)}.{less}")
    if minutes <= train_job.spec["minutes"]:
        return
    spec = {**train_job.spec, "minutes": minutes, "speed": longer["speed"]}
    label = f"Train again for {_minutes(minutes)}"
    st.button(label, key="train_again", type="primary", on_click=_start_training, args=(spec,))


def _minutes(minutes: int) -> str:
    return f"{minutes} minute{'s' * (minutes != 1)}"


# Open a classifier, and delete the visitor's files


def _draw_opener() -> None:
    """Draw an uploader for a previously downloaded classifier."""
    job = own_session.job("open")
    with st.expander("Open a model that you downloaded here", expanded=job.status != "none"):
        if job.status == "done":
            st.success(f"Opened as {own_session.PREFIX}{job.result['name']}: {job.result['classes']:,} classes.")
        uploads.start_job(
            "open",
            "A classifier as a zip",
            task="Opening",
            complete=lambda spec: {**spec, "as": own_session.free_name(file_name(spec))},
            on_done=training_view.open_classifier,
            types=["zip"],
            limits_line="Only weights (safetensors) and JSON are read; anything else in the file is refused.",
        )


def _draw_privacy() -> None:
    """Say who can open the visitor's files, and when they are deleted."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"Your files and classifiers stay on this server and are deleted {own_session.retention()} after your last "
            "visit. Until then, this browser finds them again with a cookie. Anyone with "
            f"the address of this page can open them. {own_session.TEXT_IN_ADDRESS}"
        )
        if own_session.session() is not None:
            st.button("Delete everything now", key="forget", on_click=_delete_everything)


def _delete_everything() -> None:
    own_session.forget_session()
    view_state.change_view(checkpoint="", versus="")


if __name__ == "__main__":
    main()
