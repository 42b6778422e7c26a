"""Bar charts: class probabilities, ranked tokens, the numbers of a step, counts, effects before and after a change."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.evaluation.metrics import MIN_ROWS, accuracy_cell
from txcls.figures.colours import BAR, LESS, MARK, MORE, OTHER
from txcls.figures.style import (
    FONT_SIZE,
    PROBABILITY,
    Quantity,
    Settings,
    categories,
    class_label,
    drawable,
    label,
    legend_above,
    new_figure,
    percent,
    row_axis,
    token_axis,
)
from txcls.text.formatting import with_sign

SIDEWAYS: Settings = {"orientation": "h", "textposition": "outside", "cliponaxis": False}
"""Settings of horizontal bars with their values at the ends."""
HATCHING: Settings = {"fillmode": "replace", "solidity": 0.7}
"""Stripes in the bar's colour; plotly logs a warning about `fillmode="overlay"` if each bar has a colour of its own."""


def _hatched(colour: str, shape: str) -> Settings:
    """The marker settings of a bar; the shape "/" adds hatching, which distinguishes bars without relying on colour."""
    return {"color": colour, "line_width": 0, "pattern": {"shape": shape, **HATCHING}}


def _class_names(names: Sequence[str], *, above: bool) -> list[str]:
    return [f"{class_label(name, width=40 if above else 28)} " for name in names]


def _class_figure(
    names: Sequence[str], *, height: int, size: int, above: bool, right: int = 24, top: float = 1.0, **layout: Any
) -> go.Figure:
    """An empty figure with probabilities on the x axis and one row per class, the first at the top.

    Args:
        size: font size of the names.
        above: whether the names are above the bars, which should then be centred at 0.2, 1.2, … on the reversed axis.
        right: right margin in pixels; 84 leaves room for a percentage beside a full bar.
        top: upper end of the probability axis; slightly above 1 if round markers must fit.
    """
    settings = {"x": 0, "showarrow": False, "xanchor": "left", "xshift": -2, "font": {"size": 17}}
    return new_figure(
        height=height,
        left=20 if above else 8,  # room for half of "0%"
        right=right,
        x={**PROBABILITY, "range": [0, top]},
        y={**row_axis(names, size=size), "showticklabels": not above},
        annotations=[{"y": row - 0.22, "text": name, **settings} for row, name in enumerate(names)] if above else [],
        **layout,
    )


def most_probable(n: int, first: NDArray[np.floating], *others: NDArray[np.floating]) -> list[int]:
    """The n classes with the highest probability in any of the vectors (C,), in descending order of the first."""
    highest = np.maximum.reduce([first, *others])
    return sorted(np.argsort(-highest, kind="stable")[:n].tolist(), key=lambda index: -first[index])


def probability_bars(
    labels: Sequence[str],
    probabilities: Sequence[float],
    *,
    colours: Sequence[str],
    other: tuple[int, float] = (0, 0.0),
    names_above: bool = False,
) -> go.Figure:
    """Ranked classes as bars on a fixed 0–100 % scale.

    Args:
        colours: the colour of each bar (`class_colours`).
        other: number of omitted classes and their total probability, drawn as one hatched bar.
        names_above: whether names are above the bars rather than beside them, to fit long names on a phone.
    """
    n_other, p_other = other
    names, values = _class_names(labels, above=names_above), list(probabilities)
    colours, patterns = list(colours), [""] * len(values)
    if n_other:
        names.append(f"{n_other} other{'s' if n_other > 1 else ''} ")
        values.append(p_other)
        colours.append(OTHER)
        patterns.append("/")
    row_height = (60 if names_above else 56) if len(values) <= 7 else (50 if names_above else 40)
    swatched = [f'<span style="color:{colour}">■</span> {name}' for colour, name in zip(colours, names, strict=True)]
    figure = _class_figure(swatched, height=64 + row_height * len(values), size=18, above=names_above, right=84)
    figure.add_bar(
        x=values,
        y=np.arange(len(values)) + (0.2 if names_above else 0.0),
        width=0.4 if names_above else 0.62,
        marker={"color": colours, "line_width": 0, "pattern": {"shape": patterns, **HATCHING}},
        text=list(map(percent, values)),
        textfont={"size": 18},
        customdata=names,
        hovertemplate="%{customdata}: %{x:.2%}<extra></extra>",
        **SIDEWAYS,
    )
    return figure


