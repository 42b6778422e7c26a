"""A training as the page Train shows it: while it runs, and what came of it."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.address import View
from txcls.app import pages
from txcls.app.jobs.queue import JobState
from txcls.app.jobs.sessions import read_json, read_lines
from txcls.app.shell import checkpoints, layout, own, state, table_html, waiting
from txcls.app.shell.charts import chart
from txcls.app.shell.downloads import download_link
from txcls.app.shell.markdown import plain
from txcls.checkpoint.comparison import Comparison
from txcls.figures import comparison_intervals, live_curves
from txcls.wording import percentage

LINKS = (pages.CLASSIFY, pages.ATTENTION, pages.STEPS, pages.SWITCHBOARD, pages.EXPLANATION, pages.REPORT, pages.BATCH)
DOWNLOADS = {".zip": "Download the classifier", ".html": "Download a page without a server"}
NAMES = {
    "majority": "Majority guess",
    "linear": "Linear baseline",
    "transformer": "This Transformer",
}


def live(now: JobState) -> None:
    """Progress, figures and curves of a training that waits or runs; its buttons keep their place."""
    if now.status == "waiting":
        st.info(waiting.in_queue(now.ahead) if now.ahead else "Starting …")
        st.button("Leave the queue", key="leave_queue", on_click=waiting.cancel, args=("train",))
        return
    progress = now.progress
    share = min(max(float(progress.get("share") or 0.0), 0.0), 1.0)
    left = progress.get("seconds_left")
    st.progress(
        share,
        f"{plain(str(progress['stage']))}" + (f" · {own.clock(left)} left" if left is not None and share else ""),
    )
    folder = _folder()
    points, validations = (read_lines(folder / name) for name in ("curve.jsonl", "validations.jsonl"))
    plan = read_json(folder / "plan.json") or {}
    steps, runs = int(plan.get("steps", 0)) or int(progress.get("steps") or 1), int(plan.get("runs", 1))
    _figures(progress, points, runs)
    chart(
        live_curves(_thinned(points), validations, steps=steps, runs=runs),
        key="chart_live",
        alt=_about_curves(points, validations, steps),
        file_name="training",
    )
    if runs > 1:
        st.caption(f"{runs} runs from the same start, one after another; the mean of their weights is kept.")
    stopping = (folder / "stop").exists()
    with st.container(horizontal=True):
        st.button(
            "Stopping …" if stopping else "Stop, and keep what it has learned",
            key="stop_training",
            on_click=waiting.stop,
            args=("train",),
            disabled=stopping,
        )
        st.button("Cancel", key="cancel_training", on_click=waiting.cancel, args=("train",))


def show_from_now_on(done: JobState) -> None:
    """Have all pages show the classifier that a job has made, with a text of its own rows where there is one."""
    name = own.PREFIX + str(done.result["name"])
    state.change_view(checkpoint=name)
    if examples := own.examples(name):
        state.change_view(text=examples[0].text)


def _folder() -> Path:
    session = own.session()
    return Path() if session is None else session.job("train")


def _thinned(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most some hundred points."""
    return points[:: max(1, len(points) // 300)]


def _figures(progress: Mapping[str, Any], points: list[dict[str, Any]], runs: int) -> None:
    """The latest figures in a row; those of the last step stay while a later stage has none."""
    last = points[-1] if points else {}
    loss, accuracy = (progress.get(name) or last.get(name) for name in ("loss", "accuracy"))
    speed = progress.get("tokens_per_second")
    at, epochs = int(progress.get("epoch") or 0), int(progress.get("epochs") or 0) // runs
    epoch = f"{(at - 1) % epochs + 1} of {epochs}" if at and epochs else "–"
    run = (("run", f"{(at - 1) // epochs + 1} of {runs}" if at and epochs else "–"),) if runs > 1 else ()
    figures = (
        *run,
        ("epoch", epoch),
        ("training loss", "–" if loss is None else f"{loss:.3f}"),
        ("training accuracy", "–" if accuracy is None else percentage(accuracy)),
        ("tokens per second", "–" if speed is None else f"{speed:,.0f}"),
    )
    cells = "".join(f"<div>{name}<b>{html.escape(value)}</b></div>" for name, value in figures)
    st.html(f'<div class="txcls-figures">{cells}</div>')


def _about_curves(points: list[dict[str, Any]], validations: list[dict[str, Any]], steps: int) -> str:
    if not points:
        return f"Curves of loss and accuracy over {steps:,} optimiser steps; none is done yet"
    last = points[-1]
    said = f"Curves of loss and accuracy after {last['step']:,} of {steps:,} optimiser steps: training loss "
    said += f"{last['loss']:.3f}, training accuracy {percentage(last['accuracy'])}"
    return said + (f"; validation accuracy {percentage(validations[-1]['accuracy'])}" if validations else "")


def result(opened: layout.Opened, found: Mapping[str, Any]) -> None:
    """How the classifier does beside the baselines, and where to look into it."""
    if "problem" in found:
        st.warning(
            f"The classifier was saved, and then the comparison with the baselines failed. {plain(found['problem'])}"
        )
        return
    comparison = Comparison.from_dict(found["comparison"])
    if found["stopped_early"]:
        why = "as you asked" if found["asked_to_stop"] else "since its time was used up on this busy server"
        st.info(f"Stopped early, {why}: this is what it had learned until then.")
    st.markdown(f"**{plain(found['verdict'])}**")
    players = [(NAMES[name], getattr(comparison, name)) for name in NAMES]
    left, right = st.columns([3, 2], gap="large")
    with left:
        rows = [
            {"": name, "accuracy": _measured(one.accuracy), "macro-F1": _measured(one.macro_f1)}
            for name, one in players
        ]
        st.html(table_html.table(("", "accuracy", "macro-F1"), rows, numbers=("accuracy", "macro-F1"), named=("",)))
        st.caption(
            f"On {comparison.n:,} test rows that nothing learned from; in brackets 95 % intervals. Only the "
            f"Transformer is right on {comparison.only_transformer:,} of them, only the linear baseline on "
            f"{comparison.only_linear:,}. {comparison.settings} "
            f"Trained in {own.clock(found['seconds'])}."
        )
    with right:
        drawn = [(name, one.accuracy.value, one.accuracy.low, one.accuracy.high) for name, one in players]
        chart(
            comparison_intervals(drawn, measure="accuracy on test rows"),
            key="chart_comparison",
            alt="Accuracy on test rows with 95 % intervals: "
            + "; ".join(
                f"{name} {percentage(value)} ({percentage(low)} to {percentage(high)})"
                for name, value, low, high in drawn
            ),
            file_name="comparison",
        )
    with st.expander("How it was trained", key="how_trained", on_change="rerun") as how:
        if how.open:
            st.markdown("\n".join(f"- {plain(note)}" for note in found["notes"]))


def _measured(one: Any) -> list[str]:
    """A share, and its interval below it."""
    return [percentage(one.value), f"({100 * one.low:.1f} to {100 * one.high:.1f})"]


def mine(opened: layout.Opened) -> None:
    """The visitor's own classifiers: links into the pages, and downloads."""
    for name in checkpoints.own_names():
        bare, known = name.removeprefix(own.PREFIX), checkpoints.summary(name)
        score = "" if known.accuracy is None else f" · {percentage(known.accuracy)} right on its test rows"
        st.markdown(f"**{plain(name)}** · {known.n_classes:,} classes{score}")
        first = next(iter(checkpoints.examples(name)), None)
        text = first.text if first else opened.view.text
        params = state.link_params(View(checkpoint=name, mode=opened.view.mode, text=text))
        with st.container(horizontal=True, gap="small"):
            for page in LINKS:
                st.page_link(page.path, label=f"{page.title} →", query_params=params)
        with st.container(horizontal=True):
            for suffix, label in DOWNLOADS.items():
                if (file := own.download(name, suffix)) is not None:
                    download_link(f"{label} · {bare}{suffix}", file, name=f"{bare}{suffix}", key=f"{suffix[1:]}_{bare}")
        st.caption("The zip opens here again, and with `txcls.load` where you unpack it. The page needs no server.")
