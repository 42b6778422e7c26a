"""Figures of class probabilities: the ranked prediction, and how it moves when words are shuffled."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import BAR, BAR_OTHER, BAR_REST, FRAME, label, new_figure, percent


def probability_bars(
    labels: Sequence[str],
    probabilities: Sequence[float],
    *,
    other: tuple[int, float] = (0, 0.0),
    names_above: bool = False,
) -> go.Figure:
    """Ranked classes as bars on a fixed 0–100 % scale; the first is emphasised.

    Args:
        labels: class names, best first.
        probabilities: of those classes, from the softmax over all classes.
        other: how many classes are left out, and their probability together; drawn as one hatched bar.
        names_above: write each name above its bar rather than beside it: long ones leave no room for bars on a phone.
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
    figure = new_figure(height=64 + room * len(values))
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
    figure.update_layout(margin_r=84)  # room for a percentage beside a full bar
    figure.update_xaxes(range=[0, 1], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%", title="probability")
    class_axis(figure, names, size=18, names_above=names_above)
    return figure


def shuffle_bars(
    classes: Sequence[str],
    original: Sequence[float],
    shuffled: NDArray[np.floating],
    *,
    n_rows: int = 10,
    names_above: bool = False,
) -> go.Figure:
    """Each class's probability for the words in their order (bar) and for every shuffled order (one dot each).

    Args:
        classes: C class names.
        original: C probabilities of the text as typed.
        shuffled: n C probabilities of the same words in other orders.
        n_rows: how many classes to show, those with the highest probability in either.
        names_above: write each name above its bar rather than beside it.
    """
    before, after = np.asarray(original), np.asarray(shuffled)
    highest = np.maximum(before, after.max(axis=0))
    order = sorted(np.argsort(-highest, kind="stable")[:n_rows], key=lambda index: -before[index])
    rows = np.arange(len(order))
    places, width = (rows + 0.2, 0.4) if names_above else (rows, 0.62)
    names = [f"{label(classes[index], width=40 if names_above else 28)} " for index in order]
    figure = new_figure(height=110 + 56 * len(order))
    figure.add_bar(
        x=before[order],
        y=places,
        orientation="h",
        width=width,
        name="words in their order",
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
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0})
    figure.update_xaxes(range=[0, 1.02], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%", title="probability")
    class_axis(figure, names, size=16, names_above=names_above)
    return figure


def class_axis(figure: go.Figure, names: Sequence[str], *, size: int, names_above: bool) -> None:
    """One row per class, the first on top: its name beside its bar in this size, or above it."""
    figure.update_yaxes(
        range=[len(names) - 0.5, -0.5],
        tickvals=np.arange(len(names)),
        ticktext=names,
        tickfont={"size": size},
        showgrid=False,
        showticklabels=not names_above,
    )
    if names_above:
        _write_above(figure, names)


def _write_above(figure: go.Figure, names: Sequence[str]) -> None:
    """The names of bars that lie at 0.2, 1.2, … on a reversed axis."""
    figure.update_layout(margin_l=20)  # room for half of "0%"
    for row, name in enumerate(names):
        figure.add_annotation(
            x=0, y=row - 0.22, text=name, showarrow=False, xanchor="left", xshift=-2, font={"size": 17}
        )
