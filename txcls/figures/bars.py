"""Bars: class probabilities, ranked tokens, numbers of a step, counts, effects before and after a change."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from txcls.figures.style import (
    BAR,
    BAR_OTHER,
    BAR_REST,
    FONT_SIZE,
    FRAME,
    OKABE_ITO,
    PROBABILITY,
    TOKENS,
    Quantity,
    Settings,
    categories,
    class_figure,
    drawable,
    label,
    legend_above,
    line_across,
    minus,
    names_over_bars,
    new_figure,
    percent,
)
from txcls.wording import percentage

SIDEWAYS: Settings = {"orientation": "h", "textposition": "outside", "cliponaxis": False}
"""Horizontal bars with their numbers beside their ends."""


def _hatched(colour: str, shape: str) -> Settings:
    """Bars of one colour; with "/" as shape hatched, so that they differ without colour too."""
    hatching = {"shape": shape, "fillmode": "overlay", "fgcolor": "#FFFFFF", "fgopacity": 0.5}
    return {"color": colour, "line_width": 0, "pattern": hatching}


def _most_probable(before: NDArray[np.floating], highest: NDArray[np.floating], n: int) -> list[int]:
    """The n classes with the largest values in `highest`, ordered by `before`."""
    chosen = np.argsort(-highest, kind="stable")[:n].tolist()
    return sorted(chosen, key=lambda index: -before[index])


def probability_bars(
    labels: Sequence[str],
    probabilities: Sequence[float],
    *,
    other: tuple[int, float] = (0, 0.0),
    names_above: bool = False,
) -> go.Figure:
    """Ranked classes as bars on a fixed 0–100 % scale; the first is emphasised.

    Args:
        labels: class names, the most probable first.
        probabilities: of those classes, from the softmax over all classes.
        other: how many classes are left out, and their total probability, drawn as one hatched bar.
        names_above: write each name above its bar rather than beside it, for long names on a phone.
    """
    n_other, p_other = other
    names = [f"{label(name, width=40 if names_above else 28)} " for name in labels]
    values = list(probabilities)
    colours = [BAR] + [BAR_REST] * (len(values) - 1)
    patterns = [""] * len(values)
    if n_other:
        names.append(f"{n_other} other{'s' if n_other > 1 else ''} ")
        values.append(p_other)
        colours.append(BAR_OTHER)
        patterns.append("/")
    rows = list(range(len(values)))
    room = (60 if names_above else 56) if len(values) <= 7 else (50 if names_above else 40)
    figure = class_figure(names, height=64 + room * len(values), size=18, above=names_above, right=84)
    figure.add_bar(
        x=values,
        y=[row + 0.2 for row in rows] if names_above else rows,
        width=0.4 if names_above else 0.62,
        marker={
            "color": colours,
            "line_width": 0,
            "pattern": {
                "shape": patterns,
                "fillmode": "overlay",
                "fgcolor": ["#FFFFFF"] * len(values),
                "fgopacity": 0.6,
            },
        },
        text=[percent(value) for value in values],
        textfont={"size": 18},
        customdata=names,
        hovertemplate="%{customdata}: %{x:.2%}<extra></extra>",
        **SIDEWAYS,
    )
    return figure


def shuffle_bars(
    classes: Sequence[str],
    original: Sequence[float],
    shuffled: NDArray[np.floating],
    *,
    n_rows: int = 10,
    names_above: bool = False,
) -> go.Figure:
    """Each class's probability for the words in their original order (bar) and for each shuffled order (a dot each).

    Args:
        classes: C class names.
        original: C probabilities of the text as typed.
        shuffled: n C probabilities of the same words in other orders.
        n_rows: how many classes to show: those with the highest probability in either.
        names_above: write each name above its bar rather than beside it.
    """
    before, after = np.asarray(original), np.asarray(shuffled)
    order = _most_probable(before, np.maximum(before, after.max(axis=0)), n_rows)
    rows = np.arange(len(order))
    places, width = (rows + 0.2, 0.4) if names_above else (rows, 0.62)
    names = [f"{label(classes[index], width=40 if names_above else 28)} " for index in order]
    figure = class_figure(
        names, height=110 + 56 * len(order), size=16, above=names_above, top=1.02, **legend_above(y=1.0)
    )
    figure.add_bar(
        x=before[order],
        y=places,
        orientation="h",
        width=width,
        name="original order",
        marker={"color": BAR_REST, "line_width": 0},
        customdata=names,
        hovertemplate="%{customdata}, as typed: %{x:.2%}<extra></extra>",
    )
    n = len(after)
    spread = ((np.arange(n) * 0.618034) % 1.0 - 0.5) * 0.8 * width  # golden ratio: even, and the same every time
    figure.add_scatter(
        x=after[:, order].T.ravel(),
        y=(places[:, None] + spread[None, :]).ravel(),
        mode="markers",
        name=f"{n} shuffled orders",
        marker={"color": FRAME, "size": 9, "symbol": "circle-open", "line": {"width": 2}},
        customdata=np.repeat(names, n),
        hovertemplate="%{customdata}, shuffled: %{x:.2%}<extra></extra>",
        cliponaxis=False,
    )
    return figure


def moved_bars(
    classes: Sequence[str], before: Sequence[float], after: Sequence[float], *, n_rows: int = 6
) -> go.Figure:
    """Each class's probability before and after a change, on a fixed 0–100 % scale.

    Args:
        classes: C class names.
        before: C probabilities of the model as it is.
        after: C probabilities of the changed model.
        n_rows: how many classes to show: those with the highest probability in either, ordered by `before`.
    """
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    order = _most_probable(old, np.maximum(old, new), n_rows)
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
            width=width,
            name=name,
            marker={"color": colour, "line_width": 0},
            text=[percent(value) for value in values[order]],
            textfont={"size": 17 if name == "changed" else 12},
            customdata=names,
            hovertemplate=f"%{{customdata}}, {name}: %{{x:.2%}}<extra></extra>",
            **SIDEWAYS,
        )
    return figure


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
        n_rows: how many classes to show: those with the highest probability in either.
        names_above: write each name above its bars rather than beside them.
    """
    old, new = np.asarray(before), np.asarray(after)
    order = _most_probable(old, np.maximum(old, new), n_rows)
    rows = np.arange(len(order))
    names = [f"{label(classes[index], width=40 if names_above else 28)} " for index in order]
    figure = class_figure(
        names,
        height=110 + (76 if names_above else 62) * len(order),
        size=16,
        above=names_above,
        right=84,
        barmode="overlay",
        **legend_above(y=1.0),
    )
    width, middle = (0.27, 0.18) if names_above else (0.36, 0.0)
    for values, offset, name, colour, pattern in (
        (old, -width / 2, "as typed", BEFORE, ""),
        (new, width / 2, "changed", AFTER, "/"),
    ):
        figure.add_bar(
            x=values[order],
            y=rows + middle + offset,
            width=0.9 * width,
            name=name,
            marker=_hatched(colour, pattern),
            text=[percent(value) for value in values[order]],
            textfont={"size": 15},
            customdata=names,
            hovertemplate=f"%{{customdata}}, {name}: %{{x:.2%}}<extra></extra>",
            **SIDEWAYS,
        )
    return figure


