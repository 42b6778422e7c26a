"""Line and scatter plots: training, calibration, deletion, class lens, positions, intervals, projected vectors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from txcls.figures.colours import BAR, CLASSES, MARK, OTHER
from txcls.figures.style import (
    DASHES,
    FONT_SIZE,
    PROBABILITY,
    SYMBOLS,
    Settings,
    class_colours,
    class_label,
    colour_limit,
    label,
    legend_above,
    new_figure,
)
from txcls.wording import percentage


def training_curves(history: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Loss and accuracy on training and validation rows over the optimiser steps, with the saved weights marked.

    `history` holds the rows of history.jsonl; missing values are left blank.
    """
    figure = _loss_and_accuracy(0.2)
    steps = [row.get("step", index) for index, row in enumerate(history)]
    best = [index for index, row in enumerate(history) if row.get("best")]
    for column, quantity in enumerate(("loss", "accuracy"), start=1):
        for split, symbol in (("train", "diamond"), ("validation", "circle")):
            _add_curve(
                figure,
                column,
                "training rows" if split == "train" else "validation rows",
                steps,
                [row.get(f"{split}_{quantity}") for row in history],
                legendgroup=split,
                mode="lines+markers",
                marker={"size": 6, "symbol": symbol},
                hovertemplate="step %{x}<br>%{y:.4f}<extra></extra>",
            )
        if best:
            figure.add_scatter(
                x=[steps[best[-1]]],
                y=[history[best[-1]].get(f"validation_{quantity}")],
                mode="markers",
                name="saved weights",
                showlegend=column == 1,
                marker={"size": 15, "symbol": "circle-open", "color": MARK, "line": {"width": 3}},
                hovertemplate="saved weights<br>%{y:.4f}<extra></extra>",
                row=1,
                col=column,
            )
    figure.update_yaxes(tickformat=".3~%", col=2, row=1)
    figure.update_layout(height=360)
    return figure


def _loss_and_accuracy(spacing: float) -> go.Figure:
    """Two empty plots side by side; `spacing` is the gap between them as a fraction of the width."""
    # Names are above the plots, since there is no room between the plots on a phone.
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=spacing, subplot_titles=("loss", "accuracy"))
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_xaxes(title="optimiser step", nticks=5, automargin=True)
    figure.update_yaxes(automargin=True)
    figure.update_layout(
        margin={"l": 8, "r": 8, "t": 8, "b": 8}, font={"size": FONT_SIZE}, dragmode=False, **legend_above(y=1.2)
    )
    return figure


def _add_curve(figure: go.Figure, column: int, name: str, x: Sequence[Any], y: Sequence[Any], **settings: Any) -> None:
    """Add the curve of the training or validation rows to one of the two plots."""
    is_training = name == "training rows"
    figure.add_scatter(
        x=x,
        y=y,
        name=name,
        showlegend=column == 1,
        line={"color": OTHER if is_training else BAR, "width": 2.5, "dash": "dot" if is_training else "solid"},
        row=1,
        col=column,
        **settings,
    )


