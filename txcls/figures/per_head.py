"""One number per head as a heat map of layers by heads, with an extra column for feed-forward blocks."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    DIVERGING,
    FRAME,
    SEQUENTIAL,
    Settings,
    add_click_targets,
    flat_colour_bar,
    minus,
    new_figure,
)

BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Ends of the colour scale of differences: few, so that colours can be compared between texts."""
FEED_FORWARD = -1
"""The head number that stands for a layer's feed-forward block."""
GAP = 0.4
"""Width of the gap between heads and feed-forward blocks, in cells."""


def head_effects_map(
    heads: NDArray[np.floating],
    feed_forward: NDArray[np.floating],
    *,
    title: str,
    what: str,
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
        what: what changed, for the text on hover.
        digits: decimals of the numbers.
        badges: what to write on the cells to be framed, by (layer, head).
        clickable: whether hovering invites to click.
    """
    cells = np.column_stack(
        [heads, np.full(len(heads), np.nan), feed_forward]
    )  # L H+2: the column before the last is a gap
    bound = next((one for one in BOUNDS if np.nanmax(np.abs(cells), initial=0.0) <= one), 1.0)
    figure = _heads(
        cells * 100,
        colours={"colorscale": DIVERGING, "cmin": -100 * bound, "cmax": 100 * bound, "colorbar": _bar(title)},
        number=lambda value: _signed(value, digits),
        hover=lambda value: (
            f"{what} changes by {_signed(value, digits + 1)} points" + "<br>click to switch" * clickable
        ),
        n_heads=heads.shape[1],
        feed_forward=True,
    )
    for (layer, head), badge in (badges or {}).items():
        column = heads.shape[1] + GAP if head == FEED_FORWARD else head
        figure.add_shape(
            type="rect", x0=column - 0.47, x1=column + 0.47, y0=layer - 0.46, y1=layer + 0.46,
            line={"color": FRAME, "width": 5},
        )  # fmt: skip
        figure.add_annotation(
            x=column, y=layer - 0.33, text=f"<b>{badge}</b>", showarrow=False, font={"size": 13, "color": "#111111"},
            bgcolor=FRAME, borderpad=1,
        )  # fmt: skip
    return figure


def head_values_map(values: NDArray[np.floating], *, title: str, what: str, top: float, digits: int = 2) -> go.Figure:
    """One number per head, from 0 to `top`.

    Args:
        values: L H numbers, none negative.
        title: of the colour bar.
        what: what they are, for the hover text.
        top: the end of the colour scale.
        digits: decimals of the numbers.
    """
    return _heads(
        values,
        colours={"colorscale": SEQUENTIAL, "cmin": 0, "cmax": top, "colorbar": _bar(title)},
        number=lambda value: f"{value:.{digits}f}",
        hover=lambda value: f"{what} {value:.{digits + 1}f}",
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
    edges = [head - 0.5 for head in range(n_heads + 1)] + [n_heads - 0.5 + GAP, n_heads + 0.5 + GAP] * feed_forward
    centres = [float(head) for head in range(n_heads)] + [0.0, n_heads + GAP] * feed_forward
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