def compared_effects(
    names: Sequence[str], before: NDArray[np.floating], after: NDArray[np.floating], *, of: str
) -> go.Figure:
    """The effect of each word on the probability of a class, before and after, side by side.

    Args:
        names: N words, changed ones as "old → new".
        before: N effects in the text as typed; NaN if the word is not in it.
        after: N effects in the changed text.
        of: the class.
    """
    finite = np.abs(np.concatenate([before, after]))
    limit = 1.1 * max(float(np.nanmax(finite, initial=0.0)), 0.01)
    figure = new_figure(
        height=340,
        x=TOKENS,
        y={"range": [-limit, limit], "title": f"for {label(of)}"},
        shapes=[line_across(0, width=1, color=FRAME)],
        barmode="group",
        **legend_above(),
    )
    places = categories(names)
    for values, name, colour, pattern in ((before, "as typed", BEFORE, ""), (after, "changed", AFTER, "/")):
        figure.add_bar(
            x=places,
            y=np.where(np.isfinite(values), values, np.nan).astype(np.float32),
            name=name,
            marker=_hatched(colour, pattern),
            hovertemplate=f"<b>%{{x}}</b>, {name}<br>%{{y:+.4f}}<extra></extra>",
        )
    return figure


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
    shared = {**SIDEWAYS, "customdata": list(zip(rows.tolist(), names, strict=True))}
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