BEFORE, AFTER = _hatched(OTHER, ""), _hatched(BAR, "/")


def compared_bars(
    classes: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    original: str = "as typed",
    changed: str = "changed",
    n_rows: int | None = 6,
    names_above: bool = False,
) -> go.Figure:
    """Each class's probability before and after a change, on a fixed 0–100 % scale.

    Bars are grey before the change, and hatched after it. Shows the `n_rows` classes with the
    highest probability before or after, or all classes in their order if it is None; `original` and `changed` are the
    names of the two series in the legend.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    order = list(range(len(old))) if n_rows is None else most_probable(n_rows, old, new)
    names = _class_names([classes[index] for index in order], above=names_above)
    figure = _class_figure(
        names,
        height=110 + (76 if names_above else 62) * len(order),
        size=16,
        above=names_above,
        right=84,
        barmode="overlay",
        **legend_above(y=1.0, yanchor="top", xref="container", yref="container"),
    )
    width, middle = (0.27, 0.18) if names_above else (0.36, 0.0)
    for values, offset, name, marker in ((old, -width / 2, original, BEFORE), (new, width / 2, changed, AFTER)):
        figure.add_bar(
            x=values[order],
            y=np.arange(len(order)) + middle + offset,
            width=0.9 * width,
            name=name,
            marker=marker,
            text=list(map(percent, values[order])),
            textfont={"size": 15},
            customdata=names,
            hovertemplate=f"%{{customdata}}, {name}: %{{x:.2%}}<extra></extra>",
            **SIDEWAYS,
        )
    return figure


def _line_across(y: float, **line: object) -> dict[str, Any]:
    """A plotly shape: a horizontal line across the plot at height `y`."""
    return {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y", "y0": y, "y1": y, "line": line}


def compared_effects(
    words: Sequence[str], before: NDArray[np.floating], after: NDArray[np.floating], *, class_name: str
) -> go.Figure:
    """The effect of each of N words on the probability of a class, in percentage points, before and after a change.

    A changed word is written "old → new"; an effect is NaN if the text does not contain the word.
    """
    before, after = 100 * before, 100 * after
    low, high = (float(end([before, after], initial=bound)) for end, bound in ((np.nanmin, -1.0), (np.nanmax, 1.0)))
    room = 0.06 * (high - low)
    axis, names = token_axis(len(words)), categories(words, width=2 * 12 + 3)
    if len(words) <= 10:  # flat names where there is room
        axis, names = {**axis, "tickangle": None}, [name.replace(" → ", " →<br>") for name in names]
    figure = new_figure(
        height=250,
        x=axis,
        y={
            "range": [low - room, high + room],
            "nticks": 7,
            "title": f"effect on {class_label(class_name)}<br>(percentage points)",
        },
        shapes=[_line_across(0, width=1, color=OTHER)],
        barmode="group",
        **legend_above(),
    )
    for values, name, marker in ((before, "as typed", BEFORE), (after, "changed", AFTER)):
        figure.add_bar(
            x=names,
            y=drawable(values),
            name=name,
            marker=marker,
            customdata=[with_sign(value, 2) for value in values],
            hovertemplate=f"<b>%{{x}}</b>, {name}<br>%{{customdata}} percentage points<extra></extra>",
        )
    return figure


def token_bars(
    tokens: Sequence[str],
    probabilities: Sequence[float],
    *,
    other: tuple[int, float],
    filtered: Sequence[float] | None = None,
    actual: int | None = None,
) -> go.Figure:
    """Ranked tokens as bars, with the total of all other tokens below; the scale ends at the next whole percentage.

    A click on a bar reports `customdata = [row, token]`.

    Args:
        other: number of tokens not listed, and their total probability.
        filtered: probabilities of the same tokens when sampled, 0 if filtered out; drawn as thin bars.
        actual: index of the token that occurs in the text; its bar is framed and has a sign (◀) beside it.
    """
    names = [f"{label(token, width=20)} " for token in tokens]
    rows = np.arange(len(names))
    largest = max(*probabilities, *(filtered or (0,)))
    top = float(np.clip(np.ceil(round(100 * largest, 6)) / 100, 0.05, 1.0))
    # No bar for the other tokens: the total of many thousands would dwarf the rest.
    others = {"text": f"{other[0]:,} others: {percent(other[1])} in total", "font": {"size": 15}}
    figure = new_figure(
        height=76 + (42 if filtered is None else 50) * (len(names) + 1),
        right=84 if actual is None else 104,
        x={"range": [0, top], "tickformat": ".0%" if top > 0.2 else ".1~%", "nticks": 6, "title": "probability"},
        y=row_axis(names, size=17, end=0.5),
        annotations=[{"x": 0, "y": len(names), "showarrow": False, "xanchor": "left", **others}],
        **({} if filtered is None else legend_above(y=1.0)),
    )
    shared = {**SIDEWAYS, "customdata": list(zip(rows.tolist(), names, strict=True))}
    figure.add_bar(
        x=list(probabilities),
        y=rows if filtered is None else rows - 0.14,
        width=0.62 if filtered is None else 0.4,
        name="probability",
        marker={"color": BAR, "line": {"width": [4 if row == actual else 0 for row in rows], "color": MARK}},
        text=[percent(value) + " ◀" * (row == actual) for row, value in enumerate(probabilities)],
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
            marker={"color": MARK, "line_width": 0},
            text=[percent(value) if value else "filtered out" for value in filtered],
            textfont={"size": 12},
            hovertemplate="%{customdata[1]} when sampled: %{x:.3%}<extra></extra>",
            **shared,
        )
    return figure


BESIDE: Settings = {"x": 1, "xref": "paper", "xanchor": "left", "showarrow": False, "align": "left"}
"""An annotation to the right of a plot, at a line's end."""


