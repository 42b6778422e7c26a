"""Figures of a labelled table and of a training on it: class counts, lengths, curves while it runs, the comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from txcls.figures.style import BAR, BAR_OTHER, FONT_SIZE, OKABE_ITO, categories, legend_above, new_figure
from txcls.wording import percentage

MOST_CLASSES = 24
"""Most classes with a bar of their own."""
ROOM = 1.18
"""The axis of counts goes so much beyond the longest bar, for the number beside it."""


def class_counts(counts: Mapping[str, int], *, what: str = "rows") -> go.Figure:
    """A bar for each class, the largest first; beyond `MOST_CLASSES` the others share a bar.

    Args:
        counts: how many rows each class has, the largest first.
        what: what is counted, for the axis.
    """
    shown = list(counts.items())[:MOST_CLASSES]
    rest = list(counts.items())[MOST_CLASSES:]
    names = [*categories([name or "(none)" for name, _ in shown], width=22)]
    values = [n for _, n in shown]
    colours = [BAR] * len(shown)
    if rest:
        names.append(f"{len(rest)} other classes")
        values.append(sum(n for _, n in rest))
        colours.append(BAR_OTHER)
    most = max(values, default=1)
    figure = new_figure(
        height=70 + 26 * max(len(names), 3),
        x={"title": what, "range": [0, most * ROOM], "nticks": 5, "tickformat": ",d"},
        y={
            "range": [len(names) - 0.4, -0.6],
            "tickvals": list(range(len(names))),
            "ticktext": names,
        },
    )
    figure.add_bar(
        x=values,
        y=list(range(len(names))),
        orientation="h",
        marker={"color": colours},
        text=[f"{n:,}" for n in values],
        textposition="outside",
        cliponaxis=False,
        customdata=names,
        hovertemplate="%{customdata}: %{x:,}<extra></extra>",
    )
    return figure


def length_histogram(lengths: Sequence[tuple[int, int]], *, bins: int = 30) -> go.Figure:
    """How many texts have how many words; the longest hundredth shares the last bar.

    Args:
        lengths: (number of words, number of texts with it), ascending.
        bins: most bars.
    """
    total = sum(n for _, n in lengths)
    longest = lengths[-1][0] if lengths else 1
    passed, top = 0, longest
    for words, n in lengths:
        passed += n
        if passed >= 0.99 * total:
            top = words
            break
    width = max(1, -(-top // bins))
    counted: dict[int, int] = {}
    for words, n in lengths:
        place = min((words - 1) // width, (top - 1) // width)
        counted[place] = counted.get(place, 0) + n
    places = sorted(counted)
    last = places[-1] if places else 0
    ends = [longest if place == last else (place + 1) * width for place in places]
    starts = [place * width + 1 for place in places]
    spans = [f"{start:,}" if start == end else f"{start:,} to {end:,}" for start, end in zip(starts, ends, strict=True)]
    figure = new_figure(
        height=300,
        x={"title": "words in a text", "nticks": 8, "rangemode": "tozero"},
        y={"title": "texts", "nticks": 5},
        bargap=0.06,
    )
    figure.add_bar(
        x=[place * width + (width + 1) / 2 for place in places],
        y=[counted[place] for place in places],
        width=[width] * len(places),
        marker={"color": BAR},
        customdata=spans,
        hovertemplate="%{customdata} words: %{y:,} texts<extra></extra>",
    )
    return figure


def live_curves(
    points: Sequence[Mapping[str, Any]], validations: Sequence[Mapping[str, Any]], *, steps: int, runs: int = 1
) -> go.Figure:
    """Loss and accuracy of a training that runs, on the axes of the whole run: nothing moves but the lines.

    Args:
        points: `step`, `loss` and `accuracy` on training rows, over the steps since the last validation.
        validations: the same on validation rows.
        steps: of the whole run.
        runs: how many times it trains from the same start; a line stands between two of them.
    """
    of_one = max(steps // runs, 1)
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.16, subplot_titles=("loss", "accuracy"))
    for column, what in enumerate(("loss", "accuracy"), start=1):
        for name, rows, colour, mode in (
            ("training rows", points, OKABE_ITO[1], "lines"),
            ("validation rows", validations, OKABE_ITO[0], "lines+markers"),
        ):
            drawn = _apart(rows, of_one)
            figure.add_scatter(
                x=[row.get("step") for row in drawn],
                y=[row.get(what) for row in drawn],
                mode=mode,
                name=name,
                legendgroup=name,
                showlegend=column == 1,
                line={"color": colour, "width": 2.5, "dash": "dot" if mode == "lines" else "solid"},
                marker={"size": 7},
                hovertemplate="step %{x}<br>%{y:.3f}<extra></extra>",
                row=1,
                col=column,
            )
    for run in range(1, runs):
        figure.add_vline(run * of_one, line={"color": BAR_OTHER, "width": 1, "dash": "dash"})
    most = max([row["loss"] for row in (*points, *validations)], default=1.0)
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_xaxes(title="optimiser step", range=[0, max(steps, 1)], nticks=5, automargin=True)
    figure.update_yaxes(range=[0, 1.05 * most], nticks=5, automargin=True, row=1, col=1)
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%", nticks=6, automargin=True, row=1, col=2)
    figure.update_layout(
        height=320,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        font={"size": FONT_SIZE},
        dragmode=False,
        uirevision="live",
        **legend_above(y=1.2),
    )
    return figure


def _apart(rows: Sequence[Mapping[str, Any]], of_one: int) -> list[Mapping[str, Any]]:
    """The rows with a gap between two runs; a gap alone if there are none, since an empty line has no legend."""
    found: list[Mapping[str, Any]] = []
    for row in rows:
        if found and (row["step"] - 1) // of_one != (found[-1]["step"] - 1) // of_one:
            found.append({})
        found.append(row)
    return found or [{}]


def comparison_intervals(rows: Sequence[tuple[str, float, float, float]], *, what: str) -> go.Figure:
    """A point with its 95 % interval for each contestant.

    Args:
        rows: (name, value, low, high), as shares; the last is drawn in the colour of the model.
        what: the measure, for the axis.
    """
    lowest = min(low for _, _, low, _ in rows)
    left = max(0.0, round(lowest - 0.05, 1) - 0.02)
    apart = next(step for step in (0.05, 0.1, 0.2) if (1 - left) / step <= 5 or step == 0.2)
    ticks = [n * apart for n in range(round(1 / apart) + 1) if n * apart >= left]
    names = [name for name, *_ in rows]
    figure = new_figure(
        height=90 + 46 * len(rows),
        x={"title": what, "range": [left, 1.06], "tickformat": ".0%", "tickvals": ticks},
        y={"range": [len(rows) - 0.4, -0.6], "tickvals": list(range(len(rows))), "ticktext": names},
        right=24,
    )
    for place, (name, value, low, high) in enumerate(rows):
        figure.add_scatter(
            x=[value],
            y=[place],
            mode="markers+text",
            text=[percentage(value)],
            textposition="top center",
            cliponaxis=False,
            marker={"size": 13, "color": OKABE_ITO[0] if place == len(rows) - 1 else BAR_OTHER},
            error_x={"type": "data", "array": [high - value], "arrayminus": [value - low], "thickness": 3, "width": 7},
            customdata=[name],
            name=name,
            hovertemplate=f"%{{customdata}}: {percentage(value)} ({percentage(low)} to {percentage(high)})"
            "<extra></extra>",
        )
    return figure
