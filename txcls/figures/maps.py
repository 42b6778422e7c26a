"""Heat maps: attention patterns, heads, position vectors, patches, confusions."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.colours import MARK, OTHER, SEQUENTIAL
from txcls.figures.style import (
    DIVERGING,
    FONT_SIZE,
    MAX_NAMED,
    Settings,
    categories,
    cell_text,
    colour_bar,
    colour_limit,
    few_columns,
    few_rows,
    fraction_colour_axis,
    frame_cells,
    label,
    new_figure,
    rows_above_names,
    signed_colour_axis,
    token_axis,
)
from txcls.text.formatting import class_title, head_name, start_of, with_sign
from txcls.text.tokens import Token

CELLS: Settings = {"showgrid": False, "ticks": ""}
"""Axis settings for a grid of cells."""


def _add_click_targets(
    figure: go.Figure,
    x: Sequence[float],
    y: Sequence[float],
    customdata: Sequence[tuple[int, int]],
    text: Sequence[str],
) -> None:
    """Add invisible markers at the centres of cells, since plotly reports clicks only on markers.

    A click reports the cell's `customdata`; hovering shows its `text`.
    """
    figure.add_scatter(
        x=x,
        y=y,
        customdata=customdata,
        text=text,
        mode="markers",
        marker={"symbol": "square", "size": 40, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
        hovertemplate="%{text}<extra></extra>",
    )


def _cell_axis(names: Sequence[str], centres: Sequence[float], ends: tuple[float, float], **more: Any) -> Settings:
    """The axis of a clickable grid of cells from end to end, with a name at each centre."""
    ticks = {"range": list(ends), "tickvals": list(centres), "ticktext": list(names)}
    return {**ticks, "fixedrange": True, **CELLS, **more}


SQUARE: Settings = {"scaleanchor": "x", "constrain": "domain", "constraintoward": "top"}
"""Settings of a y axis whose cells are as high as they are wide."""


def _numbers(n: int) -> list[str]:
    return [str(number) for number in range(1, n + 1)]


def _number(name: str, n: int) -> list[str]:
    """The numbers from 1 to n, the first one after a name."""
    return [f"{name} 1", *_numbers(n)[1:]]


def attention_grid(
    patterns: NDArray[np.floating], *, selected: tuple[int, int] | None = None, tags: Sequence[str] = ()
) -> go.Figure:
    """All heads as small maps: one row per layer, one column per head, with the selected (layer, head) framed.

    `patterns` holds attention weights (L, H, T, T), sent as 8-bit integers. A click selects the nearest map
    and reports `customdata = [layer, head]` (from 0). `tags` are short texts below the L × H maps, layer by layer.
    """
    n_layers, n_heads, n_tokens, _ = patterns.shape
    cells = np.rint(np.clip(patterns, 0.0, 1.0) * 255).astype(np.uint8)
    gap = 0.12  # between maps, in map widths
    step, edge = 1 + gap, gap / 2
    row_step = step + 0.25 * bool(tags)
    rows, columns = [n * row_step + 0.5 for n in range(n_layers)], [n * step + 0.5 for n in range(n_heads)]
    figure = new_figure(
        height=int(98 + np.clip(400 / n_heads, 80, 170) * n_layers),
        x=_cell_axis(_number("head", n_heads), columns, (-edge, n_heads * step - edge), side="top", constrain="domain"),
        y=_cell_axis(_number("layer", n_layers), rows, (n_layers * row_step - edge, -edge), **SQUARE),
        coloraxis=fraction_colour_axis(top=255),
        hoverdistance=-1,
        clickmode="event+select",
    )
    heads = list(product(range(n_layers), range(n_heads)))
    for layer, head in heads:
        figure.add_heatmap(
            z=cells[layer, head],
            x0=head * step + 0.5 / n_tokens,
            dx=1 / n_tokens,
            y0=layer * row_step + 0.5 / n_tokens,
            dy=1 / n_tokens,
            coloraxis="coloraxis",
            hoverinfo="skip",
        )
    for (layer, head), tag in zip(heads, tags, strict=False):
        below = {"yanchor": "top", "yshift": -2, "showarrow": False, "font": {"size": 13}}
        figure.add_annotation(x=columns[head], y=rows[layer] + 0.5, text=tag, **below)
    _add_click_targets(
        figure,
        [columns[head] for _, head in heads],
        [rows[layer] for layer, _ in heads],
        heads,
        [f"{head_name(*head)}<br>click to enlarge" for head in heads],
    )
    if selected is not None:
        y, x = selected[0] * row_step, selected[1] * step
        margin, line = gap / 3, {"color": MARK, "width": 4}
        figure.add_shape(type="rect", x0=x - margin, x1=x + 1 + margin, y0=y - margin, y1=y + 1 + margin, line=line)
    return figure


def attention_map(
    pattern: NDArray[np.floating],
    tokens: Sequence[str | Token],
    *,
    elsewhere: NDArray[np.floating] | None = None,
    framed: Iterable[int] = (),
) -> go.Figure:
    """The attention pattern of one head: each row is a query, and the colours are its weights on the keys.

    Args:
        pattern: attention weights (T, T), restricted to the displayed tokens if some are hidden.
        tokens: the T tokens, such as `traced.tokens`, or their display strings.
        elsewhere: (T,) each query's weight on keys that are not shown, drawn as a separate column.
        framed: the keys whose columns have a frame.
    """
    names, n, gap = categories(tokens), len(tokens), int(len(tokens) <= 40)
    axis = {**token_axis(n, all_names=True), "dtick": -(-n // MAX_NAMED), **CELLS}
    every_row = {"tickvals": names} if n <= MAX_NAMED else {}  # with dtick, plotly leaves some out
    figure = new_figure(
        height=max(420, 116 + 16 * min(n, MAX_NAMED)),  # fits a window of 800 pixels
        left=68,
        x={"side": "top", **axis, **few_columns(n)},
        y={**axis, "tickangle": 0, **few_rows(n), **every_row},
        annotations=[rows_above_names("query", "key")],
        coloraxis=fraction_colour_axis(),
    )
    figure.add_heatmap(
        z=np.asarray(pattern, dtype=np.float32),
        x=names,
        y=names,
        coloraxis="coloraxis",
        xgap=gap,
        ygap=gap,
        hovertemplate="<b>%{y}</b> attends to <b>%{x}</b><br>weight %{z:.3f}<extra></extra>",
    )
    for key in framed:
        figure.add_shape(type="rect", x0=key - 0.5, x1=key + 0.5, y0=-0.5, y1=n - 0.5, line={"color": MARK, "width": 3})
    if elsewhere is not None:
        extra_columns = ["\u200b", "<b>elsewhere</b>"]  # the first is a gap
        figure.add_heatmap(
            z=np.stack([np.full(len(names), np.nan), elsewhere], axis=1).astype(np.float32),
            x=extra_columns,
            y=names,
            coloraxis="coloraxis",
            ygap=gap,
            hoverongaps=False,
            hovertemplate="<b>%{y}</b> attends to tokens that are not shown<br>weight %{z:.3f}<extra></extra>",
        )
        # An annotation, since plotly omits some labels on a long axis.
        figure.add_annotation(
            x=extra_columns[1], y=0, yref="paper", yanchor="top", text="elsewhere", showarrow=False, xanchor="right"
        )
    return figure


FEED_FORWARD = -1
"""The head number that stands for a layer's feed-forward block."""
FEED_FORWARD_GAP = 0.4
"""Width of the gap between heads and feed-forward blocks, in cells."""
MAX_WIDE = 8
"""Maximum number of heads per layer for which columns are wide enough for the words "head 1"."""
EFFECT_BOUNDS = (1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100)
"""Ends of colour scales in percentage points: the largest effect, if above 1, fills at least two thirds of one."""


