"""Figures of attributions: what two methods have in common, and deletion curves."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR_OTHER,
    DASHES,
    OKABE_ITO,
    SEQUENTIAL,
    flat_colour_bar,
    label,
    legend_above,
    new_figure,
)


def overlap_map(names: Sequence[str], overlaps: NDArray[np.floating]) -> go.Figure:
    """Share of the strongest words that every two methods have in common, with the numbers in the cells.

    Args:
        names: M methods.
        overlaps: (M, M), from 0 to 1; NaN is drawn as a gap.
    """
    n = len(names)
    written = [["–" if np.isnan(one) else f"{one:.2f}" for one in row] for row in overlaps]
    axis = {"tickvals": list(range(n)), "showgrid": False, "ticks": "", "tickfont": {"size": 13}}
    figure = new_figure(
        height=560,
        x={"side": "top", "tickangle": -45, "ticktext": list(names), **axis},
        y={"autorange": "reversed", "ticktext": [name.replace(" ", "<br>", 1) for name in names], **axis},
        coloraxis={
            "colorscale": SEQUENTIAL,
            "cmin": 0,
            "cmax": 1,
            "colorbar": flat_colour_bar("strongest words in common", y=-0.05, yanchor="top", tickformat=".0%"),
        },
    )
    figure.add_heatmap(
        z=np.asarray(overlaps, dtype=np.float32),
        text=written,
        texttemplate="%{text}",
        textfont={"size": 15},
        coloraxis="coloraxis",
        xgap=2,
        ygap=2,
        customdata=[[f"{one}<br>{other}" for other in names] for one in names],
        hovertemplate="%{customdata}<br>strongest words in common: %{z:.0%}<extra></extra>",
    )
    return figure


def deletion_lines(
    names: Sequence[str],
    shares: NDArray[np.floating],
    curves: Sequence[NDArray[np.floating]],
    random: NDArray[np.floating],
    *,
    winner: str,
) -> go.Figure:
    """The winner's probability while words are deleted, one line per method; random orders as a grey band.

    Args:
        names: M methods.
        shares: (K,) share of the words that are deleted.
        curves: M of (K,) probabilities.
        random: (R, K) probabilities of random orders, of which lowest, mean and highest are drawn.
        winner: the class.
    """
    figure = new_figure(
        height=500,
        x={"range": [0, 1], "tickformat": ".0%", "title": "share of words deleted,<br>highest score first"},
        y={"range": [0, 1.02], "tickformat": ".0%", "title": f"probability of {label(winner)}"},
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
        line={"color": BAR_OTHER, "width": 3, "dash": "dot"},
        hovertemplate="%{y:.1%}",
    )
    for place, (name, values) in enumerate(zip(names, curves, strict=True)):
        figure.add_scatter(
            x=shares,
            y=values,
            mode="lines",
            name=name,
            line={"color": OKABE_ITO[place % len(OKABE_ITO)], "dash": DASHES[place % len(DASHES)], "width": 2.5},
            hovertemplate="%{y:.1%}",
        )
    return figure
