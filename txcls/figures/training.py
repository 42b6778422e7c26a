"""Figures of training: loss and accuracy over the optimiser steps."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from txcls.figures.style import FONT_SIZE, FRAME, OKABE_ITO, legend_above


def of_runs(runs: int) -> str:
    """What the curves of a training in several runs show, as a sentence."""
    return f"Of the first of {runs} runs from the same start, the mean of whose weights is the classifier."


def training_curves(history: Sequence[Mapping[str, Any]], *, runs: int = 1) -> go.Figure:
    """Loss and accuracy on training and validation rows over the optimiser steps; the kept weights are marked.

    Args:
        history: rows of history.jsonl with `step`, `train_loss`, `validation_loss`, `train_accuracy`,
            `validation_accuracy` and `best`; missing values are left out.
        runs: of the training, of which these rows are the first's; the mean of several is kept, which is on no curve.
    """
    # Names above the plots, not beside them: on a phone there is no room between the two.
    figure = make_subplots(rows=1, cols=2, horizontal_spacing=0.2, subplot_titles=("loss", "accuracy"))
    steps = [row.get("step", place) for place, row in enumerate(history)]
    for column, what in enumerate(("loss", "accuracy"), start=1):
        for split, colour, dash in (("train", OKABE_ITO[1], "dot"), ("validation", OKABE_ITO[0], "solid")):
            figure.add_scatter(
                x=steps,
                y=[row.get(f"{split}_{what}") for row in history],
                mode="lines+markers",
                name={"train": "training rows", "validation": "validation rows"}[split],
                legendgroup=split,
                showlegend=column == 1,
                line={"color": colour, "dash": dash, "width": 2.5},
                marker={"size": 6, "symbol": "diamond" if split == "train" else "circle"},
                hovertemplate="step %{x}<br>%{y:.4f}<extra></extra>",
                row=1,
                col=column,
            )
        best = [place for place, row in enumerate(history) if row.get("best")]
        if best and runs == 1:
            figure.add_scatter(
                x=[steps[best[-1]]],
                y=[history[best[-1]].get(f"validation_{what}")],
                mode="markers",
                name="kept weights",
                showlegend=column == 1,
                marker={"size": 15, "symbol": "circle-open", "color": FRAME, "line": {"width": 3}},
                hovertemplate="kept weights<br>%{y:.4f}<extra></extra>",
                row=1,
                col=column,
            )
    figure.update_annotations(font_size=FONT_SIZE)
    figure.update_xaxes(title="optimiser step", automargin=True, nticks=5)
    figure.update_yaxes(tickformat=".3~%", col=2, row=1)
    figure.update_yaxes(automargin=True)
    figure.update_layout(
        height=360,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        font={"size": FONT_SIZE},
        dragmode=False,
        **legend_above(y=1.2),
    )
    return figure
