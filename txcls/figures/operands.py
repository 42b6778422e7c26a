"""A matrix as a heat map, alone or beside the matrices that it is computed from."""

import textwrap
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    DIVERGING,
    FRAME,
    SEQUENTIAL,
    TOKENS,
    Quantity,
    categories,
    colour_limit,
    drawable,
    few_columns,
    frame_cells,
    label,
    new_figure,
    share_colours,
    signed_colours,
)

WRITTEN_CELLS = 160
"""Numbers are written into the cells where there are no more than these, and no more than WRITTEN_COLUMNS across."""
WRITTEN_COLUMNS = 10
Used = Literal["row", "column", "cell"]
"""What of an operand goes into a number of the result: its row, its column, or its number there."""
MAX_NAMES = 12
"""Most rows and columns that are named, besides the chosen one."""
GAP, ABOVE = 0.03, 0.36
"""Width between two matrices, and the share of the height that belongs to what stands above the result."""
LINE, LINE_PX = 0.11, 32
"""Height of a line of a name: of the result below another matrix as a share, and above all matrices in pixels."""
ACROSS, MIN_ACROSS, MIN_OF_RESULT = 36, 14, 21
"""Letters that fit above all matrices on a narrow screen, and the fewest in a line of a name: the result's may be wider
than its matrix."""


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
        frame_cells(figure, (row, row + 1), (column, column + 1), colour=FRAME, width=3)
    return figure


def operands_map(
    values: NDArray[np.floating],
    *,
    result: str,
    operands: Sequence[tuple[str, NDArray[np.floating], Used]],
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    row_title: str = "token",
    column_title: str = "dimension",
    quantity: Quantity = "value",
    bound: float | None = None,
    chosen: tuple[int, int] | None = None,
) -> go.Figure:
    """A result at the lower right; to its left what is read by row, above it what is read by column.

    Rows of the result continue the rows of the matrices to its left, and its columns those of the matrix above it. The
    frames move when another number is chosen.

    Args:
        values: R K numbers, the first trace; minus infinity is left blank.
        result: what they are.
        operands: name, numbers, and what of them goes into the number at (i, j): their row i or their number at (i, j)
            (both have R rows and stand to the left), or their column j (at most one, with K columns).
        rows, columns, row_title, column_title, quantity, bound, chosen: as for `number_map`.
    """
    left = [operand for operand in operands if operand[2] != "column"]
    above = next((operand for operand in operands if operand[2] == "column"), None)
    n_rows, n_columns = values.shape
    widths = _widths([matrix.shape[1] for _, matrix, _ in left], n_columns)
    starts = np.concatenate([[0.0], np.cumsum(np.array(widths) + GAP)])
    axes = [(float(start), min(float(start + width), 1.0)) for start, width in zip(starts[:-1], widths, strict=True)]
    names = [_lines(name, domain) for (name, _, _), domain in zip(left, axes[:-1], strict=True)]
    names.append(_lines(result, axes[-1], least=MIN_OF_RESULT, most_lines=2 if above is None else 1))
    name_above = [] if above is None else _lines(above[0], axes[-1])
    top = 1.0 if above is None else 1.0 - ABOVE - LINE
    row_at, column_at = chosen or (None, None)
    down: dict[str, Any] = {
        "range": [n_rows - 0.5, -0.5],
        "domain": [0, top],
        "title": {"text": row_title, "standoff": 20},
        **_ticks(list(rows), row_at),
    }
    plain = {"showgrid": False, "ticks": "", "zeroline": False, "showticklabels": False}
    settings: dict[str, Any] = {}
    notes, traces = [], []
    frames: list[tuple[str, str, tuple[float, float, float, float]]] = []

    # The result first: clicks on the first trace choose a cell.
    x, y = "x", "y"
    named = list(columns) if columns is not None else None
    across: dict[str, Any] = {
        "range": [-0.5, n_columns - 0.5],
        "domain": axes[-1],
        "anchor": "y",
        "title": {"text": column_title, "standoff": 6},
        **({"tickangle": -50 * (n_columns > 1), **_ticks(named, column_at)} if named is not None else {"nticks": 8}),
    }
    bar = {"thickness": 12, "xpad": 4, "outlinewidth": 0, "len": top, "y": top / 2}
    traces.append(_heat_map(values, x, y, quantity=quantity, bound=bound, bar=bar))
    notes.append(_title(names[-1], axes[-1], top, bold=True))
    if chosen is not None:
        frames.append((x, y, (column_at - 0.5, row_at - 0.5, column_at + 0.5, row_at + 0.5)))  # type: ignore[operator]
    for n, (_, matrix, used) in enumerate(left, start=2):
        width = matrix.shape[1]
        settings[f"xaxis{n}"] = {"range": [-0.5, width - 0.5], "domain": axes[n - 2], "anchor": "y", **plain}
        traces.append(_heat_map(matrix, f"x{n}", y))
        notes.append(_title(names[n - 2], axes[n - 2], top))
        if chosen is not None:
            start, end = (-0.5, width - 0.5) if used == "row" else (column_at - 0.5, column_at + 0.5)  # type: ignore[operator]
            frames.append((f"x{n}", y, (start, row_at - 0.5, end, row_at + 0.5)))  # type: ignore[operator]
    if above is not None:
        matrix = above[1]
        settings["yaxis2"] = {"range": [len(matrix) - 0.5, -0.5], "domain": [1 - ABOVE, 1], "anchor": "x", **plain}
        traces.append(_heat_map(matrix, x, "y2"))
        notes.append(_title(name_above, axes[-1], 1.0))
        if chosen is not None:
            frames.append((x, "y2", (column_at - 0.5, -0.5, column_at + 0.5, len(matrix) - 0.5)))  # type: ignore[operator]
    figure = new_figure(
        height=640,
        x={"showgrid": False, "ticks": "", **across},
        y={"showgrid": False, "ticks": "", "anchor": "x2" if left else "x", **down},
        annotations=notes,
        margin={"l": 8, "r": 8, "t": 8 + LINE_PX * (len(name_above) or max(map(len, names))), "b": 8},
        transition={"duration": 350, "easing": "cubic-in-out"},
        **settings,
    )
    figure.add_traces(traces)
    for colour, width in (("#FFFFFF", 7), (FRAME, 4)):  # visible on every colour of the scale
        for across_axis, down_axis, (x0, y0, x1, y1) in frames:
            figure.add_scatter(
                x=[x0, x1, x1, x0, x0],
                y=[y0, y0, y1, y1, y0],
                xaxis=across_axis,
                yaxis=down_axis,
                mode="lines",
                line={"color": colour, "width": width},
                hoverinfo="skip",
                cliponaxis=False,
            )
    return figure


