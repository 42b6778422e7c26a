"""Figures of attention: all heads, one head as a map and as arcs, the mask, pooling weights, one score by dimension.

Rows are queries, columns are keys; weights are on a fixed 0–1 scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    FRAME,
    OKABE_ITO,
    TOKENS,
    add_click_targets,
    categories,
    few_columns,
    few_rows,
    label,
    line_across,
    new_figure,
    share_colours,
)

ROWS, COLUMNS = "query", "key"
GAP = 0.12  # between the maps of the grid, in map widths


def attention_grid(patterns: NDArray[np.floating], *, selected: tuple[int, int] | None = None) -> go.Figure:
    """All heads as small maps: one row per layer, one column per head, the selected one framed.

    A click anywhere selects the nearest map: its invisible marker carries `customdata = [layer, head]` (from 0).

    Args:
        patterns: L H T T attention weights, each row summing to 1; sent as 8-bit integers.
        selected: (layer, head) to frame, counted from 0.
    """
    n_layers, n_heads, n_tokens, _ = patterns.shape
    cells = np.rint(np.clip(patterns, 0.0, 1.0) * 255).astype(np.uint8)
    step, edge = 1 + GAP, GAP / 2
    axis = {"showgrid": False, "ticks": "", "fixedrange": True}
    figure = new_figure(
        height=int(96 + np.clip(560 / n_heads, 80, 170) * n_layers),
        x={
            "range": [-edge, n_heads * step - edge],
            "tickvals": [head * step + 0.5 for head in range(n_heads)],
            "ticktext": [str(head + 1) for head in range(n_heads)],
            "title": "head",
            "side": "top",
            **axis,
        },
        y={
            "range": [n_layers * step - edge, -edge],
            "tickvals": [layer * step + 0.5 for layer in range(n_layers)],
            "ticktext": [str(layer + 1) for layer in range(n_layers)],
            "title": "layer",
            **axis,
        },
        coloraxis=share_colours(top=255),
        hoverdistance=-1,
        clickmode="event+select",
    )
    for layer in range(n_layers):
        for head in range(n_heads):
            figure.add_heatmap(
                z=cells[layer, head],
                x0=head * step + 0.5 / n_tokens,
                dx=1 / n_tokens,
                y0=layer * step + 0.5 / n_tokens,
                dy=1 / n_tokens,
                coloraxis="coloraxis",
                hoverinfo="skip",
            )
    places = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    add_click_targets(
        figure,
        x=[head * step + 0.5 for _, head in places],
        y=[layer * step + 0.5 for layer, _ in places],
        customdata=places,
        text=[f"Layer {layer + 1}, head {head + 1}<br>click to enlarge" for layer, head in places],
    )
    if selected is not None:
        layer, head = selected
        margin = GAP / 3
        figure.add_shape(
            type="rect",
            x0=head * step - margin,
            x1=head * step + 1 + margin,
            y0=layer * step - margin,
            y1=layer * step + 1 + margin,
            line={"color": FRAME, "width": 4},
        )
    return figure


def attention_map(
    pattern: NDArray[np.floating],
    tokens: Sequence[str],
    *,
    rows: str = ROWS,
    columns: str = COLUMNS,
    verb: str = "attends to",
    elsewhere: NDArray[np.floating] | None = None,
) -> go.Figure:
    """The attention pattern of one head: each row is a query, its colours are the weights of the keys.

    Args:
        pattern: T T attention weights, or those of the tokens that are shown.
        tokens: T tokens.
        elsewhere: (T,) each query's weight on keys that are not shown, drawn as a column of its own.
        rows, columns: titles of the axes.
        verb: joins row and column in the text on hover.
    """
    names = categories(tokens)
    figure = _query_key_figure(len(tokens), rows=rows, columns=columns, coloraxis=share_colours())
    figure.add_heatmap(
        z=np.asarray(pattern, dtype=np.float32),
        x=names,
        y=names,
        coloraxis="coloraxis",
        xgap=1 if len(tokens) <= 40 else 0,
        ygap=1 if len(tokens) <= 40 else 0,
        hovertemplate=f"<b>%{{y}}</b> {verb} <b>%{{x}}</b><br>weight %{{z:.3f}}<extra></extra>",
    )
    if elsewhere is not None:
        columns_after = ["\u200b", "<b>elsewhere</b>"]  # the first is a gap
        figure.add_heatmap(
            z=np.stack([np.full(len(names), np.nan), elsewhere], axis=1).astype(np.float32),
            x=columns_after,
            y=names,
            coloraxis="coloraxis",
            ygap=1 if len(tokens) <= 40 else 0,
            hoverongaps=False,
            hovertemplate=f"<b>%{{y}}</b> {verb} tokens that are not shown<br>weight %{{z:.3f}}<extra></extra>",
        )
        # The labels of a long axis are thinned out; this column keeps its own.
        figure.add_annotation(
            x=columns_after[1], y=0, yref="paper", yanchor="top", text="elsewhere", showarrow=False, xanchor="right"
        )
    return figure


def mask_map(allowed: NDArray[np.bool_], tokens: Sequence[str]) -> go.Figure:
    """An attention mask: each row is a query, filled cells are its unmasked keys.

    Args:
        allowed: (T, T), True where the query may attend to the key.
        tokens: T tokens.
    """
    names = categories(tokens)
    n = len(tokens)
    figure = _query_key_figure(n)
    figure.add_heatmap(
        z=np.asarray(allowed, dtype=np.uint8),
        x=names,
        y=names,
        zmin=0,
        zmax=1,
        colorscale=[(0.0, "rgba(138,138,138,0.18)"), (0.5, "rgba(138,138,138,0.18)"), (0.5, BAR), (1.0, BAR)],
        colorbar={
            "tickvals": [0.25, 0.75],
            "ticktext": ["masked", "unmasked"],
            "thickness": 12,
            "xpad": 4,
            "len": 0.5,
            "outlinewidth": 0,
        },
        xgap=1 if n <= 40 else 0,
        ygap=1 if n <= 40 else 0,
        text=np.where(allowed, "can attend to", "cannot attend to"),
        hovertemplate="<b>%{y}</b> %{text} <b>%{x}</b><extra></extra>",
    )
    return figure


def _query_key_figure(n_tokens: int, *, rows: str = ROWS, columns: str = COLUMNS, **layout: Any) -> go.Figure:
    axis = {"type": "category", "showgrid": False, "tickfont": {"size": 13}, "ticks": ""}
    return new_figure(
        height=int(np.clip(190 + 17 * n_tokens, 430, 900)),
        x={"title": {"text": columns, "standoff": 8}, "side": "top", "tickangle": -60, **axis, **few_columns(n_tokens)},
        y={"title": {"text": rows, "standoff": 16}, **axis, **few_rows(n_tokens)},
        **layout,
    )


@dataclass(frozen=True, slots=True)
class Arcs:
    """The query–key pairs that are drawn as arcs, and their share of all attention.

    `queries`, `keys`, `weights` have one entry per arc, strongest first; `share` is the weight of the arcs, and of
    self-attention (drawn as dots), over all weight; `n_hidden` counts the pairs that are not drawn.
    """

    queries: NDArray[np.intp]
    keys: NDArray[np.intp]
    weights: NDArray[np.floating]
    share: float
    n_hidden: int


def choose_arcs(
    pattern: NDArray[np.floating], *, query: int | None = None, min_weight: float = 0.0, at_most: int = 400
) -> Arcs:
    """The pairs of different tokens with the largest weights, at least `min_weight` and at most `at_most` of them.

    Args:
        pattern: T T attention weights.
        query: only the arcs of this query; None for all.
    """
    rows = np.arange(len(pattern)) if query is None else np.array([query])
    weights = np.zeros_like(pattern)
    weights[rows] = pattern[rows]
    total = float(weights.sum())
    diagonal = float(np.trace(weights))
    np.fill_diagonal(weights, 0.0)
    queries, keys = np.nonzero((weights >= min_weight) & (weights > 0))
    order = np.argsort(-weights[queries, keys], kind="stable")[:at_most]
    queries, keys = queries[order], keys[order]
    kept = weights[queries, keys]
    share = (float(kept.sum()) + diagonal) / total if total else 0.0
    pairs = len(rows) * (len(pattern) - 1)
    return Arcs(queries, keys, kept, min(share, 1.0), pairs - len(kept))


def attention_arcs(pattern: NDArray[np.floating], tokens: Sequence[str], arcs: Arcs) -> go.Figure:
    """The tokens in a row with arcs from queries to keys: above to later keys, below to earlier ones.

    Args:
        pattern: T T attention weights; its diagonal, self-attention, sets the size of the dots.
        tokens: T tokens.
        arcs: which pairs to draw, from `choose_arcs`. Thicker and more opaque means more weight.
    """
    n = len(tokens)
    span_of_tokens = {"range": [-0.7, n - 0.3], "showgrid": False, "ticks": ""}
    figure = new_figure(
        height=430,
        x={"showticklabels": False, **span_of_tokens},
        y={"range": [-1.3, 1.3], "showgrid": False, "showticklabels": False},
        xaxis2={"overlaying": "x", "automargin": True, **TOKENS, **span_of_tokens},
        annotations=[
            {"x": 0, "xref": "paper", "xanchor": "left", "y": y, "text": text, "showarrow": False, "opacity": 0.8}
            for y, text in ((1.2, "↷ attends to a later token"), (-1.2, "↶ attends to an earlier token"))
        ],
    )
    span = max(int(np.abs(arcs.keys - arcs.queries).max(initial=1)), 1)
    _add_arcs(figure, arcs, span)
    if len(arcs.weights):
        apex = np.sign(arcs.keys - arcs.queries) * np.sqrt(np.abs(arcs.keys - arcs.queries) / span)
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
        x=categories(tokens),
        y=np.zeros(n),
        xaxis="x2",
        mode="markers",
        marker={"size": 4 + 14 * np.sqrt(diagonal), "color": OKABE_ITO[7], "line": {"width": 0}},
        text=[f"{weight:.3f}" for weight in diagonal],
        hovertemplate="<b>%{x}</b> attends to itself<br>weight %{text}<extra></extra>",
    )
    return figure


def _add_arcs(figure: go.Figure, arcs: Arcs, span: int) -> None:
    """One line per direction and range of weights; an arc between tokens `span` apart is 1 high, lower ones as sqrt."""
    turn = np.linspace(0.0, np.pi, 25)
    edges = np.array([0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.01])
    for later, colour in ((True, OKABE_ITO[0]), (False, OKABE_ITO[1])):
        for low, high in pairwise(edges):
            chosen = (arcs.weights >= low) & (arcs.weights < high) & ((arcs.keys > arcs.queries) == later)
            if not chosen.any():
                continue
            start, end = arcs.queries[chosen].astype(float), arcs.keys[chosen].astype(float)
            middle, radius = (start + end) / 2, (end - start) / 2
            x = middle[:, None] - radius[:, None] * np.cos(turn)
            y = np.sign(radius)[:, None] * np.sqrt(np.abs(radius[:, None]) * 2 / span) * np.sin(turn)
            break_ = np.full((len(x), 1), np.nan)
            figure.add_scatter(
                x=np.hstack([x, break_]).ravel().astype(np.float32),
                y=np.hstack([y, break_]).ravel().astype(np.float32),
                mode="lines",
                line={"color": colour, "width": 1 + 7 * float(low + high) / 2},
                opacity=float(np.clip(0.35 + (low + high) / 2, 0.45, 0.95)),
                hoverinfo="skip",
            )


def pooling_bars(weights: NDArray[np.floating], tokens: Sequence[str]) -> go.Figure:
    """The pooling weight of each token; a dashed line marks equal weights.

    Args:
        weights: T weights of the pooling.
        tokens: T tokens.
    """
    even = 1 / len(tokens)
    figure = new_figure(
        height=300,
        x=TOKENS,
        y={"range": [0, min(1.05, 1.1 * max(float(np.max(weights)), 2 * even))], "title": "weight"},
        shapes=[line_across(even, dash="dash", width=2, color=FRAME)],
    )
    figure.add_bar(
        x=categories(tokens),
        y=np.asarray(weights, dtype=np.float32),
        marker={"color": BAR, "line_width": 0},
        hovertemplate="<b>%{x}</b><br>weight %{y:.3f}<extra></extra>",
    )
    return figure


def query_key_bars(products: NDArray[np.floating]) -> go.Figure:
    """The products of a query and a key by dimension, divided by sqrt(E), which sum to their score.

    Args:
        products: (E,).
    """
    figure = new_figure(
        height=300, x={"title": "dimension of the head"}, y={"title": "query × key / √E", "zeroline": True}
    )
    values = np.asarray(products, dtype=float)
    figure.add_bar(
        x=list(range(len(values))),
        y=values,
        marker={"color": [OKABE_ITO[1] if value >= 0 else OKABE_ITO[0] for value in values], "line_width": 0},
        hovertemplate="dimension %{x}: %{y:+.3f}<extra></extra>",
    )
    return figure
