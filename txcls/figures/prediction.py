"""Figures of class probabilities: the ranked prediction, and its change when words are shuffled."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    BAR_OTHER,
    BAR_REST,
    FRAME,
    PROBABILITY,
    label,
    legend_above,
    names_over_bars,
    new_figure,
    percent,
)


def probability_bars(
    labels: Sequence[str],
    probabilities: Sequence[float],
    *,
    other: tuple[int, float] = (0, 0.0),
    names_above: bool = False,
) -> go.Figure:
    """Ranked classes as bars on a fixed 0–100 % scale; the first is emphasised.

    Args:
        labels: class names, the most probable first.
        probabilities: of those classes, from the softmax over all classes.
        other: how many classes are left out, and their total probability, drawn as one hatched bar.
        names_above: write each name above its bar rather than beside it, for long names on a phone.
    """
    n_other, p_other = other
    names = [f"{label(name, width=40 if names_above else 28)} " for name in labels]
    values = list(probabilities)
    colours = [BAR] + [BAR_REST] * (len(values) - 1)
    patterns = [""] * len(values)
    if n_other:
        names.append(f"{n_other} other{'s' if n_other > 1 else ''} ")
        values.append(p_other)
        colours.append(BAR_OTHER)
        patterns.append("/")
    rows = list(range(len(values)))
    room = (60 if names_above else 56) if len(values) <= 7 else (50 if names_above else 40)
    figure = class_figure(names, height=64 + room * len(values), size=18, above=names_above, right=84)
    figure.add_bar(
        x=values,
        y=[row + 0.2 for row in rows] if names_above else rows,
        orientation="h",
        width=0.4 if names_above else 0.62,
        marker={
            "color": colours,
            "line_width": 0,
            "pattern": {
                "shape": patterns,
                "fillmode": "overlay",
                "fgcolor": ["#FFFFFF"] * len(values),
                "fgopacity": 0.6,
            },
        },
        text=[percent(value) for value in values],
        textposition="outside",
        textfont={"size": 18},
        cliponaxis=False,
        customdata=names,
        hovertemplate="%{customdata}: %{x:.2%}<extra></extra>",
    )
    return figure


def shuffle_bars(
    classes: Sequence[str],
    original: Sequence[float],
    shuffled: NDArray[np.floating],
    *,
    n_rows: int = 10,
    names_above: bool = False,
) -> go.Figure:
    """Each class's probability for the words in their original order (bar) and for each shuffled order (a dot each).

    Args:
        classes: C class names.
        original: C probabilities of the text as typed.
        shuffled: n C probabilities of the same words in other orders.
        n_rows: how many classes to show: those with the highest probability in either.
        names_above: write each name above its bar rather than beside it.
    """
    before, after = np.asarray(original), np.asarray(shuffled)
    highest = np.maximum(before, after.max(axis=0))
    order = sorted(np.argsort(-highest, kind="stable")[:n_rows], key=lambda index: -before[index])
    rows = np.arange(len(order))
    places, width = (rows + 0.2, 0.4) if names_above else (rows, 0.62)
    names = [f"{label(classes[index], width=40 if names_above else 28)} " for index in order]
    figure = class_figure(
        names, height=110 + 56 * len(order), size=16, above=names_above, top=1.02, **legend_above(y=1.0)
    )
    figure.add_bar(
        x=before[order],
        y=places,
        orientation="h",
        width=width,
        name="original order",
        marker={"color": BAR_REST, "line_width": 0},
        customdata=names,
        hovertemplate="%{customdata}, as typed: %{x:.2%}<extra></extra>",
    )
    n = len(after)
    spread = ((np.arange(n) * 0.618034) % 1.0 - 0.5) * 0.8 * width  # golden ratio: even, and the same every time
    figure.add_scatter(
        x=after[:, order].T.ravel(),
        y=(places[:, None] + spread[None, :]).ravel(),
        mode="markers",
        name=f"{n} shuffled orders",
        marker={"color": FRAME, "size": 9, "symbol": "circle-open", "line": {"width": 2}},
        customdata=np.repeat(names, n),
        hovertemplate="%{customdata}, shuffled: %{x:.2%}<extra></extra>",
        cliponaxis=False,
    )
    return figure


def class_figure(
    names: Sequence[str], *, height: int, size: int, above: bool, right: int = 8, top: float = 1.0, **layout: Any
) -> go.Figure:
    """A figure without data: probabilities on the x axis, and one row per class, the first at the top.

    Args:
        names: of the classes.
        height: in pixels.
        size: font size of the names beside the rows.
        above: write each name above its bar, whose centre is then at 0.2, 1.2, … of the reversed axis.
        right: right margin in pixels; 84 leaves room for a percentage beside a full bar.
        top: end of the axis of probabilities, beyond 1 for round marks.
        layout: further settings, with plotly's names.
    """
    return new_figure(
        height=height,
        left=20 if above else 8,  # room for half of "0%"
        right=right,
        x={**PROBABILITY, "range": [0, top]},
        y={
            "range": [len(names) - 0.5, -0.5],
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "tickfont": {"size": size},
            "showgrid": False,
            "showticklabels": not above,
        },
        annotations=names_over_bars(names, by=0.22) if above else [],
        **layout,
    )
