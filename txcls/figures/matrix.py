"""A matrix as a heat map, with one cell framed: the numbers of a step of the forward pass."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import FRAME, TOKENS, categories, label, new_figure, share_colours, signed_colours

WRITTEN_CELLS = 160
"""Numbers are written into the cells where there are no more than these, and no more than WRITTEN_COLUMNS across."""
WRITTEN_COLUMNS = 10


def number_map(
    values: NDArray[np.floating],
    *,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    row_title: str = "token",
    column_title: str = "dimension",
    quantity: Literal["value", "weight", "probability"] = "value",
    bound: float | None = None,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """A matrix as a heat map, with every number on hover; minus infinity is left blank.

    Args:
        values: R K numbers.
        rows: R names.
        columns: K names; None for dimensions, which are numbered from 0.
        row_title: what a row is.
        column_title: what a column is.
        quantity: what the numbers are; weights and probabilities have colours from 0 to 1, values signed ones.
        bound: signed colours span -bound … bound; None for the largest magnitude in `values`.
        chosen: (row, column) to frame.
    """
    n_rows, n_columns = values.shape
    finite = np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    row_names = categories(rows)
    column_names = None if columns is None else categories(columns)
    written = n_columns <= WRITTEN_COLUMNS and n_rows * n_columns <= WRITTEN_CELLS
    limit = bound or float(np.nanmax(np.abs(finite), initial=0.0)) or 1.0
    axis = {"showgrid": False, "ticks": "", "tickfont": {"size": 13}}
    across_axis = {"range": [-0.5, n_columns - 0.5]} if columns is None else TOKENS
    figure = new_figure(
        height=int(np.clip(150 + 17 * n_rows, 210, 1250)),
        x={"title": {"text": column_title, "standoff": 8}, "side": "top", **axis, **across_axis},
        y={"title": {"text": row_title, "standoff": 12}, "type": "category", "autorange": "reversed", **axis},
        coloraxis=signed_colours(limit, title="value") if quantity == "value" else share_colours(title=quantity),
    )
    gap = 1 if n_columns <= 24 else 0  # on a phone cells get narrow
    across = "%{x}" if columns is not None else f"{column_title} %{{x}}"
    figure.add_heatmap(
        z=finite,
        x=column_names,
        y=row_names,
        coloraxis="coloraxis",
        xgap=gap,
        ygap=gap,
        texttemplate="%{z:.3f}" if written else None,
        hovertemplate=f"<b>%{{y}}</b>, <b>{label(across, width=40)}</b><br>%{{z:.4f}}<extra></extra>",
        hoverongaps=False,
    )
    if chosen is not None:
        row, column = chosen
        for colour, width in (("#FFFFFF", 6), (FRAME, 3)):  # visible on every colour of the scale
            figure.add_shape(
                type="rect",
                x0=column - 0.5,
                x1=column + 0.5,
                y0=row - 0.5,
                y1=row + 0.5,
                line={"color": colour, "width": width},
            )
    return figure
