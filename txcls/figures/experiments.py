"""Figures of experiments on one text: ablation, attribution methods and their deletion curves, the class lens."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    BAR_OTHER,
    BAR_REST,
    DASHES,
    DIVERGING,
    OKABE_ITO,
    PROBABILITY,
    SEQUENTIAL,
    TOKENS,
    categories,
    flat_colour_bar,
    label,
    legend_above,
    minus,
    names_over_bars,
    new_figure,
    percent,
)

Numbers = NDArray[np.floating]


def moved_bars(
    classes: Sequence[str], before: Sequence[float], after: Sequence[float], *, n_rows: int = 6
) -> go.Figure:
    """Each class's probability before and after a change, on a fixed 0–100 % scale.

    Args:
        classes: C class names.
        before: C probabilities of the model as it is.
        after: C probabilities of the changed one.
        n_rows: how many classes to show, those with the highest probability in either, in the order of before.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    order = sorted(np.argsort(-np.maximum(old, new), kind="stable")[:n_rows], key=lambda index: -old[index])
    names = [label(classes[index], width=28) for index in order]
    rows = np.arange(len(order))
    figure = new_figure(
        height=96 + 84 * len(order),
        left=20,
        right=84,
        x=PROBABILITY,
        y={"range": [len(order) - 0.5, -0.65], "showticklabels": False, "showgrid": False},
        annotations=names_over_bars(names, by=0.38),
        **legend_above(y=1.0, traceorder="normal"),
    )
    for name, values, offset, width, colour in (
        ("as trained", old, -0.1, 0.2, BAR_REST),
        ("changed", new, 0.2, 0.36, BAR),
    ):
        figure.add_bar(
            x=values[order],
            y=rows + offset,
            orientation="h",
            width=width,
            name=name,
            marker={"color": colour, "line_width": 0},
            text=[percent(value) for value in values[order]],
            textposition="outside",
            textfont={"size": 17 if name == "changed" else 12},
            cliponaxis=False,
            customdata=names,
            hovertemplate=f"%{{customdata}}, {name}: %{{x:.2%}}<extra></extra>",
        )
    return figure


def correlation_map(names: Sequence[str], correlations: Numbers) -> go.Figure:
    """Rank correlations of every two methods, from -1 to 1, with the numbers in the cells.

    Args:
        names: M methods.
        correlations: (M, M); NaN where there is none, drawn as a gap.
    """
    n = len(names)
    written = [["–" if np.isnan(one) else minus(f"{one:.2f}") for one in row] for row in correlations]
    axis = {"tickvals": list(range(n)), "showgrid": False, "ticks": "", "tickfont": {"size": 13}}
    figure = new_figure(
        height=560,
        x={"side": "top", "tickangle": -45, "ticktext": list(names), **axis},
        y={"autorange": "reversed", "ticktext": [name.replace(" ", "<br>", 1) for name in names], **axis},
        coloraxis={
            "colorscale": DIVERGING,
            "cmin": -1,
            "cmax": 1,
            "colorbar": flat_colour_bar("rank correlation", y=-0.05, yanchor="top"),
        },
    )
    figure.add_heatmap(
        z=np.asarray(correlations, dtype=np.float32),
        text=written,
        texttemplate="%{text}",
        textfont={"size": 15},
        coloraxis="coloraxis",
        xgap=2,
        ygap=2,
        customdata=[[f"{one}<br>{other}" for other in names] for one in names],
        hovertemplate="%{customdata}<br>rank correlation %{z:.3f}<extra></extra>",
    )
    return figure


def deletion_lines(
    names: Sequence[str], shares: Numbers, curves: Sequence[Numbers], random: Numbers, *, winner: str
) -> go.Figure:
    """The winner's probability while words are deleted, one line per method; the random orders as a grey band.

    Args:
        names: M methods.
        shares: (K,) of the words that are deleted.
        curves: M of (K,) probabilities.
        random: (R, K) probabilities of random orders: lowest, mean and highest are drawn.
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


def lens_lines(states: Sequence[str], classes: Sequence[str], probabilities: Numbers, *, n_lines: int = 6) -> go.Figure:
    """The class head read after every state: one line per class, those that get highest anywhere.

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
    rows: Sequence[str], tokens: Sequence[str], values: Numbers, *, title: str, signed: bool, form: str
) -> go.Figure:
    """A number for each token in each row: lengths from 0 up, or shares with zero in the middle.

    Args:
        rows: S names, drawn from the top.
        tokens: T tokens.
        values: (S, T).
        title: of the colour bar.
        signed: whether values may be negative.
        form: how to write a value on hover, as a d3 format (".2f", ".0%").
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
            "colorbar": flat_colour_bar(title, y=1.01, yanchor="bottom", tickformat=form if form.endswith("%") else ""),
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


def share_bars(sources: Sequence[str], shares: Numbers) -> go.Figure:
    """How much of the last state each source wrote: one bar each, which add up to 100 %.

    Args:
        sources: names, in the order in which they write.
        shares: of the whole, negative where a source points against what came out.
    """
    rows = list(range(len(sources)))
    values = np.asarray(shares, dtype=float)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    room = 0.35 * (high - low or 1.0)  # for the numbers beside the bars, on a phone as well
    figure = new_figure(
        height=90 + 44 * len(sources),
        x={"range": [low, high + room], "tickformat": ".0%", "title": "share of the last state"},
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
        marker={"color": [BAR if value >= 0 else OKABE_ITO[1] for value in values], "line_width": 0},
        customdata=list(sources),
        hovertemplate="%{customdata}: %{x:.2%}<extra></extra>",
    )
    figure.add_scatter(  # right of the bars, those to the left too: there the names are
        x=values.clip(min=0.0),
        y=rows,
        mode="text",
        text=[minus(f" {value + 0.0:.1%}").replace("%", " %") for value in values.round(3)],
        textposition="middle right",
        textfont={"size": 16},
        cliponaxis=False,
        hoverinfo="skip",
    )
    return figure


def query_key_bars(products: Numbers) -> go.Figure:
    """What each dimension adds to a score: query times key over sqrt(E).

    Args:
        products: (E,), which add up to the score.
    """
    figure = new_figure(
        height=300, x={"title": "dimension of the head"}, y={"title": "query × key / √E", "zeroline": True}
    )
    values = np.asarray(products, dtype=float)
    figure.add_bar(
        x=list(range(len(values))),
        y=values,
        marker={"color": [OKABE_ITO[1] if value >= 0 else OKABE_ITO[0] for value in values], "line_width": 0},
        hovertemplate="dimension %{x}: %{y:+.3f}<extra></extra>",
    )
    return figure