def head_effects_map(
    heads: NDArray[np.floating],
    feed_forward: NDArray[np.floating],
    *,
    title: str,
    quantity: str,
    framed: Sequence[tuple[int, int]] = (),
) -> go.Figure:
    """The effect of each head and feed-forward block in percentage points, with zero in the middle of the colour scale.

    A click on a cell reports `customdata = [layer, head]` (from 0; the head is FEED_FORWARD for the layer's
    feed-forward block).

    Args:
        heads, feed_forward: differences (L, H) and (L,), where 1 means 100 percentage points.
        title: what changes, above the map.
        quantity: what changes, for the text on hover.
        framed: the (layer, head) of each cell to frame.
    """
    n_layers, n_heads = heads.shape
    cells = 100 * np.column_stack([heads, np.full(n_layers, np.nan), feed_forward])  # L H+2: gap before the last column
    largest = np.nanmax(np.abs(cells), initial=0.0)
    bound = next((bound for bound in EFFECT_BOUNDS if largest <= bound), 100)
    centres = [*range(n_heads), n_heads + FEED_FORWARD_GAP]
    figure = new_figure(
        height=int(120 + np.clip(330 / n_layers, 34, 50) * n_layers),
        x=_cell_axis(
            [*(_number("head", n_heads) if n_heads <= MAX_WIDE else _numbers(n_heads)), "feed-<br>forward"],
            centres,
            (-0.5, n_heads + FEED_FORWARD_GAP + 0.5),
            title=title,
            side="top",
        ),
        y=_cell_axis(_numbers(n_layers), range(n_layers), (n_layers - 0.5, -0.5), title="layer"),
        coloraxis={"colorscale": DIVERGING, "cmin": -bound, "cmax": bound, "showscale": False},  # numbers in cells
        hoverdistance=-1,
        clickmode="event+select",
    )
    figure.add_heatmap(
        z=np.asarray(cells, dtype=np.float32),
        x=[*(head - 0.5 for head in range(n_heads + 1)), *(centres[-1] + end for end in (-0.5, 0.5))],
        text=[["" if np.isnan(value) else with_sign(value, 1) for value in row] for row in cells],
        texttemplate="%{text}",
        textfont={"size": 16 if n_heads <= 6 else 13 if n_heads <= 10 else 10},
        coloraxis="coloraxis",
        xgap=3,
        ygap=3,
        hoverinfo="skip",
        hoverongaps=False,
    )
    targets = [(layer, head) for layer in range(n_layers) for head in (*range(n_heads), FEED_FORWARD)]
    names = [head_name(*part) if part[1] != FEED_FORWARD else f"feed-forward {part[0] + 1}" for part in targets]
    effects = np.delete(cells, n_heads, axis=1).ravel()
    _add_click_targets(
        figure,
        [centres[head] for _, head in targets],
        [layer for layer, _ in targets],
        targets,
        [
            f"<b>{name}</b><br>{quantity} changes by {with_sign(effect, 2)} points<br>click to switch"
            for name, effect in zip(names, effects, strict=True)
        ],
    )
    for layer, head in framed:
        column = centres[head]
        figure.add_shape(
            type="rect", x0=column - 0.47, x1=column + 0.47, y0=layer - 0.46, y1=layer + 0.46,
            line={"color": MARK, "width": 5},
        )  # fmt: skip
    return figure


