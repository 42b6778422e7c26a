"""Figures of position vectors: the whole table, chosen dimensions as curves, and dot products between positions."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import DASHES, OKABE_ITO, legend_above, new_figure, signed_colours


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
        coloraxis=signed_colours(_bound(values, bound), title="value"),
    )
    figure.add_heatmap(
        z=np.asarray(values, dtype=np.float32),
        coloraxis="coloraxis",
        hovertemplate="position %{y}, dimension %{x}<br>value %{z:.3f}<extra></extra>",
    )
    if used:
        _frame_rows(figure, min(used, n_positions), d_model)
    return figure


def position_curves(
    values: NDArray[np.floating], dimensions: Sequence[int], *, bound: float | None = None
) -> go.Figure:
    """Chosen dimensions over positions, each with its own colour and dash.

    Args:
        values: T D encoding.
        dimensions: columns of `values` to draw.
        bound: the value axis spans -bound … bound; None for the largest magnitude in `values`.
    """
    limit = 1.08 * _bound(values, bound)
    figure = new_figure(
        height=440,
        x={"title": "position", "range": [0, max(len(values) - 1, 1)]},
        y={"title": "value", "range": [-limit, limit]},
        hovermode="x unified",
        **legend_above(),
    )
    positions = np.arange(len(values))
    for place, dimension in enumerate(dimensions):
        figure.add_scatter(
            x=positions,
            y=np.asarray(values[:, dimension], dtype=np.float32),
            mode="lines",
            name=f"dimension {dimension}",
            line={"color": OKABE_ITO[place % len(OKABE_ITO)], "dash": DASHES[place % len(DASHES)], "width": 2.5},
            hovertemplate="%{y:.3f}",
        )
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
        coloraxis=signed_colours(_bound(products, None), title="dot product"),
    )
    figure.add_heatmap(
        z=np.asarray(products, dtype=np.float32),
        coloraxis="coloraxis",
        hovertemplate="positions %{y} and %{x}<br>dot product %{z:.2f}<extra></extra>",
    )
    if used:
        _frame_rows(figure, min(used, n_positions), min(used, n_positions))
    return figure


def _bound(values: NDArray[np.floating], bound: float | None) -> float:
    return bound or float(np.abs(values).max(initial=0.0)) or 1.0


def _frame_rows(figure: go.Figure, n_rows: int, n_columns: int) -> None:
    for colour, width in (("#FFFFFF", 6), ("#111111", 3)):  # visible on every colour of the scale
        figure.add_shape(
            type="rect", x0=-0.5, x1=n_columns - 0.5, y0=-0.5, y1=n_rows - 0.5, line={"color": colour, "width": width}
        )
