"""What all figures share: colours that survive colour blindness and both themes, and tokens made safe to show."""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

OKABE_ITO = ("#1F83C4", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7A7A7A")
"""Colour-blind-safe line colours after Okabe & Ito 2008; changed where they vanish on white or on black."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""Told apart without colour, together with OKABE_ITO."""
BAR, BAR_REST, BAR_OTHER = "#1F83C4", "#7FA8C4", "#8A8A8A"
FRAME = "#FF6A13"
SEQUENTIAL = tuple((place**2 / 81, colour) for place, colour in enumerate(sample_colorscale("viridis", 10)))
"""Viridis from 0 to 1, spread wider among small weights: in a long text nearly all are small."""
DIVERGING = (
    (0.0, "#08519C"), (0.25, "#5AA2D4"), (0.5, "#F2F2F2"), (0.75, "#EE9A54"), (1.0, "#B04A00"),
)  # fmt: skip
"""Blue, light grey at zero, orange: the poles stay apart in every common form of colour blindness."""
FONT_SIZE = 14
Settings = Mapping[str, Any]
"""A part of a figure's layout, as plotly names it."""
PROBABILITY: Settings = {
    "range": [0, 1],
    "tickvals": [0, 0.25, 0.5, 0.75, 1],
    "tickformat": ".0%",
    "title": "probability",
}
"""The axis of class probabilities: always the whole of it, so that figures can be compared."""
TOKENS: Settings = {"type": "category", "tickangle": -60, "tickfont": {"size": 13}}
"""The axis along which tokens are written, as `categories` names them."""


def visible(text: str) -> str:
    """`text` with what a screen cannot show replaced by visible stand-ins, so that it survives JSON and UTF-8.

    Control characters become their Unicode pictures, lone surrogates and private-use characters U+FFFD.
    """
    return text if text.isprintable() else "".join(map(_visible_character, text))


def _visible_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    category = unicodedata.category(character)
    if category in ("Cs", "Co", "Cn"):
        return "\N{REPLACEMENT CHARACTER}"
    return "·" if category in ("Cc", "Cf", "Zl", "Zp") and code != 0x200D else character


def label(text: str, *, width: int = 18) -> str:
    """A token or class name as figure text: visible, at most `width` characters, plotly's own markup disarmed."""
    text = visible(text)
    if len(text) > width:
        text = text[: width - 1] + "…"
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text):
        text = f"\N{FIRST STRONG ISOLATE}{text}\N{POP DIRECTIONAL ISOLATE}"
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def categories(tokens: Sequence[str]) -> list[str]:
    """One axis category per token, repeated words kept apart by zero-width characters.

    On a category axis plotly prints as many labels as there is room for, on a phone as on a wall.
    """
    digits = str.maketrans("01", "\u200b\u200c")
    return [label(token, width=14) + f"{place:b}".translate(digits) for place, token in enumerate(tokens)]


def percent(probability: float) -> str:
    """`93.1 %`, but never a rounded 0 or 100: those read `< 0.1 %` and `> 99.9 %`."""
    if 0.0 < probability < 0.0005:
        return "&lt; 0.1 %"
    if 0.9995 <= probability < 1.0:
        return "&gt; 99.9 %"
    return f"{probability:.1%}".replace("%", " %")


def minus(written: str) -> str:
    """A written number with a minus sign, as wide as a plus, for its hyphen."""
    return written.replace("-", "−")


def share_colours(*, top: int = 1, title: str = "weight") -> dict[str, object]:
    """Colour axis of shares from 0 to 1, sent as numbers from 0 to `top`."""
    ticks = [0, 0.25, 0.5, 0.75, 1]
    return {
        "colorscale": SEQUENTIAL,
        "cmin": 0,
        "cmax": top,
        "colorbar": {
            "title": {"text": title, "side": "right"},
            "tickvals": [tick * top for tick in ticks],
            "ticktext": [f"{tick:g}" for tick in ticks],
            **_COLOUR_BAR,
        },
    }


def signed_colours(bound: float, *, title: str) -> dict[str, object]:
    """Colour axis from -bound to bound, zero in its middle."""
    return {
        "colorscale": DIVERGING,
        "cmin": -bound,
        "cmax": bound,
        "colorbar": {"title": {"text": title, "side": "right"}, **_COLOUR_BAR},
    }


_COLOUR_BAR = {"thickness": 12, "xpad": 4, "outlinewidth": 0}


def flat_colour_bar(title: str, **more: object) -> dict[str, Any]:
    """A colour bar that lies above or below a figure: on a phone there is no room beside it."""
    return {
        "title": {"text": title, "side": "top"}, "orientation": "h", "thickness": 12, "outlinewidth": 0, **more,
    }  # fmt: skip


def legend_above(*, y: float = 1.02, **more: object) -> dict[str, Any]:
    """A legend in a row above the drawing, from `y` of its height on."""
    return {"showlegend": True, "legend": {"orientation": "h", "y": y, "yanchor": "bottom", "x": 0, **more}}


def line_across(y: float, **line: object) -> dict[str, Any]:
    """A shape: a line from side to side at this height."""
    return {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y", "y0": y, "y1": y, "line": line}


def names_over_bars(names: Sequence[str], *, by: float) -> list[dict[str, Any]]:
    """Annotations: the names of rows 0, 1, … of a reversed axis, each above its bar by so much of a row."""
    shared = {"x": 0, "showarrow": False, "xanchor": "left", "xshift": -2, "font": {"size": 17}}
    return [{"y": row - by, "text": name, **shared} for row, name in enumerate(names)]


def new_figure(*, height: int, x: Settings, y: Settings, left: int = 8, right: int = 8, **layout: object) -> go.Figure:
    """A figure without data: the font and margins that all have, its two axes, and what else its layout holds.

    All of it at once, since plotly takes longer over each later update of a layout than over making one.

    Args:
        height: in pixels; the width is that of the page.
        x, y: the axes.
        left, right: room beside the drawing, in pixels.
        layout: the rest, by plotly's names.
    """
    axis = {"automargin": True, "zeroline": False}
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
