"""A matrix as a heat map with one cell framed, or a vector as bars with one marked: the numbers of a step."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    FRAME,
    TOKENS,
    Quantity,
    categories,
    colour_limit,
    drawable,
    few_columns,
    label,
    new_figure,
    share_colours,
    signed_colours,
)

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
    quantity: Quantity = "value",
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
    finite = drawable(values)
    row_names = categories(rows)
    column_names = None if columns is None else categories(columns)
    written = n_columns <= WRITTEN_COLUMNS and n_rows * n_columns <= WRITTEN_CELLS
    axis = {"showgrid": False, "ticks": "", "tickfont": {"size": 13}}
    across_axis = {"range": [-0.5, n_columns - 0.5]} if columns is None else {**TOKENS, **few_columns(n_columns)}
    figure = new_figure(
        height=int(np.clip(150 + 17 * n_rows, 210, 1250)),
        x={"title": {"text": column_title, "standoff": 8}, "side": "top", **axis, **across_axis},
        y={"title": {"text": row_title, "standoff": 12}, "type": "category", "autorange": "reversed", **axis},
        coloraxis=signed_colours(colour_limit(finite, bound), title="value")
        if quantity == "value"
        else share_colours(title=quantity),
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


MOST_BARS = 24
"""Most named rows that are drawn as bars."""


def number_bars(
    values: NDArray[np.floating],
    *,
    names: Sequence[str] | None = None,
    what: str = "dimension",
    quantity: Quantity = "value",
    chosen: int,
    ranked: bool = False,
    most: int = MOST_BARS,
) -> go.Figure:
    """A vector as bars, one of them marked; minus infinity is left out.

    Args:
        values: N numbers.
        names: N names; None for dimensions, which are numbered from 0.
        what: one of them is.
        quantity: what the numbers are.
        chosen: the index of the bar to mark.
        ranked: draw the largest from the top, and the chosen one; otherwise all in their order.
        most: how many are drawn if they are ranked.
    """
    order = np.argsort(-values, kind="stable") if ranked else np.arange(len(values))
    if ranked and len(order) > most:
        kept = order[:most]
        order = kept if chosen in kept else np.append(kept[:-1], chosen)
    finite = drawable(values)[order]
    given = [str(n) for n in order] if names is None else [names[n] for n in order]
    places = categories(given, width=30 if ranked else 14) if names is not None else order.tolist()
    colours = [FRAME if n == chosen else BAR for n in order]
    bar: dict[str, Any] = {
        "customdata": order.tolist(),
        "marker": {"color": colours, "line_width": 0},
        "hovertemplate": "%{text}<extra></extra>",
        "text": [f"<b>{label(name, width=40)}</b><br>{value:.4f}" for name, value in zip(given, finite, strict=True)],
        "textposition": "none",
    }
    along = {"title": quantity, "zeroline": True}
    if ranked:
        figure = new_figure(
            height=int(120 + 26 * len(order)),
            x=along,
            y={"autorange": "reversed", "type": "category", "showgrid": False, "tickfont": {"size": 14}, "dtick": 1},
        )
        figure.add_bar(x=finite, y=places, orientation="h", **bar)
    else:
        across = {"title": what} if names is None else TOKENS
        figure = new_figure(height=340, x={"showgrid": False, **across}, y=along)
        figure.add_bar(x=places, y=finite, **bar)
    return figure
