"""Heat maps: attention patterns, a number per head, position vectors, states by token, confusions, overlaps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    DIVERGING,
    FRAME,
    SEQUENTIAL,
    TOKENS,
    Settings,
    add_click_targets,
    categories,
    colour_limit,
    few_columns,
    few_rows,
    flat_colour_bar,
    frame_cells,
    minus,
    new_figure,
    share_colours,
    signed_colours,
)
from txcls.text.encoder import Token

ROWS, COLUMNS = "query", "key"

GRID_GAP = 0.12  # between the maps of the grid, in map widths


def attention_grid(patterns: NDArray[np.floating], *, selected: tuple[int, int] | None = None) -> go.Figure:
    """All heads as small maps: one row per layer, one column per head, the selected one framed.

    A click anywhere selects the nearest map: its invisible marker carries `customdata = [layer, head]` (from 0).

    Args:
        patterns: L H T T attention weights, each row summing to 1; sent as 8-bit integers.
        selected: (layer, head) to frame, counted from 0.
    """
    n_layers, n_heads, n_tokens, _ = patterns.shape
    cells = np.rint(np.clip(patterns, 0.0, 1.0) * 255).astype(np.uint8)
    step, edge = 1 + GRID_GAP, GRID_GAP / 2
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
        margin = GRID_GAP / 3
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
    tokens: Sequence[str | Token],
    *,
    rows: str = ROWS,
    columns: str = COLUMNS,
    verb: str = "attends to",
    elsewhere: NDArray[np.floating] | None = None,
) -> go.Figure:
    """The attention pattern of one head: each row is a query, its colours are the weights of the keys.

    Args:
        pattern: T T attention weights, or those of the tokens that are shown.
        tokens: T tokens, such as `traced.tokens`, or their labels.
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


BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Ends of the colour scale of differences: few, so that colours can be compared between texts."""

FEED_FORWARD = -1
"""The head number that stands for a layer's feed-forward block."""

FEED_FORWARD_GAP = 0.4
"""Width of the gap between heads and feed-forward blocks, in cells."""


def head_effects_map(
    heads: NDArray[np.floating],
    feed_forward: NDArray[np.floating],
    *,
    title: str,
    quantity: str,
    digits: int = 1,
    badges: Mapping[tuple[int, int], str] | None = None,
    clickable: bool = True,
) -> go.Figure:
    """The effect of each head and feed-forward block in percentage points, with zero in the middle of the colour scale.

    A click selects a cell: its invisible marker has `customdata = [layer, head]` (from 0; head -1 is the layer's
    feed-forward block).

    Args:
        heads: L H differences, 1 for 100 points.
        feed_forward: L differences.
        title: of the colour bar.
        quantity: what changed, for the text on hover.
        digits: decimals of the numbers.
        badges: what to write on the cells to be framed, by (layer, head).
        clickable: whether hovering invites to click.
    """
    cells = np.column_stack(
        [heads, np.full(len(heads), np.nan), feed_forward]
    )  # L H+2: the column before the last is a gap
    bound = next((end for end in BOUNDS if np.nanmax(np.abs(cells), initial=0.0) <= end), 1.0)
    figure = _heads(
        cells * 100,
        colours={"colorscale": DIVERGING, "cmin": -100 * bound, "cmax": 100 * bound, "colorbar": _bar(title)},
        number=lambda value: _signed(value, digits),
        hover=lambda value: (
            f"{quantity} changes by {_signed(value, digits + 1)} points" + "<br>click to switch" * clickable
        ),
        n_heads=heads.shape[1],
        feed_forward=True,
    )
    for (layer, head), badge in (badges or {}).items():
        column = heads.shape[1] + FEED_FORWARD_GAP if head == FEED_FORWARD else head
        figure.add_shape(
            type="rect", x0=column - 0.47, x1=column + 0.47, y0=layer - 0.46, y1=layer + 0.46,
            line={"color": FRAME, "width": 5},
        )  # fmt: skip
        figure.add_annotation(
            x=column, y=layer - 0.33, text=f"<b>{badge}</b>", showarrow=False, font={"size": 13, "color": "#111111"},
            bgcolor=FRAME, borderpad=1,
        )  # fmt: skip
    return figure


