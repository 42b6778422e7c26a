"""Line plots: training, calibration, positions, accuracy by group."""

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
    legend_above,
    new_figure,
)


def training_curves(history: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Loss and accuracy on training and validation texts over the optimiser steps, with the saved weights marked.

    `history` holds the rows of history.jsonl; missing values are left blank.
    """
    figure = _loss_and_accuracy(0.13)
    steps = [row.get("step", index) for index, row in enumerate(history)]
    best = [index for index, row in enumerate(history) if row.get("best")]
    for column, quantity in enumerate(("loss", "accuracy"), start=1):
        for split, symbol in (("train", "diamond"), ("validation", "circle")):
            _add_curve(
                figure,
                column,
                "training texts" if split == "train" else "validation texts",
                steps,
                [row.get(f"{split}_{quantity}") for row in history],
                legendgroup=split,
                mode="lines+markers",
                marker={"size": 6, "symbol": symbol},
                hovertemplate="step %{x}<br>%{y:.4f}<extra></extra>",
            )
        if best:
            figure.add_scatter(
                x=[steps[best[-1]]],
                y=[history[best[-1]].get(f"validation_{quantity}")],
                mode="markers",
                name="saved weights",
                showlegend=column == 1,
                marker={"size": 15, "symbol": "circle-open", "color": MARK, "line": {"width": 3}},
                hovertemplate="saved weights<br>%{y:.4f}<extra></extra>",
                row=1,
                col=column,
            )
    figure.update_yaxes(tickformat=".3~%", col=2, row=1)
    figure.update_layout(height=360)
    return figure


def _loss_and_accuracy(spacing: float) -> go.Figure:
    """Two empty plots side by side; `spacing` is the gap between them as a fraction of the width."""
    # Names are above the plots, since there is no room between the plots on a phone.
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=spacing, subplot_titles=("loss", "accuracy"))
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_xaxes(title="optimiser step", nticks=5, automargin=True)
    figure.update_yaxes(automargin=True)
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 90, "b": 8},
        font={"size": FONT_SIZE},
        dragmode=False,
        **legend_above(y=1, yref="container", yanchor="top"),
    )
    return figure


def _add_curve(figure: go.Figure, column: int, name: str, x: Sequence[Any], y: Sequence[Any], **settings: Any) -> None:
    """Add the curve of the training or validation texts to one of the two plots."""
    is_training = name == "training texts"
    figure.add_scatter(
        x=x,
        y=y,
        name=name,
        showlegend=column == 1,
        line={"color": OTHER if is_training else BAR, "width": 2.5, "dash": "dot" if is_training else "solid"},
        row=1,
        col=column,
        **settings,
    )


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
