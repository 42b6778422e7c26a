"""Line plots: training, calibration, deletion, positions, accuracy by group."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from txcls.evaluation.metrics import MIN_ROWS
from txcls.figures.colours import BAR, CLASSES, MARK, OTHER
from txcls.figures.style import (
    DASHES,
    FONT_SIZE,
    PROBABILITY,
    SYMBOLS,
    class_label,
    colour_limit,
    legend_above,
    new_figure,
)


def training_curves(history: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy and loss on training and validation texts over the optimiser steps, with the saved weights marked.

    `history` holds the rows of history.jsonl; missing values are left blank.
    """
    # Names are above the plots, since there is no room between the plots on a phone.
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.13, subplot_titles=("accuracy", "loss"))
    steps = [row.get("step", index) for index, row in enumerate(history)]
    best = [index for index, row in enumerate(history) if row.get("best")]
    for column, quantity in enumerate(("accuracy", "loss"), start=1):
        shared = {"showlegend": column == 1, "hovertemplate": "step %{x}<br>%{y:.4f}<extra></extra>"}
        for split, symbol, colour, dash in (("train", "diamond", OTHER, "dot"), ("validation", "circle", BAR, "solid")):
            figure.add_scatter(
                x=steps,
                y=[row.get(f"{split}_{quantity}") for row in history],
                name="training texts" if split == "train" else "validation texts",
                legendgroup=split,
                mode="lines+markers",
                line={"color": colour, "width": 2.5, "dash": dash},
                marker={"size": 6, "symbol": symbol},
                row=1,
                col=column,
                **shared,
            )
        if best:
            figure.add_scatter(
                x=[steps[best[-1]]],
                y=[history[best[-1]].get(f"validation_{quantity}")],
                mode="markers",
                name=f"saved: step {steps[best[-1]]:,}",
                marker={"size": 15, "symbol": "circle-open", "color": MARK, "line": {"width": 3}},
                row=1,
                col=column,
                **shared,
            )
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_xaxes(title="optimiser step", nticks=5, automargin=True)
    figure.update_yaxes(automargin=True)
    figure.update_yaxes(tickformat=".3~%", col=1, row=1)
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 90, "b": 8},
        font={"size": FONT_SIZE},
        dragmode=False,
        **legend_above(y=1, yref="container", yanchor="top"),
    )
    return figure