def _widths(operands: Sequence[int], result: int) -> list[float]:
    """The widths of the operands and of the result, as shares: more columns get more room, within limits."""
    sizes = np.sqrt(np.clip([*operands, result], 4, 128))
    shares = sizes / sizes.sum() * (1.0 - GAP * len(operands))
    return [float(share) for share in shares]


def _heat_map(
    values: NDArray[np.floating],
    x: str,
    y: str,
    *,
    quantity: Quantity = "value",
    bound: float | None = None,
    bar: dict[str, Any] | None = None,
) -> go.Heatmap:
    finite = drawable(values)
    limit = colour_limit(finite, bound)
    colours = (
        {"colorscale": DIVERGING, "zmin": -limit, "zmax": limit}
        if quantity == "value"
        else {"colorscale": SEQUENTIAL, "zmin": 0.0, "zmax": 1.0}
    )
    return go.Heatmap(
        z=finite,
        xaxis=x,
        yaxis=y,
        showscale=bar is not None,
        colorbar=bar,
        hovertemplate="%{z:.4f}<extra></extra>",
        hoverongaps=False,
        **colours,
    )


def _lines(name: str, domain: tuple[float, float], *, least: int = MIN_ACROSS, most_lines: int = 2) -> list[str]:
    """A name, broken into lines as wide as the matrix below it; what is left over is cut."""
    most = max(least, int(ACROSS * (domain[1] - domain[0])))
    lines = textwrap.wrap(name, most, max_lines=most_lines, placeholder=" …", break_on_hyphens=False)
    return [label(line, width=60) for line in lines]


def _title(lines: Sequence[str], domain: tuple[float, float], height: float, *, bold: bool = False) -> dict[str, Any]:
    text = "<br>".join(lines)
    return {
        "text": f"<b>{text}</b>" if bold else text,
        "align": "left",
        "x": domain[0],
        "y": height,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
    }


def _ticks(names: Sequence[str], chosen: int | None) -> dict[str, Any]:
    """Evenly spaced names, few enough to be legible, and always that of the chosen one."""
    every = -(-len(names) // MAX_NAMES)
    places = [place for place in range(0, len(names), every) if chosen is None or abs(place - chosen) >= every]
    if chosen is not None:
        places = sorted([*places, chosen])
    shown = [label(names[place], width=14) for place in places]
    return {"tickvals": places, "ticktext": shown}
