"""Charts on a page, with descriptions, and the window of tokens that a chart shows."""

from collections.abc import Callable, Sequence
from typing import Literal

import plotly.graph_objects as go
import streamlit as st

from txcls.app.shell import lecture, view_state
from txcls.figures import darken

MAX_TOKENS = 50
"""Maximum number of tokens drawn at once; for longer texts, a slider moves a window over them."""


def window(n_tokens: int, *, key: str, holding: int = 0) -> slice:
    """The tokens to draw: all, or a window of `MAX_TOKENS` that a slider moves, at first around the token `holding`."""
    if n_tokens <= MAX_TOKENS:
        return slice(0, n_tokens)
    first = st.slider(
        f"First token shown: {MAX_TOKENS} of this text's {n_tokens} at a time",
        1,
        n_tokens - MAX_TOKENS + 1,
        max(1, holding + 2 - MAX_TOKENS),
        key=f"{key}_{n_tokens}",
    )
    return slice(first - 1, first - 1 + MAX_TOKENS)


def chart(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    file_prefix: str = "",
    on_select: Callable[[], None] | Literal["ignore"] = "ignore",
    grows: bool = False,
) -> None:
    """Draw a figure and its description for screen readers; in lecture mode it fills the rest of its slide.

    Args:
        figure: from `txcls.figures`.
        key: key of the element: `chart_` and a name, which is also the end of the names of saved files.
        alt: the description; its first clause names the chart in the menu that saves it.
        file_prefix: the start of the names of saved files; the default is the view's checkpoint.
        on_select: called when a point is clicked.
        grows: whether the chart grows with the height of the window; its own height is the minimum.
    """
    large = lecture.is_on()
    if st.context.theme.type == "dark":
        darken(figure)
    file_name = f"{file_prefix or view_state.shown_view().checkpoint}-{key.removeprefix('chart_')}"
    fills = grows and not large
    place = st.container(height=int(figure.layout.height), border=False, key=f"grows_{key}") if fills else st
    if width := _width(figure):
        place = place.container(height="stretch" if large or fills else "content", key=f"{width}_{key}")
    place.plotly_chart(
        lecture.enlarge(figure) if large else figure,
        key=key,
        height="stretch" if large or fills else "content",
        on_select=on_select,
        selection_mode="points",
        alt=alt,
        config={
            "displaylogo": False,
            "scrollZoom": False,
            "doubleClick": False if on_select != "ignore" else "reset",
            "modeBarButtonsToRemove": [
                f"{name}2d" for name in ("select", "lasso", "zoom", "pan", "autoScale", "zoomIn", "zoomOut")
            ],
            "toImageButtonOptions": {"format": "png", "filename": file_name, "scale": 2},
        },
    )


def _width(figure: go.Figure) -> str:
    """The start of a container's key, for the style sheet: `wide` for maps and arcs of at least 23 named columns,
    `wider` for 33. Selectors that count the names in the browser would double the time of every change of a page."""
    axes = list(figure.select_xaxes())
    if len(axes) < 2 and not any(trace.type == "heatmap" for trace in figure.data):
        return ""
    across = [trace.x for trace in figure.data if trace.x is not None and len(trace.x)]
    n = max((len(set(names)) for names in across if isinstance(names[0], str)), default=0)
    named = max(len(axis.tickvals or ()) or n // int(axis.dtick or n + 1) for axis in axes)
    return "wider" if named >= 33 else "wide" if named >= 23 else ""


def has_long_names(classes: Sequence[str]) -> bool:
    """Whether class names are too long to fit beside their bars on a phone."""
    return max(map(len, classes), default=0) > 12
