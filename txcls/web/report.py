"""A report as one self-contained HTML file: it includes plotly's code, all charts and all tables."""

import html
from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from txcls.checkpoint.card import GROUPS, WORD_ORDER_NOTE, WORD_ORDER_TESTS
from txcls.checkpoint.comparison import Comparison
from txcls.evaluation.compare_with_baseline import BaselinePredictions
from txcls.evaluation.confusions import WORDS_HEAD, class_advice, label_advice, words_table
from txcls.evaluation.label_errors import DoubtfulLabels, DoubtfulRow
from txcls.evaluation.report import (
    RELIABILITY_CAPTION,
    Report,
    RowPrediction,
    class_counts_of,
    classes_by_f1,
    cluster_order,
    group_accuracies,
    headline_metrics,
    majority_sentence,
    most_confused_pairs,
)
from txcls.evaluation.thresholds import COVERAGE_HEAD, POLICY_HEAD, Cheapest, coverage_by_confidence
from txcls.figures import confusion_map, group_bars, reliability_diagram, training_curves, visible, visible_lines
from txcls.wording import percentage, start_of

MAX_LISTED = 200
"""Maximum number of rows in each list."""
MAX_CHARACTERS = 600
"""Texts in a list are cut to this many characters."""
_STYLE = """
:root {color-scheme: light;}
body {font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1a1c22;
  background: #fff;}
h1 {font-size: 1.8rem;} h2 {margin-top: 2.5rem; font-size: 1.3rem;}
table {border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums;}
th, td {text-align: left; vertical-align: top; padding: 0.25rem 0.9rem 0.25rem 0; border-bottom: 1px solid #d8d8de;
  overflow-wrap: break-word;}
td {white-space: pre-line;}
.list {max-height: 32rem; overflow: auto;}
.figures {display: flex; flex-wrap: wrap; gap: 1rem 3rem;} .figures div {max-width: 14rem;}
.figures b {display: block; font-size: 1.7rem;}
small {color: #555;}
"""


def report_html(
    report: Report,
    *,
    baseline: BaselinePredictions | None = None,
    doubtful: DoubtfulLabels | None = None,
    cheapest: Cheapest | None = None,
) -> str:
    """The report as an HTML document, with the linear baseline, doubtful labels and costs, if given."""
    parts = [_headline(report), *_figures(report, cheapest)]
    if report.predictions is not None:
        mistakes = report.predictions.mistakes(n=MAX_LISTED)
        parts += ["<h2>The most confident mistakes</h2>", _rows(mistakes, report)]
    if baseline is not None:
        parts += ["<h2>Compared with the linear baseline</h2>", f"<p>{_text(baseline.verdict())}.</p>"]
        for name, rows in (
            ("linear baseline", baseline.only_baseline_right()),
            ("Transformer", baseline.only_transformer_right()),
        ):
            parts += [
                f"<p><b>{len(rows):,} rows that only the {name} gets right</b></p>",
                _rows(rows[:MAX_LISTED], report),
            ]
    if doubtful is not None:
        parts += ["<h2>Doubtful labels</h2>", _doubtful(doubtful, report)]
        if report.predictions is not None:
            parts.append(_list(label_advice(doubtful.rows, report.predictions.rows)))
    title = _text(f"Report on {report.name}")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><script>{get_plotlyjs()}</script></head>"
        f"<body><h1>{title}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(visible_lines(str(value)))


def _table(head: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    top = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return f'<div class="list" tabindex="0"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(line)}</li>" for line in lines) + "</ul>" if lines else ""


def _small(text: str) -> str:
    return f"<p><small>{_text(text)}</small></p>"


def _number_head(report: Report) -> tuple[str, ...]:
    return ("row",) if report.row_numbers else ()


def _number(row: RowPrediction | DoubtfulRow, report: Report) -> tuple[str, ...]:
    """The cell with the row's number in the user's file; none if the rows are not from a file."""
    return (f"{report.row_numbers[row.row]:,}",) if report.row_numbers else ()


def _rows(rows: Sequence[RowPrediction], report: Report) -> str:
    if not rows:
        return "<p>None.</p>"
    lines = [
        (
            *_number(row, report),
            start_of(row.text, limit=MAX_CHARACTERS),
            row.label,
            row.predicted,
            percentage(row.probability),
        )
        for row in rows
    ]
    return _table((*_number_head(report), "text", "label", "predicted", "probability"), lines)


def _doubtful(doubtful: DoubtfulLabels, report: Report) -> str:
    lines = [
        (
            *_number(row, report),
            start_of(row.text, limit=MAX_CHARACTERS),
            row.label,
            row.suggested,
            percentage(row.label_probability),
        )
        for row in doubtful.rows[:MAX_LISTED]
    ]
    how = " Most doubtful first; this is a suspicion, not a proof: read the text." if lines else ""
    note = f"<p>{_text(doubtful)}{how} Method: confident learning (Northcutt et al. 2021).</p>"
    head = (*_number_head(report), "text", "label", "suggested", "label's probability")
    return note + (_table(head, lines) if lines else "")


def _headline(report: Report) -> str:
    metrics = report.metrics
    if not metrics:
        return "<p>Nothing was measured.</p>"
    blocks = "".join(
        f"<div>{name}<b>{value}</b><small>{_text(meaning)}</small></div>"
        for name, value, meaning in headline_metrics(metrics)
    )
    today = f"{datetime.now().astimezone():%d %B %Y}"
    headline = f'<p>On {_text(report.rows_description)}, {today}.</p><div class="figures">{blocks}</div>'
    if report.comparison:
        compared = Comparison.from_dict(report.comparison)
        headline += _table(("on the test rows", "accuracy", "macro-F1"), compared.table)
        headline += f"<p>{_text(compared.verdict)} {_text(compared.settings)}</p>"
    elif sentence := majority_sentence(report):
        headline += f"<p>{_text(sentence)}</p>"
    return headline


def _chart(figure: go.Figure, *, alt: str) -> str:
    chart = figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False, "scrollZoom": False})
    return f'<div role="img" aria-label="{html.escape(visible(alt), quote=True)}">{chart}</div>'