def head_values_map(
    values: NDArray[np.floating], *, title: str, quantity: str, top: float, digits: int = 2
) -> go.Figure:
    """One number per head, from 0 to `top`.

    Args:
        values: L H numbers, none negative.
        title: of the colour bar.
        quantity: what they are, for the hover text.
        top: the end of the colour scale.
        digits: decimals of the numbers.
    """
    return _heads(
        values,
        colours={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": top, "colorbar": _bar(title)},
        number=lambda value: f"{value:.{digits}f}",
        hover=lambda value: f"{quantity} {value:.{digits + 1}f}",
        n_heads=values.shape[1],
        feed_forward=False,
    )


def _heads(
    cells: NDArray[np.floating],
    *,
    colours: Settings,
    number: Callable[[float], str],
    hover: Callable[[float], str],
    n_heads: int,
    feed_forward: bool,
) -> go.Figure:
    n_layers, n_columns = cells.shape
    names = [str(head + 1) for head in range(n_heads)] + ["", "FF"] * feed_forward
    edges = [head - 0.5 for head in range(n_heads + 1)] + [
        n_heads - 0.5 + FEED_FORWARD_GAP,
        n_heads + 0.5 + FEED_FORWARD_GAP,
    ] * feed_forward
    centres = [float(head) for head in range(n_heads)] + [0.0, n_heads + FEED_FORWARD_GAP] * feed_forward
    axis: dict[str, Any] = {"showgrid": False, "ticks": "", "fixedrange": True}
    figure = new_figure(
        height=int(190 + np.clip(330 / n_layers, 34, 74) * n_layers),
        x={
            "range": [-0.5, edges[-1]],
            "tickvals": [centres[column] for column in range(n_columns) if names[column]],
            "ticktext": [name for name in names if name],
            "title": "head" + " · FF: feed-forward block" * feed_forward,
            "side": "top",
            **axis,
        },
        y={
            "range": [n_layers - 0.5, -0.5],
            "tickvals": list(range(n_layers)),
            "ticktext": [str(layer + 1) for layer in range(n_layers)],
            "title": "layer",
            **axis,
        },
        coloraxis=colours,
        hoverdistance=-1,
        clickmode="event+select",
    )
    figure.add_heatmap(
        z=np.asarray(cells, dtype=np.float32),
        x=edges,
        text=[["" if np.isnan(value) else number(value) for value in row] for row in cells],
        texttemplate="%{text}",
        textfont={"size": 16 if n_columns <= 8 else 13 if n_columns <= 12 else 10},
        coloraxis="coloraxis",
        xgap=3,
        ygap=3,
        hoverinfo="skip",
        hoverongaps=False,
    )
    places = [(layer, column) for layer in range(n_layers) for column in range(n_columns) if names[column]]
    numbers = [(layer, FEED_FORWARD if column >= n_heads else column) for layer, column in places]
    parts = [
        f"layer {layer + 1}, " + ("feed-forward" if head == FEED_FORWARD else f"head {head + 1}")
        for layer, head in numbers
    ]
    add_click_targets(
        figure,
        x=[centres[column] for _, column in places],
        y=[layer for layer, _ in places],
        customdata=numbers,
        text=[f"<b>{part}</b><br>{hover(float(cells[place]))}" for part, place in zip(parts, places, strict=True)],
    )
    return figure


def _signed(value: float, digits: int) -> str:
    """A number with its sign; none for a zero after rounding."""
    written = f"{value:+.{digits}f}"
    return written[1:] if not float(written) else minus(written)


def _bar(title: str) -> dict[str, Any]:
    return flat_colour_bar(title, len=0.7, y=-0.08, yanchor="top")


def position_heatmap(values: NDArray[np.floating], *, bound: float | None = None, used: int | None = None) -> go.Figure:
    """The encoding as a heat map: one row per position, one column per dimension, zero in the middle of the colours.

    Args:
        values: T D encoding.
        bound: the colours span -bound … bound; None for the largest magnitude in `values`.
        used: frame the first `used` positions, those of the current text.
    """
    n_positions, d_model = values.shape
    figure = new_figure(
        height=480,
        x={"title": "dimension", "showgrid": False, "range": [-0.5, d_model - 0.5]},
        y={"title": "position", "showgrid": False, "range": [n_positions - 0.5, -0.5]},
        coloraxis=signed_colours(colour_limit(values, bound), title="value"),
    )
    figure.add_heatmap(
        z=np.asarray(values, dtype=np.float32),
        coloraxis="coloraxis",
        hovertemplate="position %{y}, dimension %{x}<br>value %{z:.3f}<extra></extra>",
    )
    if used:
        frame_cells(figure, (0, min(used, n_positions)), (0, d_model), colour="#111111", width=3)
    return figure


def position_products_map(products: NDArray[np.floating], *, used: int | None = None) -> go.Figure:
    """The dot products between the vectors of all positions, zero in the middle of the colour scale.

    Args:
        products: T T dot products.
        used: frame the first `used` positions, those of the current text.
    """
    n_positions = len(products)
    axis = {"title": "position", "showgrid": False}
    figure = new_figure(
        height=440,
        x={"range": [-0.5, n_positions - 0.5], **axis},
        y={"range": [n_positions - 0.5, -0.5], **axis},
        coloraxis=signed_colours(colour_limit(products, None), title="dot product"),
    )
    figure.add_heatmap(
        z=np.asarray(products, dtype=np.float32),
        coloraxis="coloraxis",
        hovertemplate="positions %{y} and %{x}<br>dot product %{z:.2f}<extra></extra>",
    )
    if used:
        frame_cells(figure, (0, min(used, n_positions)), (0, min(used, n_positions)), colour="#111111", width=3)
    return figure


def overlap_map(names: Sequence[str], overlaps: NDArray[np.floating]) -> go.Figure:
    """Share of the strongest words that every two methods have in common, with the numbers in the cells.

    Args:
        names: M methods.
        overlaps: (M, M), from 0 to 1; NaN is drawn as a gap.
    """
    n = len(names)
    written = [["–" if np.isnan(overlap) else f"{overlap:.2f}" for overlap in row] for row in overlaps]
    axis = {"tickvals": list(range(n)), "showgrid": False, "ticks": "", "tickfont": {"size": 13}}
    figure = new_figure(
        height=560,
        x={"side": "top", "tickangle": -45, "ticktext": list(names), **axis},
        y={"autorange": "reversed", "ticktext": [name.replace(" ", "<br>", 1) for name in names], **axis},
        coloraxis={
            "colorscale": SEQUENTIAL,
            "cmin": 0,
            "cmax": 1,
            "colorbar": flat_colour_bar("strongest words in common", y=-0.05, yanchor="top", tickformat=".0%"),
        },
    )
    figure.add_heatmap(
        z=np.asarray(overlaps, dtype=np.float32),
        text=written,
        texttemplate="%{text}",
        textfont={"size": 15},
        coloraxis="coloraxis",
        xgap=2,
        ygap=2,
        customdata=[[f"{first}<br>{second}" for second in names] for first in names],
        hovertemplate="%{customdata}<br>strongest words in common: %{z:.0%}<extra></extra>",
    )
    return figure


def token_rows(
    rows: Sequence[str], tokens: Sequence[str], values: NDArray[np.floating], *, title: str, signed: bool, form: str
) -> go.Figure:
    """A number per token and row: norms from 0, or contributions with zero in the middle of the colour scale.

    Args:
        rows: S names, drawn from the top.
        tokens: T tokens.
        values: (S, T).
        title: of the colour bar.
        signed: whether values may be negative.
        form: d3 format of a value on hover (".2f", "+.2f").
    """
    bound = float(np.abs(values).max(initial=0.0)) or 1.0
    figure = new_figure(
        height=int(230 + 34 * len(rows)),
        x={"showgrid": False, **TOKENS},
        y={"autorange": "reversed", "type": "category", "showgrid": False, "tickfont": {"size": 13}},
        coloraxis={
            "colorscale": DIVERGING if signed else SEQUENTIAL,
            "cmin": -bound if signed else 0,
            "cmax": bound,
            "colorbar": flat_colour_bar(title, y=1.01, yanchor="bottom"),
        },
    )
    figure.add_heatmap(
        z=np.asarray(values, dtype=np.float32),
        x=categories(tokens),
        y=list(rows),
        coloraxis="coloraxis",
        xgap=1 if len(tokens) <= 20 else 0,  # on a phone cells get narrow
        ygap=2,
        hovertemplate=f"<b>%{{x}}</b><br>%{{y}}: %{{z:{form}}}<extra></extra>",
    )
    return figure


WRITTEN_CLASSES = 12
"""Up to this many classes, the cells hold their numbers."""

FLAT_CLASSES = 5
"""Up to this many classes, their names stand level below the map."""


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
        text=[[f"{count:,}" for count in row] for row in counts] if n <= WRITTEN_CLASSES else None,
        texttemplate="%{text}" if n <= WRITTEN_CLASSES else None,
        hovertemplate="<b>%{y}</b> predicted as <b>%{x}</b><br>%{customdata:,} rows, %{z:.1%} of the class"
        "<extra></extra>",
    )
    return figure