def reliability_diagram(bins: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Accuracy in each confidence bin, with the diagonal of perfect calibration (Guo et al. 2017).

    `bins` is the "reliability" entry of metrics.json; empty bins are left out.
    """
    filled = [row for row in bins if row["n"]]
    total = sum(row["n"] for row in filled) or 1
    confidence_axis = {**PROBABILITY, "title": "confidence"}
    figure = new_figure(
        height=400, right=24, x=confidence_axis, y={**PROBABILITY, "title": "accuracy"}, **legend_above()
    )
    figure.add_bar(
        x=[(row["low"] + row["high"]) / 2 for row in filled],
        y=[row["n"] / total for row in filled],
        width=[0.94 * (row["high"] - row["low"]) for row in filled],
        name="share of rows",
        marker={"color": "rgba(138, 138, 138, 0.35)", "line_width": 0},
        customdata=[row["n"] for row in filled],
        hovertemplate="%{customdata:,} rows, %{y:.1%} of all<extra></extra>",
    )
    figure.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        name="perfect calibration",
        line={"color": OTHER, "dash": "dash", "width": 2},
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[row["confidence"] for row in filled],
        y=[row["accuracy"] for row in filled],
        mode="lines+markers",
        cliponaxis=False,  # do not clip dots at 100 %
        name="this classifier",
        line={"color": BAR, "width": 2.5},
        marker={"size": [6 + 12 * (row["n"] / total) ** 0.5 for row in filled], "color": BAR},
        customdata=[row["n"] for row in filled],
        hovertemplate="confidence %{x:.1%}, accuracy %{y:.1%}<br>%{customdata:,} rows<extra></extra>",
    )
    return figure


def deletion_lines(
    names: Sequence[str],
    shares: NDArray[np.floating],
    curves: Sequence[NDArray[np.floating]],
    random: NDArray[np.floating],
    *,
    class_name: str,
) -> go.Figure:
    """The probability of a class as words are deleted, one line per method.

    The M `curves` hold probabilities (K,) with fractions `shares` (K,) of the words deleted. For R `random` orders,
    (R, K), a thick grey line shows the mean, and a grey band the range from minimum to maximum.
    """
    figure = new_figure(
        height=500,
        right=28,  # room for half of "100%"
        x={**PROBABILITY, "title": "share of words deleted,<br>highest score first"},
        y={"range": [0, 1.02], "tickformat": ".0%", "title": f"probability of {class_label(class_name)}"},
        hovermode="x unified",
        **legend_above(traceorder="normal"),
    )
    for values, fill in ((random.max(axis=0), None), (random.min(axis=0), "tonexty")):
        figure.add_scatter(
            x=shares, y=values, mode="lines", line={"width": 0}, fill=fill, fillcolor="rgba(128,128,128,0.22)",
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
    figure.add_scatter(
        x=shares,
        y=random.mean(axis=0),
        mode="lines",
        name=f"random ({len(random)} orders)",
        line={"color": OTHER, "width": 4},
        hovertemplate="%{y:.1%}",
    )
    _add_lines(figure, shares, names, curves, hover="%{y:.1%}", mode="lines+markers")
    return figure


def group_lines(
    names: Sequence[str], groups: Sequence[str], accuracies: Sequence[Sequence[float]], *, quantity: str
) -> go.Figure:
    """Accuracy by group of rows, with a line for each of M names; each of the M `accuracies` has a value per group."""
    figure = new_figure(
        height=460,
        x={"type": "category", "title": quantity},
        y={"range": [0, 1.02], "tickformat": ".0%", "title": "accuracy"},
        hovermode="x unified",
        **legend_above(traceorder="normal"),
    )
    _add_lines(figure, groups, names, map(np.array, accuracies), hover="%{y:.1%}", mode="lines+markers")
    return figure


def _add_lines(
    figure: go.Figure,
    x: Sequence[Any] | NDArray[Any],
    names: Sequence[str],
    lines: Iterable[NDArray[np.floating]],
    *,
    hover: str,
    mode: str = "lines",
    colours: Sequence[str] | None = None,
    styles: Sequence[int] | None = None,
) -> None:
    """Add lines that differ in colour, dash and marker.

    `colours` holds the colour of each line, and `styles` the index of its dash and marker; by default in order.
    """
    for index, (name, values) in enumerate(zip(names, lines, strict=True)):
        number = index if styles is None else styles[index]
        colour = CLASSES[index % len(CLASSES)] if colours is None else colours[index]
        style = {"color": colour, "dash": DASHES[number % len(DASHES)], "width": 2.5}
        marker = {"size": 9, "symbol": SYMBOLS[number % len(SYMBOLS)]}
        figure.add_scatter(
            x=x, y=np.asarray(values, dtype=np.float32), name=name, line=style, marker=marker, hovertemplate=hover,
            mode=mode,
        )  # fmt: skip


def lens_lines(states: Sequence[str], classes: Sequence[str], probabilities: NDArray[np.floating]) -> go.Figure:
    """The class lens at each of S states, (S, C): lines for the six classes with the highest maximum."""
    highest = np.argsort(-probabilities.max(axis=0), kind="stable")[:6]
    chosen = sorted(highest.tolist(), key=lambda index: -probabilities[-1, index])
    colours = class_colours(probabilities[-1])
    figure = new_figure(
        height=400,
        x={"type": "category", "title": "after …"},
        y={"range": [-0.02, 1.02], "tickformat": ".0%", "title": "probability"},
        hovermode="x unified",
        **legend_above(),
    )
    _add_lines(
        figure,
        [_short_state(name) for name in states],
        [class_label(classes[index], width=26) for index in chosen],
        probabilities.T[chosen],
        hover="%{y:.1%}",
        mode="lines+markers",
        colours=[colours[index] for index in chosen],
        styles=chosen if len(classes) <= len(CLASSES) else None,
    )
    return figure


def _short_state(name: str) -> str:
    """A state's short name, to fit on a phone: `layer 1: attention` becomes `L1 attn`."""
    for word, short in (
        ("embeddings", "emb."),
        ("layer ", "L"),
        ("attention", "attn"),
        ("feed-forward", "FF"),
        (": ", " "),
    ):
        name = name.replace(word, short)
    return name


def position_curves(
    values: NDArray[np.floating], dimensions: Sequence[int], *, bound: float | None = None
) -> go.Figure:
    """Selected dimensions of position vectors (T, D), over positions.

    The value axis spans -bound … bound; the default is the largest magnitude in `values`.
    """
    limit = 1.08 * colour_limit(values, bound)
    figure = new_figure(
        height=260,
        x={"title": "position", "range": [0, max(len(values) - 1, 1)]},
        y={"title": "value", "range": [-limit, limit]},
        hovermode="x unified",
        **legend_above(),
    )
    names = [f"dimension {dimension}" for dimension in dimensions]
    _add_lines(figure, np.arange(len(values)), names, values.T[list(dimensions)], hover="%{y:.3f}")
    return figure


_OPAQUE: Settings = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 0.9}}}
"""Marker settings with which a click does not fade the other points."""