MAX_BARS = 24
"""Most named rows that are drawn as bars."""


def number_bars(
    values: NDArray[np.floating],
    *,
    names: Sequence[str] | None = None,
    axis_title: str = "dimension",
    quantity: Quantity = "value",
    chosen: int,
    ranked: bool = False,
    most: int = MAX_BARS,
) -> go.Figure:
    """A vector as bars, one of them marked; minus infinity is left out.

    Args:
        values: N numbers.
        names: N names; None for dimensions, which are numbered from 0.
        axis_title: what the numbers are of, without names.
        quantity: what the numbers are.
        chosen: the index of the bar to mark.
        ranked: draw the largest from the top, and the chosen one; otherwise all in their order.
        most: how many are drawn if they are ranked.
    """
    order = np.argsort(-values, kind="stable") if ranked else np.arange(len(values))
    if ranked and len(order) > most:
        largest = order[:most]
        order = largest if chosen in largest else np.append(largest[:-1], chosen)
    finite = drawable(values)[order]
    shown_names = [str(n) for n in order] if names is None else [names[n] for n in order]
    places = categories(shown_names, width=30 if ranked else 14) if names is not None else order.tolist()
    colours = [FRAME if n == chosen else BAR for n in order]
    bar: dict[str, Any] = {
        "customdata": order.tolist(),
        "marker": {"color": colours, "line_width": 0},
        "hovertemplate": "%{text}<extra></extra>",
        "text": [
            f"<b>{label(name, width=40)}</b><br>{value:.4f}" for name, value in zip(shown_names, finite, strict=True)
        ],
        "textposition": "none",
    }
    along = {"title": quantity, "zeroline": True}
    if ranked:
        figure = new_figure(
            height=int(120 + 26 * len(order)),
            x=along,
            y={"autorange": "reversed", "type": "category", "showgrid": False, "tickfont": {"size": 14}, "dtick": 1},
        )
        figure.add_bar(x=finite, y=places, orientation="h", **bar)
    else:
        across = {"title": axis_title} if names is None else TOKENS
        figure = new_figure(height=340, x={"showgrid": False, **across}, y=along)
        figure.add_bar(x=places, y=finite, **bar)
    return figure


def pooling_bars(weights: NDArray[np.floating], tokens: Sequence[str]) -> go.Figure:
    """The pooling weight of each token; a dashed line marks equal weights.

    Args:
        weights: T weights of the pooling.
        tokens: T tokens.
    """
    even = 1 / len(tokens)
    figure = new_figure(
        height=300,
        x=TOKENS,
        y={"range": [0, min(1.05, 1.1 * max(float(np.max(weights)), 2 * even))], "title": "weight"},
        shapes=[line_across(even, dash="dash", width=2, color=FRAME)],
    )
    figure.add_bar(
        x=categories(tokens),
        y=np.asarray(weights, dtype=np.float32),
        marker={"color": BAR, "line_width": 0},
        hovertemplate="<b>%{x}</b><br>weight %{y:.3f}<extra></extra>",
    )
    return figure


