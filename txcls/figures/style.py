"""Shared by all figures: accessible colours for both themes, axes, and escaping of tokens."""

import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures import colours
from txcls.text.formatting import bounded_percentage, class_title, start_of
from txcls.text.tokens import Token

SEQUENTIAL = tuple((index**2 / 81, colour) for index, colour in enumerate(colours.SEQUENTIAL))
"""The sequential scale, with more contrast among small values, since most weights in a long text are small."""
DIVERGING, DIVERGING_ON_DARK = (
    tuple((index / 4, colour) for index, colour in enumerate(scale))
    for scale in (colours.DIVERGING, colours.DIVERGING_ON_DARK)
)
_LIGHTER = re.compile("|".join(colours.ON_DARK))

FONT_SIZE = 15
"""Size of names, numbers and legends in pixels; style.css makes the names on phones smaller."""

Quantity = Literal["value", "weight", "probability"]
"""Kinds of numbers: weights and probabilities have a colour scale from 0 to 1, values a diverging scale."""

Settings = Mapping[str, Any]
"""Some of plotly's settings, by name."""

PROBABILITY: Settings = {
    "range": [0, 1],
    "tickvals": [0, 0.25, 0.5, 0.75, 1],
    "tickformat": ".0%",
    "title": "probability",
}
"""An axis of probabilities, always from 0 to 1 to make figures comparable."""

MAX_NAMED = 22
"""Maximum number of tokens that all have a name, even on a phone; otherwise, plotly names as many as fit."""


def token_axis(n: int, *, all_names: bool = False) -> Settings:
    """Settings of an axis of n tokens, named by `categories`.

    With `all_names`, each name is vertical, over its own column; style.css widens these charts if names would touch.
    """
    every = {"dtick": 1} if n <= MAX_NAMED or all_names else {}
    return {"type": "category", "tickangle": -60 if n <= 12 and not all_names else -90, **every}


def class_colours(probabilities: Sequence[float] | NDArray[np.floating]) -> list[str]:
    """The colour of each of C classes: fixed if there are at least C colours.

    With more classes than colours, the most probable classes get the first colours in order, and the others are grey.
    txcls/web/picture/colour_scales.js does the same in the browser.
    """
    n = len(probabilities)
    if n <= len(colours.CLASSES):
        return list(colours.CLASSES[:n])
    chosen = [colours.OTHER] * n
    for rank, index in enumerate(np.argsort(-np.asarray(probabilities), kind="stable")[: colours.N_RANKED].tolist()):
        chosen[index] = colours.CLASSES[rank]
    return chosen


def visible(text: str) -> str:
    """The text with invisible and invalid characters replaced by visible ones that JSON and UTF-8 can encode.

    Line breaks become ¶, other control characters their Unicode pictures, and lone surrogates and private-use
    characters U+FFFD.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text.replace("\r\n", "\n")))


def visible_lines(text: str) -> str:
    """Like `visible`, but keeps line breaks."""
    return "\n".join(map(visible, text.replace("\r\n", "\n").split("\n")))


def _visible_character(character: str) -> str:
    code = ord(character)
    if character == "\n":
        return " ¶ "
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    category = unicodedata.category(character)
    if category in ("Cs", "Co", "Cn"):
        return "\N{REPLACEMENT CHARACTER}"
    return "·" if category in ("Cc", "Cf", "Zl", "Zp") and code != 0x200D else character


def label(text: str, *, width: int = 18) -> str:
    """A token or class name for a figure: visible, truncated to `width` characters, with plotly's markup escaped."""
    text = visible(text)
    if len(text) > width:
        text = text[: width - 1] + "…"
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        text = f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def class_label(name: str, *, width: int = 28) -> str:
    """A class name for a figure: with spaces instead of underscores, shortened at the end of a word."""
    return label(start_of(class_title(name), limit=width), width=width + 1)


