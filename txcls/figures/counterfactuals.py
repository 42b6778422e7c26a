"""Figures of two versions of a text: their class probabilities, and the effect of each word in each."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.prediction import class_figure
from txcls.figures.style import (
    BAR_REST,
    FRAME,
    OKABE_ITO,
    TOKENS,
    categories,
    label,
    legend_above,
    line_across,
    new_figure,
    percent,
)

BEFORE, AFTER = BAR_REST, OKABE_ITO[1]


def compared_bars(
    classes: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    n_rows: int = 6,
    names_above: bool = False,
) -> go.Figure:
    """Each class's probability before and after, on a fixed 0–100 % scale.

    Args:
        classes: C class names.
        before: C probabilities of the text as typed.
        after: C probabilities of the changed text.
        n_rows: how many classes to show: those with the highest probability in either.
        names_above: write each name above its bars rather than beside them.
    """
    old, new = np.asarray(before), np.asarray(after)
    order = sorted(np.argsort(-np.maximum(old, new), kind="stable")[:n_rows], key=lambda index: -old[index])
    rows = np.arange(len(order))
    names = [f"{label(classes[index], width=40 if names_above else 28)} " for index in order]
    figure = class_figure(
        names,
        height=110 + (76 if names_above else 62) * len(order),
        size=16,
        above=names_above,
        right=84,
        barmode="overlay",
        **legend_above(y=1.0),
    )
    width, middle = (0.27, 0.18) if names_above else (0.36, 0.0)
    for values, offset, name, colour, pattern in (
        (old, -width / 2, "as typed", BEFORE, ""),
        (new, width / 2, "changed", AFTER, "/"),
    ):
        figure.add_bar(
            x=values[order],
            y=rows + middle + offset,
            orientation="h",
            width=0.9 * width,
            name=name,
            marker={
                "color": colour,
                "line_width": 0,
                "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "#FFFFFF", "fgopacity": 0.5},
            },
            text=[percent(value) for value in values[order]],
            textposition="outside",
            textfont={"size": 15},
            cliponaxis=False,
            customdata=names,
            hovertemplate=f"%{{customdata}}, {name}: %{{x:.2%}}<extra></extra>",
        )
    return figure


def compared_effects(
    names: Sequence[str], before: NDArray[np.floating], after: NDArray[np.floating], *, of: str
) -> go.Figure:
    """The effect of each word on the probability of a class, before and after, side by side.

    Args:
        names: N words, changed ones as "old → new".
        before: N effects in the text as typed; NaN if the word is not in it.
        after: N effects in the changed text.
        of: the class.
    """
    finite = np.abs(np.concatenate([before, after]))
    limit = 1.1 * max(float(np.nanmax(finite, initial=0.0)), 0.01)
    figure = new_figure(
        height=340,
        x=TOKENS,
        y={"range": [-limit, limit], "title": f"for {label(of)}"},
        shapes=[line_across(0, width=1, color=FRAME)],
        barmode="group",
        **legend_above(),
    )
    places = categories(names)
    for values, name, colour, pattern in ((before, "as typed", BEFORE, ""), (after, "changed", AFTER, "/")):
        figure.add_bar(
            x=places,
            y=np.where(np.isfinite(values), values, np.nan).astype(np.float32),
            name=name,
            marker={
                "color": colour,
                "line_width": 0,
                "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": "#FFFFFF", "fgopacity": 0.5},
            },
            hovertemplate=f"<b>%{{x}}</b>, {name}<br>%{{y:+.4f}}<extra></extra>",
        )
    return figure
