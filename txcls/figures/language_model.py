"""Figures of language models: ranked tokens, and the surprisal of each token of a text."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    BAR_REST,
    FRAME,
    TOKENS,
    categories,
    label,
    legend_above,
    line_across,
    new_figure,
    percent,
)

SCALES = (0.1, 0.25, 0.5, 1.0)
"""Ends of the axis of token probabilities: among many tokens the best may have only a few per cent."""


def token_bars(
    tokens: Sequence[str],
    probabilities: Sequence[float],
    *,
    other: tuple[int, float],
    filtered: Sequence[float] | None = None,
    true: int | None = None,
) -> go.Figure:
    """Ranked tokens as bars, with the total of all others below; the scale ends at 10, 25, 50 or 100 %.

    Each bar has `customdata = [row, token]`.

    Args:
        tokens: the most probable first.
        probabilities: of those, from the softmax over all tokens.
        other: how many tokens are not listed, and their total probability.
        filtered: probabilities of the same tokens when sampling, 0 for those that are filtered out: slim bars below
            the others.
        true: index of the token in the text, which is framed.
    """
    names = [f"{label(token, width=20)} " for token in tokens]
    rows = np.arange(len(names))
    top = next(scale for scale in SCALES if scale >= min(max(*probabilities, *(filtered or (0.0,))), 1.0))
    figure = _ranked_rows(names, other=other, top=top, two_bars=filtered is not None, marks_true=true is not None)
    shared: dict[str, object] = {
        "orientation": "h",
        "textposition": "outside",
        "cliponaxis": False,
        "customdata": list(zip(rows.tolist(), names, strict=True)),
    }
    figure.add_bar(
        x=list(probabilities),
        y=rows if filtered is None else rows - 0.14,
        width=0.62 if filtered is None else 0.4,
        name="probability",
        marker={"color": BAR, "line": {"width": [4 if row == true else 0 for row in rows], "color": FRAME}},
        text=[percent(value) + (" ◀ in the text" if row == true else "") for row, value in enumerate(probabilities)],
        textfont={"size": 15},
        hovertemplate="%{customdata[1]}: %{x:.3%}<extra></extra>",
        **shared,
    )
    if filtered is not None:
        figure.add_bar(
            x=list(filtered),
            y=rows + 0.22,
            width=0.26,
            constraintext="none",
            name="when sampled",
            marker={"color": FRAME, "line_width": 0},
            text=[percent(value) if value else "filtered out" for value in filtered],
            textfont={"size": 12},
            hovertemplate="%{customdata[1]} when sampled: %{x:.3%}<extra></extra>",
            **shared,
        )
    return figure


def _ranked_rows(
    names: Sequence[str], *, other: tuple[int, float], top: float, two_bars: bool, marks_true: bool
) -> go.Figure:
    """The figure of `token_bars` without bars: a row per name, and the total of all others as text below."""
    n_other, p_other = other
    # No bar for the others: the total of many thousands would dwarf the rest.
    others = {"text": f"{n_other:,} others: {percent(p_other)} in total", "font": {"size": 15}}
    return new_figure(
        height=76 + (50 if two_bars else 42) * (len(names) + 1),
        right=160 if marks_true else 84,
        x={"range": [0, top], "tickformat": ".0%" if top > 0.1 else ".1~%", "nticks": 6, "title": "probability"},
        y={
            "range": [len(names) + 0.5, -0.5],
            "tickvals": np.arange(len(names)),
            "ticktext": names,
            "tickfont": {"size": 17},
            "showgrid": False,
        },
        annotations=[{"x": 0, "y": len(names), "showarrow": False, "xanchor": "left", **others}],
        **(legend_above(y=1.0) if two_bars else {}),
    )


def surprisal_bars(bits: NDArray[np.floating], tokens: Sequence[str], *, mean: float | None) -> go.Figure:
    """The surprisal of each token in bits; a dashed line marks the mean.

    Args:
        bits: T values, NaN where a token was not predicted.
        tokens: T tokens.
        mean: None for no line.
    """
    highest = float(np.nanmax(bits)) if np.isfinite(bits).any() else 1.0
    figure = new_figure(
        height=300,
        x={"ticks": "", **TOKENS},
        y={"range": [0, max(1.05 * highest, 1.0)], "title": "surprisal in bits"},
        shapes=[] if mean is None else [line_across(mean, dash="dash", width=2, color=FRAME)],
    )
    figure.add_bar(
        x=categories(tokens),
        y=np.asarray(bits, dtype=np.float32),
        marker={"color": BAR_REST, "line_width": 0},
        hovertemplate="<b>%{x}</b><br>%{y:.2f} bits<extra></extra>",
    )
    return figure
