"""Two versions of a text side by side: their class probabilities, and what each word does in each."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.prediction import class_axis
from txcls.figures.style import BAR_REST, FRAME, OKABE_ITO, categories, label, new_figure, percent

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
        n_rows: how many classes to show, those with the highest probability in either.
        names_above: write each name above its bars rather than beside them.
    """
    old, new = np.asarray(before), np.asarray(after)
    order = sorted(np.argsort(-np.maximum(old, new), kind="stable")[:n_rows], key=lambda index: -old[index])
    rows = np.arange(len(order))
    names = [f"{label(classes[index], width=40 if names_above else 28)} " for index in order]
    figure = new_figure(height=110 + (76 if names_above else 62) * len(order))
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
    figure.update_layout(
        barmode="overlay",
        margin_r=84,
        showlegend=True,
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    )
    figure.update_xaxes(range=[0, 1], tickvals=[0, 0.25, 0.5, 0.75, 1], tickformat=".0%", title="probability")
    class_axis(figure, names, size=16, names_above=names_above)
    return figure


def compared_effects(
    names: Sequence[str], before: NDArray[np.floating], after: NDArray[np.floating], *, of: str
) -> go.Figure:
    """What each word adds to the probability of a class, before and after, word beside word.

    Args:
        names: N words, changed ones as "old → new".
        before: N effects in the text as typed; NaN where there is no such word.
        after: N effects in the changed text.
        of: the class.
    """
    figure = new_figure(height=340)
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
    finite = np.abs(np.concatenate([before, after]))
    limit = 1.1 * max(float(np.nanmax(finite, initial=0.0)), 0.01)
    figure.update_layout(
        barmode="group", showlegend=True, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
    )
    figure.add_hline(y=0, line={"width": 1, "color": FRAME})
    figure.update_xaxes(type="category", tickangle=-60, tickfont={"size": 13})
    figure.update_yaxes(range=[-limit, limit], title=f"for {label(of)}")
    return figure
