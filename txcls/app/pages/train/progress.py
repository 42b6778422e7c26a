"""The parts of the Train page about training runs: progress, result, and the visitor's classifiers."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from txcls.app import menu
from txcls.app.jobs.json_lines import read_json, read_lines
from txcls.app.jobs.queue import JobState
from txcls.app.shell import checkpoints, layout, own_session, table_html, view_state, waiting
from txcls.app.shell.charts import chart
from txcls.app.shell.downloads import download_link
from txcls.app.shell.markdown import bullets, plain
from txcls.checkpoint.comparison import Comparison
from txcls.figures import comparison_intervals, live_curves
from txcls.lessons.page_address import View
from txcls.wording import percentage

LINKS = (menu.REPORT, menu.CLASSIFY, menu.BATCH, menu.ATTENTION, menu.STEPS, menu.HEADS, menu.EXPLANATION)
RESULT_LINKS = LINKS[:3]
DOWNLOADS = {
    ".zip": "Download the classifier",
    ".html": "Download a page without a server",
    ".skops": "Download the linear baseline for scikit-learn",
}
MODEL_NAMES = {"majority": "Majority guess", "linear": "Linear baseline", "transformer": "This Transformer"}


def draw_progress(job: JobState) -> None:
    """Draw progress, metrics and curves of a training run that is queued or running; the buttons stay in place."""
    session = own_session.session()
    if job.status == "waiting" or session is None:
        st.info(waiting.in_queue(job.ahead) if job.ahead else "Starting …")
        label = "Leave the queue" if job.ahead else "Cancel"
        st.button(label, key="leave_queue", on_click=waiting.cancel, args=("train",))
        return
    progress, folder = job.progress, session.job("train")
    share = min(max(float(progress.get("share") or 0.0), 0.0), 1.0)
    st.progress(share, plain(str(progress["stage"])) + waiting.time_left(job))
    points, validations = (read_lines(folder / name) for name in ("curve.jsonl", "validations.jsonl"))
    plan = read_json(folder / "plan.json") or {}
    steps = int(plan.get("steps", 0)) or int(progress.get("steps") or 1)
    _draw_metrics(progress, points)
    chart(
        live_curves(points[:: max(1, len(points) // 300)], validations, steps=steps),
        key="chart_live",
        alt=_describe_curves(points, validations, steps),
    )
    phase = progress.get("phase", "prepare")
    if phase == "save":
        return
    is_stopping = (folder / "stop").exists()
    with st.container(horizontal=True):
        st.button(
            "Stopping …" if is_stopping else "Stop, and keep the classifier",
            key="stop_training",
            on_click=waiting.stop,
            args=("train",),
            disabled=is_stopping or phase == "compare",
        )
        st.button("Cancel", key="cancel_training", on_click=waiting.cancel, args=("train",))


def open_classifier(job: JobState) -> None:
    """Show the classifier of a finished job on all pages, with its first example as the text if it has any."""
    name = own_session.PREFIX + str(job.result["name"])
    view_state.change_view(checkpoint=name)
    if examples := own_session.examples(name):
        view_state.change_view(text=examples[0].text)


def _draw_metrics(progress: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> None:
    """Draw the latest metrics in a row; stages without metrics show the last ones."""
    last = points[-1] if points else {}
    loss, accuracy = (progress.get(name) or last.get(name) for name in ("loss", "accuracy"))
    speed = progress.get("tokens_per_second")
    epoch, epochs = int(progress.get("epoch") or 0), int(progress.get("epochs") or 0)
    metrics = {
        "epoch": f"{epoch} of {epochs}" if epoch and epochs else "–",
        "training loss": "–" if loss is None else f"{loss:.3f}",
        "training accuracy": "–" if accuracy is None else percentage(accuracy),
        "tokens per second": "–" if speed is None else f"{speed:,.0f}",
    }
    cells = "".join(f"<div>{name}<b>{html.escape(value)}</b></div>" for name, value in metrics.items())
    st.html(f'<div class="txcls-figures">{cells}</div>')
    st.caption(
        "Training loss: how improbable the labels of the latest training rows are to the model; lower is better. "
        "Training accuracy: share of these rows whose predicted class is the label. A token is a word or a part of one."
    )


def _describe_curves(points: Sequence[Mapping[str, Any]], validations: Sequence[Mapping[str, Any]], steps: int) -> str:
    if not points:
        return f"Curves of loss and accuracy over {steps:,} optimiser steps; none is done yet"
    last = points[-1]
    validation = f"; validation accuracy {percentage(validations[-1]['accuracy'])}" if validations else ""
    return (
        f"Curves of loss and accuracy after {last['step']:,} of {steps:,} optimiser steps: training loss "
        f"{last['loss']:.3f}, training accuracy {percentage(last['accuracy'])}{validation}"
    )


def draw_result(outcome: Mapping[str, Any], page: layout.PlainPage) -> None:
    """Draw the comparison of the classifier with the baselines, and links to the pages that use it first."""
    name = own_session.PREFIX + str(outcome["name"])
    if "problem" in outcome:
        st.warning(f"The classifier was saved, but comparing it with the baselines failed. {plain(outcome['problem'])}")
        _draw_links(name, RESULT_LINKS, page)
        return
    comparison = Comparison.from_dict(outcome["comparison"])
    done = plain(outcome["done"])
    if not outcome["is_complete"]:
        st.info(done)
    st.markdown(f"**{plain(comparison.verdict)}**")
    if (linear := own_session.download(name, ".skops")) is not None:
        download_link(DOWNLOADS[".skops"], linear, name=f"{outcome['name']}.skops", key="linear_of_result")
    _draw_links(name, RESULT_LINKS, page)
    models = {title: getattr(comparison, name) for name, title in MODEL_NAMES.items()}
    table_column, chart_column = st.columns([3, 2], gap="large")
    with table_column:
        measures = {"accuracy": "accuracy", "macro-F1": "macro_f1"}
        rows = [
            {"": title} | {heading: _with_interval(getattr(model, name)) for heading, name in measures.items()}
            for title, model in models.items()
        ]
        name, *cells = comparison.table[-1]
        rows.append(
            {"": name} | {m: cell.replace(" (", "\n(").split("\n") for m, cell in zip(measures, cells, strict=True)}
        )
        st.html(table_html.table(("", *measures), rows, numbers=tuple(measures), named=("",)))
        st.caption(
            f"On {comparison.n:,} held-out rows (95 % CI). The Transformer alone is right on "
            f"{comparison.only_transformer:,} of them, the linear baseline alone on {comparison.only_linear:,}. "
            f"{comparison.settings} Everything took {own_session.duration(outcome['seconds'])}. "
            f"{done if outcome['is_complete'] else ''}"
        )
        st.caption(
            "Accuracy: share of rows whose predicted class is the label. Macro-F1: mean F1 of "
            f"{outcome.get('tested') or 'the classes'}; each class counts equally. F1 is high only if precision and "
            "recall are. Majority guess: always guessing the most frequent class."
        )
    with chart_column:
        intervals = [
            (title, model.accuracy.value, model.accuracy.low, model.accuracy.high) for title, model in models.items()
        ]
        chart(
            comparison_intervals(intervals, measure="accuracy on test rows"),
            key="chart_comparison",
            alt="Accuracy on test rows with 95 % intervals: "
            + "; ".join(
                f"{title} {percentage(value)} ({percentage(low)} to {percentage(high)})"
                for title, value, low, high in intervals
            ),
        )
    with st.expander("How it was trained", key="how_trained", on_change="rerun") as expander:
        if expander.open:
            st.markdown(bullets(outcome["notes"]))


def _with_interval(metric: Any) -> list[str]:
    """A fraction, and its confidence interval on the next line."""
    return [percentage(metric.value), f"({100 * metric.low:.1f} to {100 * metric.high:.1f})"]


def _draw_links(name: str, pages: Sequence[menu.PageInfo], page: layout.PlainPage) -> None:
    """Draw links that open pages with a classifier of the visitor."""
    first = next(iter(checkpoints.examples(name)), None)
    text = first.text if first else page.view.text
    params = view_state.link_params(View(checkpoint=name, mode=page.view.mode, text=text))
    with st.container(horizontal=True, gap="small"):
        for entry in pages:
            st.page_link(entry.path, label=f"{entry.title} →", query_params=params)


def draw_own_classifiers(page: layout.PlainPage) -> None:
    """Draw the visitor's own classifiers with links to pages and with downloads."""
    for name in checkpoints.own_names():
        short_name, summary = name.removeprefix(own_session.PREFIX), checkpoints.summary(name)
        accuracy = "" if summary.accuracy is None else f" · {percentage(summary.accuracy)} accuracy on its test rows"
        st.markdown(f"**{plain(name)}** · {summary.n_classes:,} classes{accuracy}")
        _draw_links(name, LINKS, page)
        with st.container(horizontal=True):
            for suffix, label in DOWNLOADS.items():
                if (file := own_session.download(name, suffix)) is not None:
                    file_name = f"{short_name}{suffix}"
                    download_link(f"{label} · {file_name}", file, name=file_name, key=f"{suffix[1:]}_{short_name}")
        st.caption(
            "The zip can be opened here again or, unpacked, with `txcls.load`. The page needs no server; its examples "
            "are texts of your table."
        )
