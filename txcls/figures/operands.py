"""A matrix as a heat map, by itself or beside the matrices from which it is computed."""

import textwrap
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.colours import MARK
from txcls.figures.style import (
    COLOUR_BAR,
    DIVERGING,
    MAX_NAMED,
    SEQUENTIAL,
    Quantity,
    Settings,
    categories,
    cell_text,
    colour_limit,
    drawable,
    few_columns,
    fraction_colour_axis,
    frame_cells,
    label,
    new_figure,
    rows_above_names,
    signed_colour_axis,
    token_axis,
)

Used = Literal["row", "column", "cell"]
"""Which numbers of an operand determine a number of the result: its row, its column, or the number in its cell."""
GAP, ABOVE = 0.03, 0.36
"""The gap between two matrices, and the height of the matrix above the result, as fractions of the figure."""
LINE, LINE_PX = 0.11, 32
"""The height of a line of a title: as a fraction if it is below another matrix, in pixels if it is at the top."""
MAX_COLUMN_NAMES = 36
"""Maximum number of columns that all have a name; otherwise, every second or third has one."""
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
    row_height: int = 15,
) -> go.Figure:
    """A matrix as a heat map, with every number on hover; minus infinity is left blank.

    Args:
        values: (R, K) numbers.
        rows, columns: R and K names; None for dimensions, which are numbered from 0.
        row_title, column_title: what a row and a column are.
        quantity: weights and probabilities have a colour scale from 0 to 1, values a diverging scale.
        bound: a diverging scale spans -bound … bound; the default is the largest magnitude in `values`.
        chosen: (row, column) to frame.
        row_height: in pixels; from 24 on, all rows and columns are named in full.
    """
    n_rows, n_columns = values.shape
    width, every = (22, {"dtick": 1}) if row_height >= 24 else (14, {"dtick": 1} if n_rows <= MAX_NAMED else {})
    finite = drawable(values)
    limit = colour_limit(finite, bound)
    colours = signed_colour_axis(limit, title="value") if quantity == "value" else fraction_colour_axis(title=quantity)
    axis = {"showgrid": False, "ticks": ""}
    across_axis = (
        {"range": [-0.5, n_columns - 0.5], **({"dtick": 1} if n_columns <= 10 else {})}
        if columns is None
        else {**token_axis(n_columns, all_names=True), **few_columns(n_columns)}
    )
    if columns is not None and n_columns > MAX_COLUMN_NAMES:
        across_axis["dtick"] = -(-n_columns // MAX_COLUMN_NAMES)
    has_corner = columns is not None  # beside names that stand upright
    figure = new_figure(
        height=int(np.clip(30 + 8 * width + row_height * n_rows, 320, 1290)),
        left=68 if has_corner else 8,
        x={
            "title": None if has_corner else {"text": column_title, "standoff": 8},
            "side": "top",
            **axis,
            **across_axis,
        },
        y={
            "title": None if has_corner else {"text": row_title, "standoff": 12},
            "type": "category",
            "autorange": "reversed",
            **axis,
            **every,
        },
        annotations=[rows_above_names(row_title, column_title)] if has_corner else [],
        coloraxis=colours,
    )
    gap = 1 if n_columns <= 24 else 0  # cells are narrow on a phone
    has_numbers = n_columns <= 10 and values.size <= 160
    across = "%{x}" if columns is not None else f"{column_title} %{{x}}"
    figure.add_heatmap(
        z=finite,
        x=None if columns is None else categories(columns, width=width),
        y=categories(rows, width=width),
        coloraxis="coloraxis",
        xgap=gap,
        ygap=gap,
        text=[[cell_text(value, 3) for value in row] for row in finite] if has_numbers else None,
        texttemplate="%{text}" if has_numbers else None,
        hovertemplate=f"<b>%{{y}}</b>, <b>{label(across, width=40)}</b><br>%{{z:.4f}}<extra></extra>",
        hoverongaps=False,
    )
    if chosen is not None:
        row, column = chosen
        frame_cells(figure, (row, row + 1), (column, column + 1), colour=MARK, width=3)
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
    """A matrix at the lower right, with the operands read by row to its left and the operand read by column above it.

    The rows of the result are aligned with those of the matrices to its left, its columns with those of the matrix
    above. Frames mark the numbers that determine the chosen number.

    Args:
        values: (R, K) numbers, the first trace; minus infinity is left blank.
        result: name of the result.
        operands: name, numbers, and which of them determine the result at (i, j): row i or the number at (i, j) (such
            operands have R rows and are to the left), or column j (at most one operand, with K columns).
        rows, columns, row_title, column_title, quantity, bound, chosen: as in `number_map`.
    """
    left = [operand for operand in operands if operand[2] != "column"]
    above = [operand for operand in operands if operand[2] == "column"][:1]
    n_rows, n_columns = values.shape
    *domains, domain = _domains([matrix.shape[1] for _, matrix, _ in left], n_columns)
    top = 1.0 - ABOVE - LINE if above else 1.0
    title = _lines(result, domain, min_width=21, max_lines=1 if above else 2)  # may be wider than its matrix
    notes = [_title(title, domain, top, bold=True)]
    bar = {**COLOUR_BAR, "len": top, "y": top / 2}
    traces = [_heat_map(values, "x", "y", quantity=quantity, bound=bound, bar=bar)]  # first: it receives clicks
    cells = [("x", "y", n_columns, n_rows, "cell")]
    settings: dict[str, Any] = {}
    n_lines = 0 if above else len(title)
    for n, ((name, matrix, used), matrix_domain) in enumerate(zip(left, domains, strict=True), start=2):
        width = matrix.shape[1]
        settings[f"xaxis{n}"] = {"range": [-0.5, width - 0.5], "domain": matrix_domain, "anchor": "y", **PLAIN}
        traces.append(_heat_map(matrix, f"x{n}", "y"))
        lines = _lines(name, matrix_domain)
        notes.append(_title(lines, matrix_domain, top))
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
    """Frame the inputs of one number in each matrix (x axis, y axis, width, height, use)."""
    for colour, line_width in (("#FFFFFF", 7), (MARK, 4)):  # visible on every colour of the scale
        for x_axis, y_axis, width, height, used in matrices:
            x0, x1 = (-0.5, width - 0.5) if used == "row" else (column - 0.5, column + 0.5)
            y0, y1 = (-0.5, height - 0.5) if used == "column" else (row - 0.5, row + 0.5)
            figure.add_scatter(
                x=[x0, x1, x1, x0, x0],
                y=[y0, y0, y1, y1, y0],
                xaxis=x_axis,
                yaxis=y_axis,
                mode="lines",
                line={"color": colour, "width": line_width},
                hoverinfo="skip",
                cliponaxis=False,
            )


def _domains(operands: Sequence[int], result: int) -> list[tuple[float, float]]:
    """The x-axis intervals of the operands and the result: matrices with more columns are wider, within limits."""
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


def _lines(name: str, domain: tuple[float, float], *, min_width: int = 14, max_lines: int = 2) -> list[str]:
    """A name, wrapped to the width of the matrix below it (but at least `min_width` characters) and truncated.

    About 36 characters fit across the whole figure on a narrow screen.
    """
    limit = max(min_width, int(36 * (domain[1] - domain[0])))
    lines = textwrap.wrap(name, limit, max_lines=max_lines, placeholder=" …", break_on_hyphens=False)
    return [label(line, width=60) for line in lines]


def _title(lines: Sequence[str], domain: tuple[float, float], height: float, *, bold: bool = False) -> dict[str, Any]:
    text = "<br>".join(lines)
    anchor = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "align": "left"}
    return {"text": f"<b>{text}</b>" if bold else text, "x": domain[0], "y": height, "showarrow": False, **anchor}


def _ticks(names: Sequence[str], chosen: int | None) -> dict[str, Any]:
    """At most twelve evenly spaced names, always including the chosen row or column."""
    step = -(-len(names) // 12)
    ticks = [index for index in range(0, len(names), step) if chosen is None or abs(index - chosen) >= step]
    if chosen is not None:
        ticks = sorted([*ticks, chosen])
    return {"tickvals": ticks, "ticktext": [label(names[index], width=14) for index in ticks]}
