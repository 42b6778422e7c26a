"""A matrix as a heat map, by itself or beside the matrices from which it is computed."""

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
    Settings,
    categories,
    colour_limit,
    drawable,
    few_columns,
    frame_cells,
    label,
    new_figure,
    share_colour_axis,
    signed_colour_axis,
)

Used = Literal["row", "column", "cell"]
"""What part of an operand enters one number of the result: its row, its column, or the number at the same place."""
GAP, ABOVE = 0.03, 0.36
"""Gap between two matrices, and the fraction of the height used by the matrix above the result."""
LINE, LINE_PX = 0.11, 32
"""Height of one line of a title: as a fraction if the title is below another matrix, in pixels if it is at the top."""
PLAIN: Settings = {"showgrid": False, "ticks": "", "zeroline": False, "showticklabels": False}


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
        values: (R, K) numbers.
        rows, columns: R and K names; None for dimensions, which are numbered from 0.
        row_title, column_title: what a row and a column represent.
        quantity: weights and probabilities get a colour scale from 0 to 1, values a diverging one.
        bound: a diverging scale spans -bound … bound; None uses the largest magnitude in `values`.
        chosen: (row, column) to frame.
    """
    n_rows, n_columns = values.shape
    finite = drawable(values)
    limit = colour_limit(finite, bound)
    colours = signed_colour_axis(limit, title="value") if quantity == "value" else share_colour_axis(title=quantity)
    axis = {"showgrid": False, "ticks": "", "tickfont": {"size": 13}}
    across_axis = {"range": [-0.5, n_columns - 0.5]} if columns is None else {**TOKENS, **few_columns(n_columns)}
    figure = new_figure(
        height=int(np.clip(150 + 17 * n_rows, 210, 1250)),
        x={"title": {"text": column_title, "standoff": 8}, "side": "top", **axis, **across_axis},
        y={"title": {"text": row_title, "standoff": 12}, "type": "category", "autorange": "reversed", **axis},
        coloraxis=colours,
    )
    gap = 1 if n_columns <= 24 else 0  # cells are narrow on a phone
    across = "%{x}" if columns is not None else f"{column_title} %{{x}}"
    figure.add_heatmap(
        z=finite,
        x=None if columns is None else categories(columns),
        y=categories(rows),
        coloraxis="coloraxis",
        xgap=gap,
        ygap=gap,
        texttemplate="%{z:.3f}" if n_columns <= 10 and values.size <= 160 else None,
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
    """A result at the lower right, with the operands read by row to its left and the operand read by column above it.

    The rows of the result line up with those of the matrices to its left, its columns with those of the matrix above.
    The frames move when another number is chosen.

    Args:
        values: (R, K) numbers, the first trace; minus infinity is left blank.
        result: name of the result.
        operands: name, numbers, and what part of them enters the result at (i, j): row i or the number at (i, j) (these
            operands have R rows and are drawn to the left), or column j (at most one operand, with K columns).
        rows, columns, row_title, column_title, quantity, bound, chosen: as in `number_map`.
    """
    left = [operand for operand in operands if operand[2] != "column"]
    above = [operand for operand in operands if operand[2] == "column"][:1]
    n_rows, n_columns = values.shape
    *domains, domain = _domains([matrix.shape[1] for _, matrix, _ in left], n_columns)
    top = 1.0 - ABOVE - LINE if above else 1.0
    title = _lines(result, domain, least=21, most_lines=1 if above else 2)  # may be wider than its matrix
    notes = [_title(title, domain, top, bold=True)]
    bar = {"thickness": 12, "xpad": 4, "outlinewidth": 0, "len": top, "y": top / 2}
    traces = [_heat_map(values, "x", "y", quantity=quantity, bound=bound, bar=bar)]  # first: it receives clicks
    cells = [("x", "y", n_columns, n_rows, "cell")]
    settings: dict[str, Any] = {}
    n_lines = 0 if above else len(title)
    for n, ((name, matrix, used), at) in enumerate(zip(left, domains, strict=True), start=2):
        width = matrix.shape[1]
        settings[f"xaxis{n}"] = {"range": [-0.5, width - 0.5], "domain": at, "anchor": "y", **PLAIN}
        traces.append(_heat_map(matrix, f"x{n}", "y"))
        lines = _lines(name, at)
        notes.append(_title(lines, at, top))
        n_lines = n_lines if above else max(n_lines, len(lines))
        cells.append((f"x{n}", "y", width, n_rows, used))
    for name, matrix, used in above:
        settings["yaxis2"] = {"range": [len(matrix) - 0.5, -0.5], "domain": [1 - ABOVE, 1], "anchor": "x", **PLAIN}
        traces.append(_heat_map(matrix, "x", "y2"))
        lines = _lines(name, domain)
        notes.append(_title(lines, domain, 1.0))
        n_lines = len(lines)
        cells.append(("x", "y2", n_columns, len(matrix), used))
    row_at, column_at = chosen or (None, None)
    names = {"nticks": 8} if columns is None else {"tickangle": -50 * (n_columns > 1), **_ticks(columns, column_at)}
    figure = new_figure(
        height=640,
        x={
            "showgrid": False,
            "ticks": "",
            "range": [-0.5, n_columns - 0.5],
            "domain": domain,
            "anchor": "y",
            "title": {"text": column_title, "standoff": 6},
            **names,
        },
        y={
            "showgrid": False,
            "ticks": "",
            "range": [n_rows - 0.5, -0.5],
            "domain": [0, top],
            "anchor": "x2" if left else "x",
            "title": {"text": row_title, "standoff": 20},
            **_ticks(rows, row_at),
        },
        annotations=notes,
        margin={"l": 8, "r": 8, "t": 8 + LINE_PX * n_lines, "b": 8},
        transition={"duration": 350, "easing": "cubic-in-out"},
        **settings,
    )
    figure.add_traces(traces)
    if chosen is not None:
        _add_frames(figure, cells, *chosen)
    return figure


def _add_frames(figure: go.Figure, matrices: Sequence[tuple[str, str, int, int, str]], row: int, column: int) -> None:
    """Frame the inputs of one number in each matrix, given as (x axis, y axis, width, height, use)."""
    for colour, line_width in (("#FFFFFF", 7), (FRAME, 4)):  # visible on every colour of the scale
        for across, down, width, height, used in matrices:
            x0, x1 = (-0.5, width - 0.5) if used == "row" else (column - 0.5, column + 0.5)
            y0, y1 = (-0.5, height - 0.5) if used == "column" else (row - 0.5, row + 0.5)
            figure.add_scatter(
                x=[x0, x1, x1, x0, x0],
                y=[y0, y0, y1, y1, y0],
                xaxis=across,
                yaxis=down,
                mode="lines",
                line={"color": colour, "width": line_width},
                hoverinfo="skip",
                cliponaxis=False,
            )


def _domains(operands: Sequence[int], result: int) -> list[tuple[float, float]]:
    """The x-axis intervals of the operands and the result: more columns get more room, within limits."""
    sizes = np.sqrt(np.clip([*operands, result], 4, 128))
    widths = sizes / sizes.sum() * (1.0 - GAP * len(operands))
    starts = np.concatenate([[0.0], np.cumsum(widths + GAP)[:-1]])
    return [(float(start), min(float(start + width), 1.0)) for start, width in zip(starts, widths, strict=True)]


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
    is_value = quantity == "value"
    return go.Heatmap(
        z=finite,
        xaxis=x,
        yaxis=y,
        showscale=bar is not None,
        colorbar=bar,
        colorscale=DIVERGING if is_value else SEQUENTIAL,
        zmin=-limit if is_value else 0.0,
        zmax=limit if is_value else 1.0,
        hovertemplate="%{z:.4f}<extra></extra>",
        hoverongaps=False,
    )


def _lines(name: str, domain: tuple[float, float], *, least: int = 14, most_lines: int = 2) -> list[str]:
    """A name, wrapped to the width of the matrix below it; any remaining text is cut off.

    About 36 characters fit across the whole figure on a narrow screen; a line always has room for at least `least`.
    """
    limit = max(least, int(36 * (domain[1] - domain[0])))
    lines = textwrap.wrap(name, limit, max_lines=most_lines, placeholder=" …", break_on_hyphens=False)
    return [label(line, width=60) for line in lines]


def _title(lines: Sequence[str], domain: tuple[float, float], height: float, *, bold: bool = False) -> dict[str, Any]:
    text = "<br>".join(lines)
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "align": "left"}
    return {"text": f"<b>{text}</b>" if bold else text, "x": domain[0], "y": height, "showarrow": False, **place}


def _ticks(names: Sequence[str], chosen: int | None) -> dict[str, Any]:
    """At most twelve evenly spaced names, to keep them legible, always including the chosen row or column."""
    every = -(-len(names) // 12)
    places = [place for place in range(0, len(names), every) if chosen is None or abs(place - chosen) >= every]
    if chosen is not None:
        places = sorted([*places, chosen])
    return {"tickvals": places, "ticktext": [label(names[place], width=14) for place in places]}