def query_key_bars(products: NDArray[np.floating]) -> go.Figure:
    """The products of a query and a key by dimension, divided by sqrt(E), which sum to their score.

    Args:
        products: (E,).
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


def group_bars(names: Sequence[str], accuracies: Sequence[float], rows: Sequence[int], *, axis_title: str) -> go.Figure:
    """Accuracy of groups of rows as bars from 0 to 100 %, each below its name, so that phones have room for both.

    Args:
        names: of the groups.
        accuracies: of each, from 0 to 1.
        rows: of each.
        axis_title: what the groups differ in.
    """
    shown = [label(name, width=24) for name in names]
    figure = class_figure(shown, height=76 + 56 * len(shown), size=FONT_SIZE, above=True, right=84)
    figure.update_layout(xaxis_title="accuracy", yaxis_title=axis_title)
    figure.add_bar(
        x=list(accuracies),
        y=[row + 0.2 for row in range(len(shown))],
        width=0.4,
        marker={"color": BAR, "line_width": 0},
        text=[percentage(value) for value in accuracies],
        textfont={"size": 16},
        customdata=list(zip(shown, rows, strict=True)),
        hovertemplate="%{customdata[0]}<br>%{x:.1%} of %{customdata[1]:,} rows<extra></extra>",
        **SIDEWAYS,
    )
    return figure


MAX_CLASSES = 24
"""Most classes with a bar of their own."""

ROOM = 1.18
"""The axis of counts goes so much beyond the longest bar, for the number beside it."""


def class_counts(counts: Mapping[str, int], *, unit: str = "rows") -> go.Figure:
    """A bar for each class, the largest first; beyond `MAX_CLASSES` the others share a bar.

    Args:
        counts: how many rows each class has, the largest first.
        unit: what is counted, for the axis.
    """
    shown = list(counts.items())[:MAX_CLASSES]
    rest = list(counts.items())[MAX_CLASSES:]
    names = [*categories([name or "(none)" for name, _ in shown], width=22)]
    values = [n for _, n in shown]
    colours = [BAR] * len(shown)
    if rest:
        names.append(f"{len(rest)} other classes")
        values.append(sum(n for _, n in rest))
        colours.append(BAR_OTHER)
    largest = max(values, default=1)
    figure = new_figure(
        height=70 + 26 * max(len(names), 3),
        x={"title": unit, "range": [0, largest * ROOM], "nticks": 5, "tickformat": ",d"},
        y={
            "range": [len(names) - 0.4, -0.6],
            "tickvals": list(range(len(names))),
            "ticktext": names,
        },
    )
    figure.add_bar(
        x=values,
        y=list(range(len(names))),
        marker={"color": colours},
        text=[f"{n:,}" for n in values],
        customdata=names,
        hovertemplate="%{customdata}: %{x:,}<extra></extra>",
        **SIDEWAYS,
    )
    return figure


def length_histogram(lengths: Sequence[tuple[int, int]], *, bins: int = 30) -> go.Figure:
    """How many texts have how many words; the longest hundredth shares the last bar.

    Args:
        lengths: (number of words, number of texts with it), ascending.
        bins: most bars.
    """
    total = sum(n for _, n in lengths)
    longest = lengths[-1][0] if lengths else 1
    passed, top = 0, longest
    for words, n in lengths:
        passed += n
        if passed >= 0.99 * total:
            top = words
            break
    width = max(1, -(-top // bins))
    counted: dict[int, int] = {}
    for words, n in lengths:
        place = min((words - 1) // width, (top - 1) // width)
        counted[place] = counted.get(place, 0) + n
    places = sorted(counted)
    last = places[-1] if places else 0
    ends = [longest if place == last else (place + 1) * width for place in places]
    starts = [place * width + 1 for place in places]
    spans = [f"{start:,}" if start == end else f"{start:,} to {end:,}" for start, end in zip(starts, ends, strict=True)]
    figure = new_figure(
        height=300,
        x={"title": "words in a text", "nticks": 8, "rangemode": "tozero"},
        y={"title": "texts", "nticks": 5},
        bargap=0.06,
    )
    figure.add_bar(
        x=[place * width + (width + 1) / 2 for place in places],
        y=[counted[place] for place in places],
        width=[width] * len(places),
        marker={"color": BAR},
        customdata=spans,
        hovertemplate="%{customdata} words: %{y:,} texts<extra></extra>",
    )
    return figure