def surprisal_bars(bits: NDArray[np.floating], tokens: Sequence[str], *, mean: float | None) -> go.Figure:
    """The surprisal of each of T tokens in bits, NaN for tokens without a prediction; a dashed line marks the mean."""
    top = max(1.05 * float(np.nanmax(bits, initial=0.0)), 1.0)
    figure = _token_columns(bits, tokens, title="surprisal in bits", top=top, mark=mean, hover="%{y:.2f} bits")
    if mean is not None:
        figure.add_annotation(y=mean, text=f"mean<br>{mean:.2f}", **BESIDE)
        figure.update_layout(margin_r=60)
    return figure


def pooling_bars(weights: NDArray[np.floating], tokens: Sequence[str]) -> go.Figure:
    """The pooling weight of each of T tokens, the largest and smallest marked; a dashed line marks uniform weights."""
    uniform = 1 / len(tokens)
    top = min(1.05, 1.1 * max(float(np.max(weights)), uniform))
    figure = _token_columns(weights, tokens, title="weight", top=top, mark=uniform, hover="weight %{y:.3f}")
    colours, names = [BAR] * len(weights), [""] * len(weights)
    for index, colour, name in ((np.argmin(weights), OTHER, "least"), (np.argmax(weights), MARK, "most")):
        colours[index], names[index] = colour, name
    figure.update_traces(marker_color=colours, text=names, textposition="outside", cliponaxis=False)
    figure.update_shapes(line_color=LESS)
    figure.update_layout(yaxis_tickformat="~%", margin_r=84)
    return figure.add_annotation(y=uniform, text="all<br>equal", **BESIDE)