def _figures(report: Report, cheapest: Cheapest | None) -> list[str]:
    metrics, parts = report.metrics, []
    if len(report.history) > 1:
        chart = _chart(training_curves(report.history), alt="Loss and accuracy over the training steps")
        parts += ["<h2>Training curves</h2>", chart]
    counts = report.confusion
    if counts is not None:
        order = cluster_order(counts).tolist()
        figure = confusion_map([report.classes[c] for c in order], counts[order][:, order])
        figure.update_layout(dragmode="zoom")
        worst = most_confused_pairs(report.classes, counts)
        pairs = [(p.first, p.second, p.first_as_second, p.second_as_first, percentage(p.share)) for p in worst]
        parts += [
            "<h2>What is confused with what?</h2>",
            _chart(figure, alt=f"Confusion matrix of {len(order)} classes"),
            _small(
                "Rows are true classes, columns are predicted classes. Draw a rectangle to zoom in; double-click to "
                "zoom out."
            ),
            _table(
                ("class", "other class", "class → other", "other → class", "share of both"),
                pairs,
            ),
            _small("Share of both: of the rows of these two classes, how many are classified as the other one."),
            _list(class_advice(report)),
        ]
        if report.predictions is not None and not report.predictions.right.all():
            words, caption = words_table(report.predictions)
            table = _table(WORDS_HEAD, words) if words else ""
            parts += ["<h3>The words behind each confusion</h3>", table, _small(caption)]
    if metrics.get("per_class"):
        by_f1 = classes_by_f1(metrics)
        by_class = class_counts_of(report)
        lines_of = []
        for row in by_f1:
            count = by_class.get(row["label"])
            precision = percentage(row["precision"]) if count is None or count.n_predicted else "–"
            cells = () if count is None else (count.recall_cell, f"{count.false_positives:,}")
            recall_f1 = [percentage(row[name]) if row["support"] else "–" for name in ("recall", "f1")]
            lines_of.append((row["label"], *cells, precision, *recall_f1))
        head = ("class", *(("recall (95 % CI)", "false positives") if by_class else ()), "precision", "recall", "F1")
        note = (
            "Recall: share of the class's rows that are predicted as this class. False positives: rows of other "
            "classes predicted as this class. Precision: share of the rows predicted as this class that are of it; "
            "– if there are none. F1: the harmonic mean of precision and recall; – for a class without rows."
        )
        parts += ["<h2>Class by class</h2>", _table(head, lines_of), _small(note)]
    if metrics.get("reliability"):
        chart = _chart(reliability_diagram(metrics["reliability"]), alt="Accuracy by confidence")
        parts += ["<h2>Can its confidence be trusted?</h2>", chart, _small(RELIABILITY_CAPTION)]
    if report.predictions is not None:
        coverage = [row.cells for row in coverage_by_confidence(report.predictions)]
        parts += ["<h2>What should be left to a human?</h2>", _table(COVERAGE_HEAD, coverage)]
    if cheapest is not None:
        parts += [
            "<h2>What do errors cost?</h2>",
            f"<p>{_text(cheapest)}</p>",
            _table(POLICY_HEAD, [policy.cells for policy in cheapest.policies]),
        ]
    return parts + _groups(report)


def _groups(report: Report) -> list[str]:
    parts = []
    for field, (quantity, _) in GROUPS.items():
        if groups := group_accuracies(report, field):
            bars = group_bars(*zip(*groups, strict=True), axis_title=quantity)
            parts += [f"<h2>Accuracy by {quantity}</h2>", _chart(bars, alt=f"Bars of accuracy by {quantity}")]
    if order := report.metrics.get("order"):
        lines = [("as typed", percentage(report.metrics["accuracy"]))]
        lines += [(WORD_ORDER_TESTS[name], percentage(accuracy)) for name, accuracy in order.items()]
        parts += ["<h2>Without word order</h2>", _table(("", "accuracy"), lines), _small(WORD_ORDER_NOTE)]
    return parts
