"""How good a classifier is, from its saved metrics: by class, confidence and kind of text, and against a linear model.

`python -m txcls report` measures them again on texts, and lists mistakes and doubtful labels.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import menu
from txcls.app.shell import layout, lecture
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import PageSection, draw_sections
from txcls.app.shell.markdown import bullets, escape, table
from txcls.app.shell.prediction import load_classifier
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.comparison import Comparison
from txcls.evaluation.metrics import MIN_ROWS, accuracy_cell
from txcls.evaluation.report import (
    RELIABILITY_CAPTION,
    ConfusedPair,
    Report,
    class_rows,
    cluster_order,
    group_accuracies,
    headline_metrics,
    majority_sentence,
    most_confused_pairs,
    stored_report,
)
from txcls.evaluation.sections import class_advice
from txcls.figures import (
    confusion_map,
    group_bars,
    reliability_diagram,
    training_curves,
    visible,
)
from txcls.text.formatting import class_title, percentage, start_of

N_ZOOMED = 12
"""Number of classes of the confusion matrix when zoomed in."""
MAX_WITHOUT_ZOOM = 14
"""Maximum number of classes for which there is no control to zoom in."""
ABOUT_MATRIX = (
    "Rows are true classes, columns predicted classes, numbers texts, colours shares of a row. Many classes are in an "
    "order in which those confused with each other are adjacent (hierarchical clustering). Point at a cell, or tap it, "
    "for its numbers."
)
MAX_ROWS = 14
"""Maximum number of rows of a table that does not scroll."""
MAX_CELL = 180
"""Maximum number of characters of a class name that is shown in a table."""
ORDER_NAMES = {
    "words_shuffled": "words in random order",
    "positions_permuted": "position vectors in random order",
    "positions_mean": "the same position vector for all",
    "positions_removed": "no position vectors",
}
TABLE_STYLE = """
<style>
.st-key-report_columns [data-testid="stMetricValue"] {font-size: 4rem; line-height: 1.1;}
.st-key-report_columns [data-testid="stMetricLabel"] p {font-size: 1.1rem;}
.st-key-report_columns [data-testid="stColumn"]:first-child p {line-height: 1.4;}
.st-key-report_columns [data-testid="stColumn"]:first-child [data-testid="stMarkdown"] p {font-size: 1.3rem;}
@media (max-width: 640px) {
  .st-key-report_columns [data-testid="stMetricValue"] {font-size: 2.6rem;}
  .st-key-report_columns [data-testid="stColumn"]:first-child [data-testid="stMarkdown"] p {font-size: 1.08rem;}
}
</style>
"""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.REPORT, has_box=False)
    st.html(TABLE_STYLE)
    checkpoint = load_classifier(page).checkpoint
    page.facts.empty()  # the page's number is the accuracy
    report = stored_report(checkpoint)
    worst = [] if report.confusion is None else most_confused_pairs(report.classes, report.confusion)
    if not report.metrics:
        st.info(
            f"This model was not measured. `python -m txcls evaluate {escape(report.name)} --data FILE --write` does "
            "so on labelled texts of your own."
        )
    else:
        with lecture.slide(lecture.CLASSES), st.container(key="report_columns"):
            number, matrix = st.columns([1, 2], gap="large")
            with number:
                _draw_accuracy(report, worst)
            if report.confusion is not None:
                with matrix:
                    _draw_matrix(page, report.classes, report.confusion, worst)
    draw_sections(page.view, _list_sections(page, report, checkpoint, worst))
    layout.close_page(page)


def _list_sections(
    page: layout.Page, report: Report, checkpoint: Checkpoint, worst: Sequence[ConfusedPair]
) -> list[PageSection]:
    """The sections drawn on demand: those for which something was measured."""
    metrics, parts = report.metrics, []
    config = checkpoint.config
    regularised = {
        "dropout": max(config.model.dropout, config.train.token_dropout),
        "label smoothing": config.train.label_smoothing,
    }
    if metrics and not lecture.is_on():  # tables that do not fit on a slide
        parts.append(PageSection("numbers", "All numbers", partial(_draw_numbers, page, report)))
        parts.append(PageSection("classes", "Class by class", partial(_draw_per_class, report)))
        if worst:
            parts.append(PageSection("pairs", "Confused pairs", partial(_draw_pairs, report, worst)))
    if any(row["n"] for row in metrics.get("reliability", ())):
        parts.append(PageSection("confidence", "Confidence", partial(_draw_reliability, report), (lecture.CLASSES,)))
    if groups := _list_groups(report):
        parts.append(PageSection("kinds", "Kinds of texts", partial(_draw_groups, groups), (lecture.WORDS,)))
    if len(history := checkpoint.history) > 1:
        draw = partial(_draw_training_curves, history, regularised)
        parts.append(PageSection("training", "Training", draw, (lecture.CLASSES,)))
    return parts


def _draw_accuracy(report: Report, worst: Sequence[ConfusedPair]) -> None:
    """Draw the accuracy, what it is compared with, and which classes are confused most."""
    name, value, meaning = headline_metrics(report.metrics)[0]
    st.metric(f"{name} on {report.rows_description.replace(' rows', ' texts')}", value, help=meaning)
    if report.comparison:
        comparison = Comparison.from_dict(report.comparison)
        st.markdown(escape(comparison.verdict), help=escape(comparison.settings))
    elif sentence := majority_sentence(report):
        st.markdown(escape(sentence))
    if worst:
        first, second = (escape(class_title(name)) for name in (worst[0].first, worst[0].second))
        st.markdown(
            f"Most often confused: **{first}** and **{second}**, {worst[0].n:,} of {report.metrics['n']:,} texts."
        )


def _draw_numbers(page: layout.Page, report: Report) -> None:
    """Draw the other metrics, the comparison with simpler models, and the command for a longer report."""
    st.subheader("All numbers", anchor=False)
    st.markdown(table(("metric", "value", ""), [(name, f"**{value}**", escape(meaning)) for name, value, meaning in
                                               headline_metrics(report.metrics)]))  # fmt: skip
    if report.comparison:
        models = Comparison.from_dict(report.comparison)
        rows = [("held-out rows (95 % CI)", "accuracy", "macro-F1"), *models.table]
        st.markdown(table(rows[0], rows[1:]))
        st.caption(escape(models.settings))
    st.markdown(
        f"`python -m txcls report {page.source.name} --out report.html` writes a page with its mistakes, labels in "
        "doubt and thresholds, on the test rows or on a table of your own (`--data FILE`)."
    )


def _draw_training_curves(history: Sequence[Mapping[str, Any]], regularised: Mapping[str, float]) -> None:
    """Draw the curves; `regularised` names the methods that act only in training, with their strengths."""
    st.subheader("When was the model best?", anchor=False)
    best = next((row for row in reversed(history) if row.get("best")), history[-1])
    accuracy = best.get("validation_accuracy")
    best_accuracy = f"; best validation accuracy: {percentage(accuracy)}" if accuracy is not None else ""
    if accuracy is not None and "step" in best:
        only = " and ".join(name for name, strength in regularised.items() if strength)
        only *= best.get("train_loss", 0) > best.get("validation_loss", 0)
        st.markdown(
            f"After **{best['step']:,} of {history[-1]['step']:,} training steps**: its validation accuracy "
            f"was then highest, **{percentage(accuracy)}**, and it was saved."
            + f" The training loss is higher because only training uses {only}."
            * bool(only)
        )
    chart(
        training_curves(history).update_xaxes(tickformat=","),
        key="chart_training_report",
        alt=f"Loss and accuracy at {len(history)} validations during training{best_accuracy}",
    )


def _draw_matrix(
    page: layout.Page, classes: Sequence[str], counts: NDArray[np.integer[Any]], worst: Sequence[ConfusedPair]
) -> None:
    """Draw the confusion matrix; with many classes, only a chosen one and those most confused with it."""
    st.subheader("What is confused with what?", anchor=False, help=ABOUT_MATRIX)
    chosen = worst[0].first if worst and len(classes) > MAX_WITHOUT_ZOOM else None
    if len(classes) > MAX_WITHOUT_ZOOM and not lecture.is_on():  # a slide has no room for all classes
        chosen = st.selectbox(
            "A class and those that it is most confused with",
            classes,
            index=None if chosen is None else classes.index(chosen),
            key=f"report_zoom_{page.source.name}",
            placeholder="all classes",
            format_func=class_title,
            label_visibility="collapsed",
            width=420,
        )
    order = list(range(len(classes))) if len(classes) <= N_ZOOMED else cluster_order(counts).tolist()
    if chosen is not None:
        centre = classes.index(chosen)
        confusions = counts[centre] + counts[:, centre]
        nearest = sorted(order, key=lambda c: (c != centre, -confusions[c]))[:N_ZOOMED]
        order = [c for c in order if c in nearest]
    names = [classes[c] for c in order]
    shown = counts[order][:, order]
    most_confused, framed = "no text is confused", None
    if worst:
        most_confused = f"most confused: {worst[0].first} and {worst[0].second}, {worst[0].n} texts"
        if {worst[0].first, worst[0].second} <= set(names):
            framed = names.index(worst[0].first), names.index(worst[0].second)
    st.markdown(
        "Each row holds the texts of one class; on the diagonal, they are right."
        + " Framed: the pair most often confused." * (framed is not None)
    )
    chart(
        confusion_map(names, shown, support=counts.sum(axis=1)[order].tolist(), framed=framed),
        key="chart_confusion",
        grows=True,
        alt=f"Confusion matrix of {len(names)} of {len(classes)} classes; {most_confused}",
    )


def _draw_pairs(report: Report, worst: Sequence[ConfusedPair]) -> None:
    st.subheader("Most confused pairs of classes", anchor=False)
    rows = [
        (
            f"{_show_name(pair.first)} / {_show_name(pair.second)}",
            str(pair.first_as_second),
            str(pair.second_as_first),
            percentage(pair.share),
        )
        for pair in worst
    ]
    _draw_table(("classes", "first → second", "second → first", "share of both"), rows)
    st.markdown(bullets(class_advice(report)))


def _draw_per_class(report: Report) -> None:
    st.subheader("Class by class", anchor=False)
    rows, has_dash = [], False
    for row in class_rows(report):
        has_dash |= None in (row.precision, row.f1)
        precision, f1 = ("–" if share is None else percentage(share) for share in (row.precision, row.f1))
        false_positives = "" if row.false_positives is None else f"{row.false_positives:,}"
        recall = row.recall_cell if row.n else "–"
        rows.append((_show_name(row.label), f"{row.n:,}", precision, recall, f1, false_positives))
    _draw_table(("class", "rows", "precision", "recall (95 % CI)", "F1", "false positives"), rows)
    st.caption("Lowest F1 first." + " A class that is never predicted, or has no rows, has a dash (–)." * has_dash)


def _draw_reliability(report: Report) -> None:
    bins = [row for row in report.metrics["reliability"] if row["n"]]
    st.subheader("Can its confidence be trusted?", anchor=False)
    gap = report.metrics["ece"]
    st.markdown(
        f"**{'Yes' if gap < 0.02 else 'Roughly' if gap < 0.05 else 'No'}**: confidence and accuracy differ by "
        f"**{100 * gap:.1f} points** on average.",
        help=RELIABILITY_CAPTION,
    )
    largest = max(bins, key=lambda row: row["n"])
    chart(
        reliability_diagram(bins),
        key="chart_reliability",
        alt=f"Accuracy in {len(bins)} bins of confidence; in the largest, {largest['n']:,} texts, confidence "
        f"{percentage(largest['confidence'])} and accuracy {percentage(largest['accuracy'])}",
    )


GroupChart = tuple[str, str, Sequence[tuple[str, float, int]]]
"""A name, a title, and the accuracy and number of rows of each group."""


def _list_groups(report: Report) -> list[GroupChart]:
    """The charts of accuracy by length and by word order, each only if it was measured."""
    parts: list[GroupChart] = []
    metrics = report.metrics
    groups = [group for group in group_accuracies(report) if group[2] >= MIN_ROWS]
    if len(groups) > 1:  # a single group has all rows
        n_missing = metrics["n"] - sum(n for *_, n in groups)
        left_out = f" ({n_missing:,} other texts left out)" * bool(n_missing)
        parts.append(("length", f"By length, in tokens read{left_out}", groups))
    if order := metrics.get("order"):
        accuracies = {
            "original order": metrics["accuracy"],
            **{ORDER_NAMES.get(name, name): order[name] for name in order},
        }
        rows = [(name, accuracy, metrics["n"]) for name, accuracy in accuracies.items()]
        parts.append(("word order", "With and without word order", rows))
    return parts


def _draw_groups(groups: Sequence[GroupChart]) -> None:
    st.subheader(f"Does {' or '.join(name for name, *_ in groups)} matter?", anchor=False)
    answers = []
    for name, _, rows in groups:
        unit = " tokens" * (name == "length")
        if name == "word order":
            better, worse = rows[0], next((row for row in rows if row[0] == ORDER_NAMES["words_shuffled"]), rows[1])
        else:
            better, worse = (edge(rows, key=itemgetter(1)) for edge in (max, min))
        answers.append(
            f"**{name.capitalize()}**: {better[0]}{unit} {percentage(better[1])}, {worse[0]}{unit} "
            f"{percentage(worse[1])}, **{100 * (better[1] - worse[1]):.1f} points** less."
        )
    st.markdown("  \n".join(answers))
    for column, (name, title, rows) in zip(st.columns(len(groups)), groups, strict=True):
        with column:
            st.markdown(f"**{title}**")
            names, accuracies, counts = zip(*rows, strict=True)
            chart(
                group_bars(names, accuracies, counts),
                key=f"chart_groups_{name.replace(' ', '_')}",
                alt=f"{title}, bars of accuracy: "
                + "; ".join(f"{name} {accuracy_cell(accuracy, n)} of {n:,} texts" for name, accuracy, n in rows),
            )


def _draw_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Draw a table that scrolls if it is long."""
    with st.container(height=540 if len(rows) > MAX_ROWS else "content", border=False):
        st.markdown(table(columns, rows, right=columns[1:]))


def _show_name(name: str) -> str:
    return escape(visible(start_of(name, limit=MAX_CELL)))


if __name__ == "__main__":
    main()