def position_heatmap(
    values: NDArray[np.floating],
    *,
    columns: Literal["dimension", "position"] = "dimension",
    quantity: str = "value",
    bound: float | None = None,
    used: int = 0,
    names: Sequence[str] = (),
) -> go.Figure:
    """A row per position and a column per dimension or position, with zero in the middle of the colour scale.

    Args:
        values: (T, D), or (T, T), with NaN for blank cells.
        bound: the colours span -bound … bound; the default is the largest magnitude in `values`.
        used: number of positions of the current text, to frame.
        names: the names of the rows, which say what is at each position.
    """
    n_rows, n_columns = values.shape
    is_square = columns == "position"
    # Fixed ticks, equal on both axes: if their number followed the size, plotly's margins would not settle.
    ticks = {"dtick": max(5 * round(n_rows / 25), 1), "tickangle": 0} if is_square else {}
    square = {"scaleanchor": "x", "constrain": "domain", "constraintoward": "top", **ticks} if is_square else {}
    colours = signed_colour_axis(colour_limit(values, bound), title=quantity)
    if is_square and np.nanmin(values) >= 0:
        colours |= {"colorscale": SEQUENTIAL, "cmin": float(np.nanmin(values))}
    figure = new_figure(
        height=325 if is_square else max(300, 150 + 17 * len(names)),
        x={"title": columns, "showgrid": False, "range": [-0.5, n_columns - 0.5], "constrain": "domain", **ticks},
        y={"title": "position", "showgrid": False, "range": [n_rows - 0.5, -0.5], **square,
           **({"title": None, "tickvals": list(range(n_rows)), "ticktext": list(map(label, names))} if names else {})},
        coloraxis=colours,
    )  # fmt: skip
    figure.add_heatmap(
        z=np.asarray(values, dtype=np.float32),
        coloraxis="coloraxis",
        ygap=2 * bool(names),
        hovertemplate=f"position %{{y}}, {columns} %{{x}}<br>{quantity} %{{z:.3f}}<extra></extra>",
    )
    # A border, since some cells are nearly the colour of the page.
    border = {"color": OTHER, "width": 1}
    figure.add_shape(type="rect", x0=-0.5, x1=n_columns - 0.5, y0=-0.5, y1=n_rows - 0.5, line=border)
    if used:
        n_framed = n_columns if columns == "dimension" else min(used, n_columns)
        right, down = n_columns / 300, n_rows / 130  # on the edge of the plot, half of a line's width would be cut
        figure.add_shape(
            type="rect", x0=right - 0.5, x1=n_framed - 0.5 - right, y0=down - 0.5, y1=min(used, n_rows) - 0.5 - down,
            line={"color": MARK, "width": 3},
        )  # fmt: skip
    return figure


