"""The report as an HTML page that needs no other file: the sections of `evaluation/sections.py`, some with a chart."""

import html
from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from txcls.evaluation.report import RELIABILITY_CAPTION, Report, cluster_order, group_accuracies
from txcls.evaluation.sections import Section, cell_as_text
from txcls.figures import confusion_map, group_bars, reliability_diagram, visible, visible_lines
from txcls.text.formatting import start_of

MAX_LISTED = 200
"""Maximum number of rows in each table."""
MAX_CHARACTERS = 600
"""Texts in a table are cut to this many characters."""
_MATRIX_CAPTION = (
    "Rows are true classes, columns are predicted classes. Draw a rectangle to zoom in; double-click to zoom out."
)
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
.warning {border-left: 4px solid #b3261e; padding-left: 0.8rem;}
small {color: #555;}
"""


def report_html(report: Report, sections: Sequence[Section]) -> str:
    """The report as an HTML document."""
    title = _text(f"Report on {report.name}")
    today = f"{datetime.now().astimezone():%d %B %Y}"
    parts = [f"<p>On {_text(report.rows_description)}, {today}.</p>" if sections else "<p>Nothing was measured.</p>"]
    parts += [f'<p class="warning">{_text(warning)}</p>' for warning in report.warnings]
    parts += [_section(report, section) for section in sections]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style><script>{get_plotlyjs()}</script></head>"
        f"<body><h1>{title}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _text(value: object) -> str:
    return html.escape(visible_lines(str(value)))


def _section(report: Report, section: Section) -> str:
    parts = [f"<h2>{_text(section.title)}</h2>", _chart(report, section)]
    if section.rows:
        top = "".join(f'<th scope="col">{_text(name)}</th>' for name in section.head)
        body = "".join(
            "<tr>" + "".join(f"<td>{_text(start_of(cell_as_text(cell), limit=MAX_CHARACTERS))}</td>" for cell in row)
            for row in section.rows[:MAX_LISTED]
        )
        parts.append(
            f'<div class="list" tabindex="0"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
        )
    elif section.head:
        parts.append("<p>None.</p>")
    if (n := len(section.rows)) > MAX_LISTED:
        parts.append(f"<p><small>The first {MAX_LISTED} of {n:,}; --json has all.</small></p>")
    return "".join([*parts, *(f"<p><small>{_text(note)}</small></p>" for note in section.notes)])


def _chart(report: Report, section: Section) -> str:
    """The chart of a section; "" if it has none."""
    figure: go.Figure
    if section.name == "confusion" and (counts := report.confusion) is not None:
        order = cluster_order(counts).tolist()
        figure = confusion_map([report.classes[c] for c in order], counts[order][:, order])
        figure.update_layout(dragmode="zoom")
    elif section.name == "reliability":
        figure = reliability_diagram(report.metrics["reliability"])
    elif section.name == "by_length":
        figure = group_bars(*zip(*group_accuracies(report), strict=True), axis_title="tokens read")
    else:
        return ""
    chart = figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False, "scrollZoom": False})
    caption = {"confusion": _MATRIX_CAPTION, "reliability": RELIABILITY_CAPTION}.get(section.name, "")
    alt = html.escape(visible(f"Chart: {section.title}"), quote=True)
    return f'<div role="img" aria-label="{alt}">{chart}</div><p><small>{caption}</small></p>'
