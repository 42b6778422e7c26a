"""Figures of principal components: tokens and whole texts in the plane of the first two."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import FRAME, OKABE_ITO, Settings, label, legend_above, new_figure
from txcls.wording import percentage

_KEPT: Settings = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 0.9}}}
"""A click fades no points."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star")


def token_scatter(
    points: NDArray[np.floating],
    names: Sequence[str],
    own_points: NDArray[np.floating],
    own_names: Sequence[str],
    shares: Sequence[float],
    *,
    ids: Sequence[int],
    own_ids: Sequence[int],
    near: Sequence[int] = (),
) -> go.Figure:
    """The vocabulary as small dots, and the tokens of a text as large dots with their names.

    A click reports a token's id as `customdata`.

    Args:
        points: N 2, tokens of the vocabulary.
        names: N tokens.
        own_points: M 2, tokens of the text.
        own_names: M tokens.
        shares: of the variance along each axis.
        ids, own_ids: of the tokens.
        near: ids of tokens of the vocabulary that are named too.
    """
    figure = _plane(shares, clickmode="event+select")
    _dots(figure, points, [label(name) for name in names], "vocabulary", OKABE_ITO[7], "circle", size=4, opacity=0.45)
    figure.data[0].update(customdata=list(ids), **_KEPT)
    named = [place for place, one in enumerate(ids) if one in near]
    if named:
        figure.add_scatter(
            x=np.asarray(points[named, 0], dtype=np.float32),
            y=np.asarray(points[named, 1], dtype=np.float32),
            mode="markers+text",
            text=[label(names[place]) for place in named],
            textposition="top center",
            textfont={"size": 14},
            marker={"size": 9, "color": OKABE_ITO[0]},
            customdata=[ids[place] for place in named],
            hovertemplate="<b>%{text}</b><extra></extra>",
            cliponaxis=False,
            **_KEPT,
        )
    figure.add_scatter(
        x=np.asarray(own_points[:, 0], dtype=np.float32),
        y=np.asarray(own_points[:, 1], dtype=np.float32),
        mode="markers+text",
        name="this text",
        text=[label(name) for name in own_names],
        textposition="top center",
        textfont={"size": 14},
        marker={"size": 10, "color": FRAME, "line": {"width": 1, "color": "#FFFFFF"}},
        customdata=list(own_ids),
        hovertemplate="<b>%{text}</b>, in this text<extra></extra>",
        cliponaxis=False,
        **_KEPT,
    )
    return figure


def text_scatter(
    points: NDArray[np.floating],
    labels: Sequence[str],
    texts: Sequence[str],
    own: Sequence[float],
    own_label: str,
    shares: Sequence[float],
    *,
    classes: Sequence[str],
) -> go.Figure:
    """Texts, with colour and symbol by predicted class, and one text as a large star.

    Args:
        points: N 2.
        labels: N predicted classes.
        texts: N beginnings of texts, shown on hover.
        own: the point of the text.
        own_label: its predicted class.
        shares: of the variance along each axis.
        classes: all classes; their order determines colours and symbols.
    """
    figure = _plane(shares, **legend_above())
    winners = np.array(labels)
    for number, name in enumerate(classes):
        of = np.flatnonzero(winners == name)
        if not len(of):
            continue
        colour, symbol = OKABE_ITO[number % 7], SYMBOLS[(number + number // 7) % len(SYMBOLS)]
        said = [f"{label(name, width=40)}<br>{label(texts[n], width=70)}" for n in of.tolist()]
        _dots(figure, np.asarray(points)[of], said, label(name, width=30), colour, symbol, size=9, opacity=0.8)
    figure.add_scatter(
        x=[float(own[0])],
        y=[float(own[1])],
        mode="markers+text",
        name="this text",
        text=["this text"],
        textposition="top center",
        textfont={"size": 16},
        marker={"size": 20, "color": FRAME, "symbol": "star", "line": {"width": 1.5, "color": "#FFFFFF"}},
        hovertemplate=f"<b>this text</b>: {label(own_label, width=40)}<extra></extra>",
        cliponaxis=False,
    )
    return figure


def _dots(
    figure: go.Figure,
    points: NDArray[np.floating],
    said: Sequence[str],
    name: str,
    colour: str,
    symbol: str,
    *,
    size: int,
    opacity: float,
) -> None:
    figure.add_scatter(
        x=np.asarray(points[:, 0], dtype=np.float32),
        y=np.asarray(points[:, 1], dtype=np.float32),
        mode="markers",
        name=name,
        text=list(said),
        marker={"size": size, "color": colour, "symbol": symbol, "opacity": opacity, "line": {"width": 0}},
        hovertemplate="%{text}<extra></extra>",
    )


def _plane(shares: Sequence[float], **layout: Any) -> go.Figure:
    first, second = (percentage(share, 0) for share in shares)
    return new_figure(
        height=620,
        x={"title": f"first component: {first} of the variance", "showticklabels": False},
        y={"title": f"second: {second}", "showticklabels": False},
        **layout,
    )