def patch_map(
    parts: Sequence[str],
    tokens: Sequence[str],
    values: NDArray[np.floating],
    *,
    selected: tuple[int, int] | None,
    numbers: bool = True,
    ids: Sequence[int] | None = None,
) -> go.Figure:
    """The fraction of the logit difference that is transferred when a part is patched at a token.

    A click on a cell reports `customdata = [part, token]` (from 0), with the part's number in `ids` if given.

    Args:
        parts: P names in the order of the forward pass, from the top down.
        tokens: the T tokens as display strings.
        values: (P, T); the colours span -1 to 1.
        selected: (part, token) to frame, if any.
        numbers: whether to show numbers in cells that are wide enough.
        ids: (P,) the number of each part; by default its row.
    """
    n_parts, n_tokens = values.shape
    token_labels = {"side": "top", "tickangle": token_axis(n_tokens)["tickangle"], "ticklabeloverflow": "allow"}
    part_labels = {"tickfont": {"size": FONT_SIZE if n_parts <= 12 else 14}}
    figure = new_figure(
        height=int(140 + np.clip(264 / n_parts, 17, 24) * n_parts),
        x=_cell_axis([label(token) for token in tokens], range(n_tokens), (-0.5, n_tokens - 0.5), **token_labels),
        y=_cell_axis(parts, range(n_parts), (n_parts - 0.5, -0.5), **part_labels),
        coloraxis={**signed_colour_axis(1.0, title=""), "colorbar": colour_bar("share of the difference", below=True)},
        hoverdistance=-1,
        clickmode="event+select",
    )
    figure.add_heatmap(
        z=np.asarray(values, dtype=np.float32),
        text=[[cell_text(value, 2) if abs(value) >= 0.05 else "" for value in row] for row in values],
        texttemplate="%{text}" if numbers and n_tokens <= 24 else None,
        textfont={"size": 11},
        coloraxis="coloraxis",
        xgap=1,
        ygap=1,
        hoverinfo="skip",
    )
    heads = list(product(range(n_parts), range(n_tokens)))
    _add_click_targets(
        figure,
        x=[token for _, token in heads],
        y=[part for part, _ in heads],
        customdata=[(part if ids is None else ids[part], token) for part, token in heads],
        text=[
            f"<b>{parts[part]}</b> at <b>{label(tokens[token])}</b><br>transfers "
            f"{with_sign(float(values[part, token]), 3)} of the difference<br>click to patch"
            for part, token in heads
        ],
    )
    if selected is not None:
        part, token = selected
        frame_cells(figure, (part, part + 1), (token, token + 1), colour=MARK, width=3)
    return figure