def token_scatter(
    points: NDArray[np.floating],
    names: Sequence[str],
    text_points: NDArray[np.floating],
    text_names: Sequence[str],
    shares: Sequence[float],
    *,
    ids: Sequence[int],
    text_ids: Sequence[int],
    near: Sequence[int] = (),
) -> go.Figure:
    """The vocabulary as small dots, and the tokens of a text as large dots with their names.

    A click reports the token's id as `customdata`.

    Args:
        points, names, ids: (N, 2) and N entries for the vocabulary.
        text_points, text_names, text_ids: (M, 2) and M entries for the text.
        shares: fraction of the variance along each axis.
        near: ids of vocabulary tokens to label as well.
    """
    figure = _plane(shares, clickmode="event+select")
    small = {"size": 4, "color": OTHER, "opacity": 0.45, "line": {"width": 0}}
    hover = "<b>%{hovertext}</b><extra></extra>"
    _add_points(figure, points, [label(name) for name in names], small, hover="%{text}<extra></extra>",
                name="vocabulary", customdata=list(ids), **_OPAQUE)  # fmt: skip
    if named := [index for index, token_id in enumerate(ids) if token_id in near]:
        blue = {"size": 9, "color": BAR}
        _add_points(figure, points[named], [label(names[n]) for n in named], blue, hover=hover, font_size=14,
                    customdata=[ids[n] for n in named], **_OPAQUE)  # fmt: skip
    outlined = {"size": 10, "color": MARK, "line": {"width": 1, "color": "#FFFFFF"}}
    hover = "<b>%{hovertext}</b>, in this text<extra></extra>"
    _add_points(figure, text_points, [label(name) for name in text_names], outlined, hover=hover, font_size=14,
                name="this text", customdata=list(text_ids), **_OPAQUE)  # fmt: skip
    _leave_out_covered_names(figure, np.concatenate([points, text_points]))
    return figure


PLACES = {
    "top center": (0.0, 1.0),
    "bottom center": (0.0, -1.0),
    "middle right": (1.0, 0.0),
    "middle left": (-1.0, 0.0),
}
"""Plotly's names of the places around a point, and their directions."""
NARROW = 330, 500
"""Width and height in pixels of a plot on a phone; on a wider screen, the points are farther apart."""


