"""Figures of reports: the confusion matrix, confidence against accuracy, and accuracy by groups of rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.prediction import class_figure
from txcls.figures.style import (
    BAR,
    FONT_SIZE,
    OKABE_ITO,
    PROBABILITY,
    categories,
    flat_colour_bar,
    label,
    legend_above,
    new_figure,
    share_colours,
)
from txcls.wording import percentage

WRITTEN_CLASSES = 12
"""Up to so many classes the cells hold their numbers."""
FLAT_CLASSES = 5
"""Up to so many classes their names stand level below the map."""


def confusion_map(
    classes: Sequence[str], counts: NDArray[np.integer[Any]], *, support: Sequence[int] | None = None
) -> go.Figure:
    """A confusion matrix: colours are shares of the true class's rows, numbers are rows.

    Args:
        classes: names of the C classes drawn, in the order of the axes.
        counts: (C, C), rows of true class i predicted as j.
        support: all rows of each class, where some were predicted as classes that are not drawn; None for the sums of
            `counts`.
    """
    n = len(classes)
    rows = counts.sum(axis=1) if support is None else np.asarray(support)  # C
    shares = counts / np.maximum(rows, 1)[:, None]  # C C
    flat = n <= FLAT_CLASSES
    names = categories(classes, width=20 if n <= 60 else 14)
    axis = {"showgrid": False, "ticks": "", "type": "category"}
    size = {"tickfont": {"size": 13 if n <= 60 else 10}}
    figure = new_figure(
        height=int(np.clip(200 + (40 if n <= WRITTEN_CLASSES else 24) * n, 330, 1000)),
        x={
            "title": None if flat else "predicted class",
            **axis,
            "tickangle": 0 if flat else -60,
            "automargin": not flat,
            **size,
        },
        y={"title": {"text": "true class", "standoff": 12}, **axis, "autorange": "reversed", **size},
        coloraxis={
            **share_colours(title="share of the true class"),
            "colorbar": flat_colour_bar(
                "share of the true class's rows", tickvals=[0, 0.25, 0.5, 0.75, 1], y=1.01, yanchor="bottom"
            ),
        },
    )
    if flat:
        # Plotly draws an axis title over names that lie level, so that it is a note below them.
        below = {"xref": "x domain", "yref": "paper", "x": 0.5, "y": 0, "yshift": -34, "showarrow": False}
        figure.update_layout(margin_b=70)
        figure.add_annotation(text="predicted class", yanchor="top", **below)
    figure.add_heatmap(
        z=shares.astype(np.float32),
        x=names,
        y=names,
        customdata=counts.astype(np.int32),
        coloraxis="coloraxis",
        xgap=int(n <= 24),
        ygap=int(n <= 24),
        text=[[f"{one:,}" for one in row] for row in counts] if n <= WRITTEN_CLASSES else None,
        texttemplate="%{text}" if n <= WRITTEN_CLASSES else None,
        hovertemplate="<b>%{y}</b> predicted as <b>%{x}</b><br>%{customdata:,} rows, %{z:.1%} of the class"
        "<extra></extra>",
    )
    return figure


def reliability_diagram(bins: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy of the rows in each bin of confidence, beside the diagonal where both are equal (Guo et al. 2017).

    Args:
        bins: rows of "reliability" in metrics.json; empty ones are left out.
    """
    shown = [one for one in bins if one["n"]]
    total = sum(one["n"] for one in shown) or 1
    confidence = {**PROBABILITY, "title": "confidence: probability of the predicted class"}
    figure = new_figure(height=400, x=confidence, y={**PROBABILITY, "title": "accuracy"}, **legend_above())
    figure.add_bar(
        x=[(one["low"] + one["high"]) / 2 for one in shown],
        y=[one["n"] / total for one in shown],
        width=[0.94 * (one["high"] - one["low"]) for one in shown],
        name="share of rows",
        marker={"color": "rgba(138, 138, 138, 0.35)", "line_width": 0},
        customdata=[one["n"] for one in shown],
        hovertemplate="%{customdata:,} rows, %{y:.1%} of all<extra></extra>",
    )
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        name="as confident as right",
        line={"color": OKABE_ITO[7], "dash": "dash", "width": 2},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[one["confidence"] for one in shown],
        y=[one["accuracy"] for one in shown],
        mode="lines+markers",
        cliponaxis=False,  # dots at 100 % are whole
        name="this classifier",
        line={"color": BAR, "width": 2.5},
        marker={"size": [6 + 12 * (one["n"] / total) ** 0.5 for one in shown], "color": BAR},
        customdata=[one["n"] for one in shown],
        hovertemplate="confidence %{x:.1%}, accuracy %{y:.1%}<br>%{customdata:,} rows<extra></extra>",
    )
    return figure


def group_bars(names: Sequence[str], accuracies: Sequence[float], rows: Sequence[int], *, what: str) -> go.Figure:
    """Accuracy of groups of rows as bars from 0 to 100 %, each below its name, so that phones have room for both.

    Args:
        names: of the groups.
        accuracies: of each, from 0 to 1.
        rows: of each.
        what: what the groups differ in.
    """
    shown = [label(name, width=24) for name in names]
    figure = class_figure(shown, height=76 + 56 * len(shown), size=FONT_SIZE, above=True, right=84)
    figure.update_layout(xaxis_title="accuracy", yaxis_title=what)
    figure.add_bar(
        x=list(accuracies),
        y=[row + 0.2 for row in range(len(shown))],
        orientation="h",
        width=0.4,
        marker={"color": BAR, "line_width": 0},
        text=[percentage(value) for value in accuracies],
        textposition="outside",
        textfont={"size": 16},
        cliponaxis=False,
        customdata=list(zip(shown, rows, strict=True)),
        hovertemplate="%{customdata[0]}<br>%{x:.1%} of %{customdata[1]:,} rows<extra></extra>",
    )
    return figure