def confusion_map(
    classes: Sequence[str],
    counts: NDArray[np.integer[Any]],
    *,
    support: Sequence[int] | None = None,
    framed: tuple[int, int] | None = None,
) -> go.Figure:
    """A confusion matrix: colours are fractions of the true class's rows, numbers are row counts.

    Args:
        classes: names of the C classes shown, in the order of the axes.
        counts: (C, C), number of rows of true class i predicted as class j.
        support: total number of rows of each class, if some were predicted as classes that are not shown; None for the
            row sums of `counts`.
        framed: two classes whose confusions are framed.
    """
    n = len(classes)
    rows = counts.sum(axis=1) if support is None else np.asarray(support)  # C
    shares = counts / np.maximum(rows, 1)[:, None]  # C C
    width = 20 if n <= 60 else 14
    names = categories([start_of(class_title(name), limit=width) for name in classes], width=width + 1)
    has_numbers = n <= 12  # in the cells
    # Names below the map that fit on a phone; others are slanted.
    has_flat_names = n <= 5 and n * max(map(len, classes)) <= 32
    axis = {**CELLS, "type": "category", "tickfont": {"size": FONT_SIZE if n <= 60 else 10}}
    figure = new_figure(
        height=int(np.clip(150 + (40 if has_numbers else 24) * n, 330 if has_flat_names else 430, 1000)),
        x={"title": None if has_flat_names else "predicted class", "tickangle": 0 if has_flat_names else -60, **axis,
           "automargin": not has_flat_names},
        # Plotly leaves names out long before they touch.
        y={"autorange": "reversed", **axis, "dtick": 1 if n <= 35 else None},
        left=90,
        annotations=[rows_above_names("true class")],
        coloraxis=fraction_colour_axis(title="share of true class"),
    )  # fmt: skip
    if has_flat_names:
        # An annotation, since plotly would draw the axis title over horizontal names.
        below = {"xref": "x domain", "yref": "paper", "x": 0.5, "y": 0, "yshift": -40, "showarrow": False}
        figure.update_layout(margin_b=76)
        figure.add_annotation(text="predicted class", yanchor="top", **below)
    figure.add_heatmap(
        z=shares.astype(np.float32),
        x=names,
        y=names,
        customdata=counts.astype(np.int32),
        coloraxis="coloraxis",
        xgap=int(n <= 24),
        ygap=int(n <= 24),
        text=[[f"{count:,}" for count in row] for row in counts] if has_numbers else None,
        texttemplate="%{text}" if has_numbers else None,
        textfont={"size": 19} if n <= 5 else None,
        hovertemplate="<b>%{y}</b> predicted as <b>%{x}</b><br>%{customdata:,} texts, %{z:.1%} of the class"
        "<extra></extra>",
    )
    for row, column in (framed, framed[::-1]) if framed else ():
        frame_cells(figure, (row, row + 1), (column, column + 1), colour=MARK, width=3)
    return figure