def categories(tokens: Sequence[str | Token], *, width: int = 14) -> list[str]:
    """One axis category per token; zero-width characters make repeated tokens distinct."""
    digits = str.maketrans("01", "\u200b\u200c")
    names = [token.label if isinstance(token, Token) else token for token in tokens]
    return [label(name, width=width) + f"{index:b}".translate(digits) for index, name in enumerate(names)]


MIN_CELLS = 6
"""Minimum number of rows and columns for which a map has room; otherwise, a one-word text would be one huge cell."""


def few_columns(n: int) -> Settings:
    """Settings of a category axis of n columns, with room for at least `MIN_CELLS`."""
    return {"range": [-0.5, MIN_CELLS - 0.5]} if n < MIN_CELLS else {}


def few_rows(n: int) -> Settings:
    """Settings of a category axis of n rows, from the top, with room for at least `MIN_CELLS`."""
    return {"range": [MIN_CELLS - 0.5, -0.5]} if n < MIN_CELLS else {"autorange": "reversed"}


def drawable(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """The numbers in single precision, with non-finite values as NaN, which plotly leaves blank."""
    return np.where(np.isfinite(values), values, np.nan).astype(np.float32)


def colour_limit(values: NDArray[np.floating], bound: float | None) -> float:
    """The bound of a diverging colour scale: `bound`, or the largest magnitude; 1 if all values are zero or NaN."""
    return bound or float(np.nanmax(np.abs(values), initial=0.0)) or 1.0


def percent(share: float) -> str:
    """A probability as formatted by `bounded_percentage`, escaped for HTML."""
    return html.escape(bounded_percentage(share))


def minus(formatted: str) -> str:
    """A formatted number with its hyphen replaced by a minus sign."""
    return formatted.replace("-", "−")


def cell_text(value: float, digits: int) -> str:
    """A number in a cell with `digits` decimals and a true minus sign; blank for NaN, never −0."""
    return "" if np.isnan(value) else minus(f"{round(float(value), digits) + 0.0:.{digits}f}")


COLOUR_BAR: Settings = {"thickness": 12, "xpad": 4, "outlinewidth": 0, "tickfont": {"size": FONT_SIZE}}


def fraction_colour_axis(*, top: int = 1, title: str = "weight") -> dict[str, object]:
    """A colour axis of weights or probabilities from 0 to 1, which are sent to plotly as numbers from 0 to `top`."""
    ticks = [0, 0.5, 1]
    return {
        "colorscale": SEQUENTIAL,
        "cmin": 0,
        "cmax": top,
        "colorbar": colour_bar(
            title, tickvals=[tick * top for tick in ticks], ticktext=[f"{tick:g}" for tick in ticks]
        ),
    }


def signed_colour_axis(bound: float, *, title: str) -> dict[str, object]:
    """A colour axis from -bound to bound, with zero in the middle."""
    return {
        "colorscale": DIVERGING,
        "cmin": -bound,
        "cmax": bound,
        "colorbar": colour_bar(title),
    }


def colour_bar(title: str, *, below: bool = False, **more: object) -> dict[str, Any]:
    """A horizontal colour bar: at the top of the figure, with a short title beside it, or below the map.

    There is no room beside a map on a phone.
    """
    above = {"len": 1, "y": 1, "yref": "container", "yanchor": "top"}
    return {
        "title": {"text": title, "side": "top" if below else "right"}, "orientation": "h", "thickness": 12,
        "outlinewidth": 0, "tickfont": {"size": FONT_SIZE},
        **({"len": 0.7, "y": -0.03, "yanchor": "top"} if below else above), **more,
    }  # fmt: skip


SCALE_BELOW: Settings = {"len": 0.7, "y": -0.03, "yref": "paper", "yanchor": "top"}
"""Settings that move a map's colour bar from above the map to below it."""


def rows_above_names(rows: str, columns: str = "") -> dict[str, Any]:
    """The titles of a map's rows and of columns with upright names, as an annotation in the corner beside these names.

    Axis titles would leave less room for the map. Needs a left margin as wide as the titles.
    """
    corner = {"x": 0, "xref": "paper", "xanchor": "right", "xshift": -6, "y": 1, "yref": "paper", "yanchor": "bottom"}
    text = f"{columns} →<br>{rows} ↓" if columns else f"{rows} ↓"
    return {**corner, "text": text, "yshift": 6, "showarrow": False}


def darken(figure: go.Figure) -> None:
    """Give a figure's diverging scales a dark zero, and its classes and lines lighter colours, for a dark page."""
    scales = [figure.layout.coloraxis, *(trace for trace in figure.data if isinstance(trace, go.Heatmap))]
    for scale in scales:
        if scale.colorscale == DIVERGING:
            scale.colorscale = DIVERGING_ON_DARK
    for drawn in (trace[name] for trace in figure.data for name in ("marker", "line") if name in trace):
        if drawn.color is not None:
            drawn.color = on_dark(drawn.color)
    for shape in figure.layout.shapes:
        if shape.line.color is not None:
            shape.line.color = on_dark(shape.line.color)
    # Names may have squares in the colours of classes.
    figure.layout.yaxis.ticktext = on_dark(figure.layout.yaxis.ticktext)
    for note in figure.layout.annotations:
        note.text = on_dark(note.text)


def on_dark(drawn: Any) -> Any:
    """A text, or a list or tuple of texts, with its colours replaced by those for a dark page."""
    if isinstance(drawn, str):
        return _LIGHTER.sub(lambda found: colours.ON_DARK[found[0]], drawn)
    return type(drawn)(map(on_dark, drawn)) if isinstance(drawn, (list, tuple)) else drawn


def legend_above(*, y: float = 1.02, **more: object) -> dict[str, Any]:
    """A horizontal legend above the plot; its lower edge is at `y`, in units of the plot's height."""
    return {
        "showlegend": True,
        "legend": {"orientation": "h", "y": y, "yanchor": "bottom", "x": 0, "font": {"size": FONT_SIZE}, **more},
    }


def new_figure(*, height: int, x: Settings, y: Settings, left: int = 8, right: int = 8, **layout: object) -> go.Figure:
    """An empty figure with two axes, left and right margins in pixels, and further layout settings.

    All settings are passed at once, since updating a layout takes plotly longer than creating it.
    """
    axis = {"automargin": True, "zeroline": False, "tickfont": {"size": FONT_SIZE}}
    return go.Figure(
        layout={
            "height": height,
            "margin": {"l": left, "r": right, "t": 8, "b": 8},
            "font": {"size": FONT_SIZE},
            "hovermode": "closest",
            "dragmode": False,
            "showlegend": False,
            "hoverlabel": {"font": {"size": FONT_SIZE}},
            "modebar": {"orientation": "h"},
            "xaxis": {**axis, **x},
            "yaxis": {**axis, **y},
            **layout,
        }
    )


def row_axis(names: Sequence[str], *, size: int, end: float = -0.5) -> Settings:
    """An axis with named rows at 0, 1, … from the top; it ends at `end` plus the number of rows."""
    return {
        "range": [len(names) + end, -0.5],
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "tickfont": {"size": size},
        "showgrid": False,
    }


def frame_cells(figure: go.Figure, rows: tuple[int, int], columns: tuple[int, int], *, colour: str, width: int) -> None:
    """Frame a half-open range of rows and columns of a heat map, with a white outline to be visible on every colour."""
    (y0, y1), (x0, x1) = rows, columns
    for line in ({"color": "#FFFFFF", "width": width + 3}, {"color": colour, "width": width}):
        figure.add_shape(type="rect", x0=x0 - 0.5, x1=x1 - 0.5, y0=y0 - 0.5, y1=y1 - 0.5, line=line)