def _token_columns(
    values: NDArray[np.floating], tokens: Sequence[str], *, title: str, top: float, mark: float | None, hover: str
) -> go.Figure:
    shapes = [] if mark is None else [_line_across(mark, dash="dash", width=2, color=MARK)]
    figure = new_figure(
        height=300, x={"ticks": "", **token_axis(len(tokens))}, y={"range": [0, top], "title": title}, shapes=shapes
    )
    figure.add_bar(
        x=categories(tokens),
        y=np.asarray(values, dtype=np.float32),
        marker={"color": BAR, "line_width": 0},
        hovertemplate=f"<b>%{{x}}</b><br>{hover}<extra></extra>",
    )
    return figure


MAX_BARS = 24
"""Maximum number of classes that get their own bar."""


def number_bars(
    values: NDArray[np.floating],
    *,
    names: Sequence[str] | None = None,
    axis_title: str = "dimension",
    quantity: Quantity = "value",
    chosen: int,
    ranked: bool = False,
    limit: int = MAX_BARS,
) -> go.Figure:
    """A vector of N numbers as bars, with one highlighted; minus infinity is left blank.

    Args:
        names: N names; None for dimensions, which are numbered from 0.
        axis_title: title of the axis of bars; used only if `names` is None.
        chosen: index of the bar to highlight.
        ranked: show at most `limit` bars, largest first and always including the chosen bar; otherwise show all bars
            in their original order.
    """
    order = np.argsort(-values, kind="stable") if ranked else np.arange(len(values))
    if ranked and len(order) > limit:
        largest = order[:limit]
        order = largest if chosen in largest else np.append(largest[:-1], chosen)
    finite = drawable(values)[order]
    shown_names = [str(n) for n in order] if names is None else [names[n] for n in order]
    positions = categories(shown_names, width=30 if ranked else 14) if names is not None else order.tolist()
    hover = [f"<b>{label(name, width=40)}</b><br>{value:.4f}" for name, value in zip(shown_names, finite, strict=True)]
    bar: dict[str, Any] = {
        "customdata": order.tolist(),
        "marker": {"color": [MARK if n == chosen else BAR for n in order], "line_width": 0},
        "hovertemplate": "%{text}<extra></extra>",
        "text": hover,
        "textposition": "none",
    }
    value_axis = {"title": quantity, "zeroline": True}
    if ranked:
        ticks = {"type": "category", "dtick": 1}
        name_axis = {"autorange": "reversed", "showgrid": False, **ticks}
        figure = new_figure(height=int(120 + 26 * len(order)), x=value_axis, y=name_axis)
        figure.add_bar(x=finite, y=positions, orientation="h", **bar)
    else:
        bar_axis = {"title": axis_title} if names is None else token_axis(len(names))
        figure = new_figure(height=340, x={"showgrid": False, **bar_axis}, y=value_axis)
        figure.add_bar(x=positions, y=finite, **bar)
    return figure


def query_key_bars(products: NDArray[np.floating]) -> go.Figure:
    """The elementwise products (E,) of a query and a key, divided by sqrt(E); they sum to the score."""
    y_axis = {"title": f"query × key / √{len(products)}", "zeroline": True}
    figure = new_figure(height=300, x={"title": "dimension of the head"}, y=y_axis)
    figure.add_bar(
        y=np.asarray(products, dtype=float),
        marker={"color": [MORE if product >= 0 else LESS for product in products], "line_width": 0},
        customdata=[with_sign(product, 3) for product in products],
        hovertemplate="dimension %{x}: %{customdata}<extra></extra>",
        showlegend=False,
    )
    for colour, name in ((MORE, "raises the score (+)"), (LESS, "lowers it (−)")):
        figure.add_bar(x=[None], y=[None], name=name, marker={"color": colour})
    return figure.update_layout(legend_above())