def reliability_diagram(bins: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy in each confidence bin, with the diagonal of perfect calibration (Guo et al. 2017).

    `bins` is the "reliability" entry of metrics.json; empty bins are left out, and those of few rows have no dot.
    """
    filled = [row for row in bins if row["n"]]
    total = sum(row["n"] for row in filled) or 1
    dotted = [row for row in filled if row["n"] >= max(MIN_ROWS, total / 200)] or filled
    lowest = min((row["low"] for row in filled), default=0)
    confidence_axis = {**PROBABILITY, "range": [np.floor(4 * lowest) / 4, 1], "title": "confidence"}
    figure = new_figure(
        height=400, right=24, x=confidence_axis, y={**PROBABILITY, "title": "accuracy"}, **legend_above()
    )
    figure.add_bar(
        x=[(row["low"] + row["high"]) / 2 for row in filled],
        y=[row["n"] / total for row in filled],
        width=[0.94 * (row["high"] - row["low"]) for row in filled],
        name="share of texts",
        marker={"color": "rgba(138, 138, 138, 0.35)", "line_width": 0},
        customdata=[row["n"] for row in filled],
        hovertemplate="%{customdata:,} texts, %{y:.1%} of all<extra></extra>",
    )
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        name="perfect calibration",
        line={"color": OTHER, "dash": "dash", "width": 2},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[row["confidence"] for row in dotted],
        y=[row["accuracy"] for row in dotted],
        mode="lines+markers",
        cliponaxis=False,  # do not clip dots at 100 %
        name="this classifier",
        line={"color": BAR, "width": 2.5},
        marker={"size": [6 + 12 * (row["n"] / total) ** 0.5 for row in dotted], "color": BAR},
        customdata=[row["n"] for row in dotted],
        hovertemplate="confidence %{x:.1%}, accuracy %{y:.1%}<br>%{customdata:,} rows<extra></extra>",
    )
    return figure


def deletion_lines(
    names: Sequence[str],
    shares: NDArray[np.floating],
    curves: Sequence[NDArray[np.floating]],
    random: NDArray[np.floating],
    *,
    class_name: str,
) -> go.Figure:
    """The probability of a class as words are deleted, one line per method.

    The M `curves` hold probabilities (K,) with fractions `shares` (K,) of the words deleted. For R `random` orders,
    (R, K), a thick grey line shows the mean, and a grey band the range from minimum to maximum.
    """
    figure = new_figure(
        height=500,
        right=28,  # room for half of "100%"
        x={**PROBABILITY, "title": "share of words deleted,<br>highest score first"},
        y={"range": [0, 1.02], "tickformat": ".0%", "title": f"probability of {class_label(class_name)}"},
        hovermode="x unified",
        **legend_above(traceorder="normal"),
    )
    for values, fill in ((random.max(axis=0), None), (random.min(axis=0), "tonexty")):
        figure.add_scatter(
            x=shares, y=values, mode="lines", line={"width": 0}, fill=fill, fillcolor="rgba(128,128,128,0.22)",
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    figure.add_scatter(
        x=shares,
        y=random.mean(axis=0),
        mode="lines",
        name=f"random ({len(random)} orders; band: their range)",
        line={"color": OTHER, "width": 4},
        hovertemplate="%{y:.1%}",
    )
    _add_lines(figure, shares, names, curves, hover="%{y:.1%}", mode="lines+markers")
    return figure


def group_lines(
    names: Sequence[str], groups: Sequence[str], accuracies: Sequence[Sequence[float]], *, quantity: str
) -> go.Figure:
    """Accuracy by group of rows, with a line for each of M names; each of the M `accuracies` has a value per group."""
    figure = new_figure(
        height=460,
        x={"type": "category", "title": quantity},
        y={"range": [0, 1.02], "tickformat": ".0%", "title": "accuracy"},
        hovermode="x unified",
        **legend_above(traceorder="normal"),
    )
    _add_lines(figure, groups, names, map(np.array, accuracies), hover="%{y:.1%}", mode="lines+markers")
    return figure


def _add_lines(
    figure: go.Figure,
    x: Sequence[Any] | NDArray[Any],
    names: Sequence[str],
    lines: Iterable[NDArray[np.floating]],
    *,
    hover: str,
    mode: str = "lines",
) -> None:
    """Add lines that differ in colour, dash and marker."""
    for index, (name, values) in enumerate(zip(names, lines, strict=True)):
        style = {"color": CLASSES[index % len(CLASSES)], "dash": DASHES[index % len(DASHES)], "width": 3}
        marker = {"size": 9, "symbol": SYMBOLS[index % len(SYMBOLS)]}
        figure.add_scatter(
            x=x, y=np.asarray(values, dtype=np.float32), name=name, line=style, marker=marker, hovertemplate=hover,
            mode=mode,
        )  # fmt: skip


def position_curves(
    values: NDArray[np.floating], dimensions: Sequence[int], *, bound: float | None = None
) -> go.Figure:
    """Selected dimensions of position vectors (T, D), over positions.

    The value axis spans -bound … bound; the default is the largest magnitude in `values`.
    """
    limit = 1.08 * colour_limit(values, bound)
    figure = new_figure(
        height=260,
        x={"title": "position", "range": [0, max(len(values) - 1, 1)]},
        y={"title": "value", "range": [-limit, limit]},
        hovermode="x unified",
        **legend_above(),
    )
    names = [f"dimension {dimension}" for dimension in dimensions]
    _add_lines(figure, np.arange(len(values)), names, values.T[list(dimensions)], hover="%{y:.3f}")
    return figure
