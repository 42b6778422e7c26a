"""Line charts of training and calibration, and tokens with arcs from queries to keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from txcls.evaluation.metrics import MIN_ROWS
from txcls.figures.colours import BAR, MARK, OTHER
from txcls.figures.style import (
    FONT_SIZE,
    PROBABILITY,
    categories,
    label,
    legend_above,
    new_figure,
    token_axis,
)


def training_curves(history: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy and loss on training and validation texts over the training steps, with the saved weights marked.

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
    figure.update_xaxes(title="training step", nticks=5, automargin=True)
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

    `bins` is the "reliability" entry of metrics.json; empty bins are left out, and bins with few rows have no dot.
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


@dataclass(frozen=True, slots=True)
class Arcs:
    """The query–key pairs to draw as arcs, and their share of the total attention weight.

    `queries`, `keys` and `weights` have one entry per arc, largest weight first. `share` is the weight of the arcs and
    of self-attention (drawn as dots) as a fraction of the total weight.
    """

    queries: NDArray[np.intp]
    keys: NDArray[np.intp]
    weights: NDArray[np.floating]
    share: float


def choose_arcs(
    pattern: NDArray[np.floating], *, query: int | None = None, min_weight: float = 0.0, max_arcs: int = 400
) -> Arcs:
    """The pairs of different tokens with the largest weights in a pattern (T, T), or in the row of one query: at most
    `max_arcs` pairs, with weights of at least `min_weight`."""
    rows = np.arange(len(pattern)) if query is None else np.array([query])
    weights = np.zeros_like(pattern)
    weights[rows] = pattern[rows]
    total = float(weights.sum())
    diagonal = float(np.trace(weights))
    np.fill_diagonal(weights, 0.0)
    queries, keys = np.nonzero((weights >= min_weight) & (weights > 0))
    order = np.argsort(-weights[queries, keys], kind="stable")[:max_arcs]
    queries, keys = queries[order], keys[order]
    arc_weights = weights[queries, keys]
    share = (float(arc_weights.sum()) + diagonal) / total if total else 0.0
    return Arcs(queries, keys, arc_weights, min(share, 1.0))


ARC_PX = 145
"""Height in pixels of the highest arc."""
MAX_CHARACTERS = 14
"""Maximum number of characters of a token's name, as in `categories`."""


def attention_arcs(
    pattern: NDArray[np.floating], tokens: Sequence[str], arcs: Arcs, *, offset: int | None = None
) -> go.Figure:
    """The tokens in a row, with arcs from queries to keys: to later keys above their names, to earlier keys below.

    Arcs with more weight are thicker and more opaque; all but those to the key at `offset` from the query are grey.
    The size of the dots shows self-attention, the diagonal of `pattern` (T, T).
    """
    n = len(tokens)
    span = max(int(np.abs(arcs.keys - arcs.queries).max(initial=1)), 1)
    is_later, heights = arcs.keys > arcs.queries, np.sqrt(np.abs(arcs.keys - arcs.queries) / span)
    below = (14 + 7 * max(min(len(token), MAX_CHARACTERS) for token in tokens)) / ARC_PX
    highest, lowest = (heights[side].max(initial=0.1) + 0.3 for side in (is_later, ~is_later))
    lowest = -below - lowest
    token_axes = {"range": [-0.7, n - 0.3], "showgrid": False, "ticks": ""}
    figure = new_figure(
        height=round((highest - lowest) * ARC_PX) + 16,
        x={"showticklabels": False, **token_axes},
        y={"range": [lowest, highest], "showgrid": False, "showticklabels": False},
        xaxis2={
            "overlaying": "x", "anchor": "free", "position": -lowest / (highest - lowest), "ticklabelstandoff": 4,
            "tickfont": {"size": FONT_SIZE}, **token_axis(n, all_names=True), "tickangle": -90, **token_axes,
        },
        annotations=[
            {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "text": text, "showarrow": False, "opacity": 0.8}
            for y, text in (
                (highest - 0.1, "↷ attends to a later token"), (lowest + 0.1, "↶ attends to an earlier token")
            )
        ],
    )  # fmt: skip
    is_main = np.full(len(arcs.weights), offset is None) | (arcs.keys - arcs.queries == offset)
    for shown, colour in ((~is_main, OTHER), (is_main, BAR)):
        of_colour = replace(arcs, queries=arcs.queries[shown], keys=arcs.keys[shown], weights=arcs.weights[shown])
        _add_arcs(figure, of_colour, span, below=below, colour=colour)
    if len(arcs.weights):
        apex = np.where(is_later, heights, -below - heights)
        figure.add_scatter(
            x=(arcs.queries + arcs.keys) / 2,
            y=apex,
            mode="markers",
            marker={"size": 12, "opacity": 0},
            customdata=[(label(tokens[q]), label(tokens[k])) for q, k in zip(arcs.queries, arcs.keys, strict=True)],
            text=[f"{weight:.3f}" for weight in arcs.weights],
            hovertemplate="<b>%{customdata[0]}</b> attends to <b>%{customdata[1]}</b><br>weight %{text}<extra></extra>",
        )
    diagonal = np.diagonal(pattern)
    figure.add_scatter(
        x=categories(tokens) * 2,
        y=np.repeat([0.0, -below], n),  # above the names and below them, where the arcs to earlier keys begin
        xaxis="x2",
        mode="markers",
        marker={"size": 18 * np.sqrt(np.tile(diagonal, 2)), "color": OTHER, "line": {"width": 0}},
        text=[f"{weight:.3f}" for weight in diagonal] * 2,
        hovertemplate="<b>%{x}</b> attends to itself<br>weight %{text}<extra></extra>",
    )
    return figure


def _add_arcs(figure: go.Figure, arcs: Arcs, span: int, *, below: float, colour: str) -> None:
    """Add a trace per direction and weight range; the height of an arc is the root of its distance / `span`.

    Arcs to earlier keys begin at -`below`, under the names.
    """
    angle = np.linspace(0.0, np.pi, 49)
    edges = np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.01])
    for later in (True, False):
        for low, high in pairwise(edges):
            chosen = (arcs.weights >= low) & (arcs.weights < high) & ((arcs.keys > arcs.queries) == later)
            if not chosen.any():
                continue
            start, end = arcs.queries[chosen].astype(float), arcs.keys[chosen].astype(float)
            middle, radius = (start + end) / 2, (end - start) / 2
            x = middle[:, None] - radius[:, None] * np.cos(angle)
            y = np.sign(radius)[:, None] * np.sqrt(np.abs(radius[:, None]) * 2 / span) * np.sin(angle)
            if not later:
                y -= below
            gap = np.full((len(x), 1), np.nan)
            figure.add_scatter(
                x=np.hstack([x, gap]).ravel().astype(np.float32),
                y=np.hstack([y, gap]).ravel().astype(np.float32),
                mode="lines",
                line={"color": colour, "width": 1.5 + 6.5 * float(low + high) / 2, "simplify": False},
                opacity=float(np.clip(0.7 + 0.2 * (low + high), 0.0, 0.95)),
                hoverinfo="skip",
            )
