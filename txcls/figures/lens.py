"""Figures of the class lens: probabilities after every state, and what each part adds to a logit."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    DASHES,
    DIVERGING,
    OKABE_ITO,
    SEQUENTIAL,
    TOKENS,
    categories,
    flat_colour_bar,
    label,
    legend_above,
    minus,
    new_figure,
)


def lens_lines(
    states: Sequence[str], classes: Sequence[str], probabilities: NDArray[np.floating], *, n_lines: int = 6
) -> go.Figure:
    """The class head applied to every state: one line per class, for those with the highest probability anywhere.

    Args:
        states: S names, in order.
        classes: C class names.
        probabilities: (S, C).
        n_lines: how many classes to draw.
    """
    chosen = sorted(
        np.argsort(-probabilities.max(axis=0), kind="stable")[:n_lines], key=lambda one: -probabilities[-1, one]
    )
    figure = new_figure(
        height=430,
        x={"type": "category", "tickfont": {"size": 13}, "title": "after …"},
        y={"range": [0, 1.02], "tickformat": ".0%", "title": "probability"},
        hovermode="x unified",
        **legend_above(),
    )
    names = [name.replace(": ", "<br>") for name in states]
    for place, index in enumerate(chosen):
        figure.add_scatter(
            x=names,
            y=probabilities[:, index],
            mode="lines+markers",
            name=label(classes[index], width=26),
            line={"color": OKABE_ITO[place % len(OKABE_ITO)], "dash": DASHES[place % len(DASHES)], "width": 3},
            marker={"size": 9},
            hovertemplate="%{y:.1%}",
        )
    return figure


def token_rows(
    rows: Sequence[str], tokens: Sequence[str], values: NDArray[np.floating], *, title: str, signed: bool, form: str
) -> go.Figure:
    """A number per token and row: norms from 0, or contributions with zero in the middle of the colour scale.

    Args:
        rows: S names, drawn from the top.
        tokens: T tokens.
        values: (S, T).
        title: of the colour bar.
        signed: whether values may be negative.
        form: d3 format of a value on hover (".2f", "+.2f").
    """
    bound = float(np.abs(values).max(initial=0.0)) or 1.0
    figure = new_figure(
        height=int(230 + 34 * len(rows)),
        x={"showgrid": False, **TOKENS},
        y={"autorange": "reversed", "type": "category", "showgrid": False, "tickfont": {"size": 13}},
        coloraxis={
            "colorscale": DIVERGING if signed else SEQUENTIAL,
            "cmin": -bound if signed else 0,
            "cmax": bound,
            "colorbar": flat_colour_bar(title, y=1.01, yanchor="bottom"),
        },
    )
    figure.add_heatmap(
        z=np.asarray(values, dtype=np.float32),
        x=categories(tokens),
        y=list(rows),
        coloraxis="coloraxis",
        xgap=1 if len(tokens) <= 20 else 0,  # on a phone cells get narrow
        ygap=2,
        hovertemplate=f"<b>%{{x}}</b><br>%{{y}}: %{{z:{form}}}<extra></extra>",
    )
    return figure


def contribution_bars(sources: Sequence[str], contributions: NDArray[np.floating], *, title: str) -> go.Figure:
    """What each source adds to a difference of logits: one bar each.

    Args:
        sources: names, in the order of the forward pass.
        contributions: in logits, negative where a source lowers the difference.
        title: of the axis: the difference.
    """
    rows = list(range(len(sources)))
    values = np.asarray(contributions, dtype=float)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    room = 0.35 * (high - low or 1.0)  # for the numbers beside the bars, also on a phone
    figure = new_figure(
        height=90 + 44 * len(sources),
        x={"range": [low, high + room], "title": title},
        y={
            "range": [len(sources) - 0.5, -0.5],
            "tickvals": rows,
            "ticktext": list(sources),
            "showgrid": False,
            "tickfont": {"size": 15},
        },
    )
    figure.add_bar(
        x=values,
        y=rows,
        orientation="h",
        width=0.62,
        marker={"color": [OKABE_ITO[1] if value >= 0 else BAR for value in values], "line_width": 0},
        customdata=list(sources),
        hovertemplate="%{customdata}: %{x:+.3f}<extra></extra>",
    )
    figure.add_scatter(  # right of all bars, since the names are on the left
        x=values.clip(min=0.0),
        y=rows,
        mode="text",
        text=[minus(f" {value + 0.0:+.2f}") for value in values.round(2)],
        textposition="middle right",
        textfont={"size": 16},
        cliponaxis=False,
        hoverinfo="skip",
    )
    return figure