def _leave_out_covered_names(figure: go.Figure, points: NDArray[np.floating]) -> None:
    """Move the names of a scatter's points (N, 2) to where they cover no other name; leave out those without room."""
    scale = np.array(NARROW) / np.maximum(np.ptp(points, axis=0), 1e-9)
    drawn: list[tuple[float, float, float]] = []  # x and y of a name's centre, half its width
    for trace in figure.data:
        if trace.mode != "markers+text":
            continue
        places, shown = [], []
        for x, y, name in zip(trace.x * scale[0], trace.y * scale[1], trace.text, strict=True):
            half = 4.0 * len(name) + 2
            at = {place: (x + dx * (half + 8), y + dy * 16, half) for place, (dx, dy) in PLACES.items()}
            free = [place for place, box in at.items() if not any(_overlap(box, other) for other in drawn)]
            places.append(free[0] if free else "top center")
            shown.append(name if free else "")
            if free:
                drawn.append(at[free[0]])
        trace.update(hovertext=trace.text, text=shown, textposition=places)


def _overlap(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return abs(one[0] - other[0]) < one[2] + other[2] and abs(one[1] - other[1]) < 17


def text_scatter(
    points: NDArray[np.floating],
    labels: Sequence[str],
    texts: Sequence[str],
    text_point: Sequence[float],
    text_label: str,
    shares: Sequence[float],
    *,
    classes: Sequence[str],
    colours: Sequence[str],
) -> go.Figure:
    """Texts (N, 2), with colour and symbol by predicted class, and one text as a large star.

    Grey classes have one symbol and one entry in the legend.

    A click reports the text's index as `customdata`, -1 for the star.

    Args:
        labels: N predicted classes.
        texts: the beginnings of N texts, shown on hover.
        text_point, text_label: the point (2,) of the starred text, and its predicted class.
        shares: fraction of the variance along each axis.
        classes, colours: all classes, whose order determines the symbols, and their colours.
    """
    figure = _plane(shares, clickmode="event+select", **legend_above())
    predicted = np.array(labels)
    grey = np.isin(predicted, [name for name, colour in zip(classes, colours, strict=True) if colour == OTHER])
    groups = [("other classes", OTHER, "circle", grey)]  # first, below the coloured points
    for number, (name, colour) in enumerate(zip(classes, colours, strict=True)):
        if colour != OTHER:
            groups.append((label(name, width=30), colour, SYMBOLS[number % len(SYMBOLS)], predicted == name))
    for group, colour, symbol, is_member in groups:
        if not (rows := np.flatnonzero(is_member).tolist()):
            continue
        dots = {"size": 9, "color": colour, "symbol": symbol, "opacity": 0.8, "line": {"width": 0}}
        described = [f"{label(labels[n], width=40)}<br>{label(texts[n], width=70)}" for n in rows]
        _add_points(figure, np.asarray(points)[rows], described, dots, hover="%{text}<extra></extra>",
                    name=group, customdata=rows, legendrank=1001 if is_member is grey else 1000, **_OPAQUE)  # fmt: skip
    star = {"size": 20, "color": MARK, "symbol": "star", "line": {"width": 1.5, "color": "#000000"}}
    hover = f"<b>this text</b>: {label(text_label, width=40)}<extra></extra>"
    _add_points(figure, np.array([text_point]), ["this text"], star, hover=hover, name="this text",
                customdata=[-1], **_OPAQUE)  # fmt: skip
    return figure


def _add_points(
    figure: go.Figure,
    points: NDArray[np.floating],
    text: Sequence[str],
    marker: Settings,
    *,
    hover: str,
    font_size: int = 0,
    **settings: object,
) -> None:
    """Add points (N, 2), with their texts above them at the given font size; without texts if it is 0."""
    with_text: Settings = {"mode": "markers+text", "textposition": "top center", "textfont": {"size": font_size},
                       "cliponaxis": False}  # fmt: skip
    figure.add_scatter(
        x=np.asarray(points[:, 0], dtype=np.float32),
        y=np.asarray(points[:, 1], dtype=np.float32),
        text=list(text),
        marker=marker,
        hovertemplate=hover,
        **(with_text if font_size else {"mode": "markers"}),
        **settings,
    )


def _plane(shares: Sequence[float], **layout: Any) -> go.Figure:
    first, second = (percentage(share, 0) for share in shares)
    return new_figure(
        height=455,
        x={"title": {"text": f"first component: {first} of the variance", "standoff": 8}, "showticklabels": False},
        y={"title": f"second component: {second} of the variance", "showticklabels": False},
        **layout,
    )
