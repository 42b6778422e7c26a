"""Figures of ablations: class probabilities before and after."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from txcls.figures.style import BAR, BAR_REST, PROBABILITY, label, legend_above, names_over_bars, new_figure, percent


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