def group_bars(
    names: Sequence[str], accuracies: Sequence[float], rows: Sequence[int], *, axis_title: str | None = None
) -> go.Figure:
    """Accuracy of groups of texts as bars from 0 to 100 %, with the names above the bars to fit on a phone.

    `rows` holds the number of texts in each group; a group with too few has no bar; `axis_title` names the
    property by which they are grouped.
    """
    is_same = len(set(rows)) == 1
    shown = [
        f"{label(name, width=40)}{'' if is_same else f' (n = {n:,})'}" for name, n in zip(names, rows, strict=True)
    ]
    numbers = [accuracy_cell(accuracy, n) for accuracy, n in zip(accuracies, rows, strict=True)]
    figure = _class_figure(shown, height=76 + 56 * len(shown), size=FONT_SIZE, above=True, right=84)
    figure.update_layout(xaxis_title="accuracy" + f" (n = {rows[0]:,})" * is_same, yaxis_title=axis_title)
    figure.add_bar(
        x=[accuracy if n >= MIN_ROWS else 0.0 for accuracy, n in zip(accuracies, rows, strict=True)],
        y=[row + 0.2 for row in range(len(shown))],
        width=0.4,
        marker={"color": BAR, "line_width": 0},
        text=numbers,
        textfont={"size": 16},
        customdata=shown,
        hovertemplate="%{customdata}<br>%{text}<extra></extra>",
        **SIDEWAYS,
    )
    return figure


def table_chart(distances: Sequence[float], words: Sequence[tuple[str, float]]) -> go.Figure:
    """Two bar charts of the table that replaces a head's attention: its weights by distance, and by word.

    Args:
        distances: the weight at each distance from -n to n; the ends also cover all farther tokens. Empty for no chart.
        words: tokens with their weight relative to the average token; or none.
    """
    n = len(distances) // 2
    split = 0.56 if distances and words else 1.0 if distances else 0.0
    ends = (f"≤−{n}", f"≥{n}")
    names = [
        ends[0],
        *(f"{distance:+d}".replace("-", "−") if distance else "0" for distance in range(1 - n, n)),
        ends[1],
    ]
    figure = new_figure(
        height=250,
        x={"domain": [0, split], "tickvals": list(range(0, 2 * n + 1, 2)), "ticktext": names[::2], "showgrid": False,
           "title": {"text": "distance in tokens", "font": {"size": FONT_SIZE}}, "tickangle": 0},
        y={"range": [0, max(0.5, 1.15 * max(distances, default=0.0))], "showgrid": False, "tickformat": ".0%",
           "title": {"text": "share", "font": {"size": FONT_SIZE}}},
    )  # fmt: skip
    if distances:
        figure.add_bar(
            x=list(range(2 * n + 1)), y=[float(share) for share in distances], marker={"color": BAR, "line_width": 0},
            customdata=names, hovertemplate="distance %{customdata}: %{y:.1%}<extra></extra>",
        )  # fmt: skip
    if words:
        shown = [label(word, width=14) for word, _ in words[:8]]
        largest = max(weight for _, weight in words[:8])
        figure.update_layout(
            xaxis2={"domain": [min(split + 0.17, 0.9), 1], "range": [0, 1.35 * largest], "showgrid": False,
                    "showticklabels": False, "zeroline": False},
            yaxis2={**row_axis(shown, size=FONT_SIZE), "anchor": "x2", "automargin": True, "zeroline": False},
        )  # fmt: skip
        figure.add_bar(
            x=[weight for _, weight in words[:8]], y=list(range(len(shown))), xaxis="x2", yaxis="y2",
            marker={"color": BAR, "line_width": 0}, text=[f"×{weight:.1f}" for _, weight in words[:8]],
            customdata=shown, hovertemplate="%{customdata}: %{text} the average token<extra></extra>", **SIDEWAYS,
        )  # fmt: skip
    if not distances:
        figure.update_layout(xaxis_visible=False, yaxis_visible=False)
    return figure
