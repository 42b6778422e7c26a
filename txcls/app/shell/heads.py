"""What several pages say and ask about heads: which head, how it is replaced, and what is known about it."""

import html
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from txcls.app.shell import layout, lecture, view_state
from txcls.app.shell.controls import choice
from txcls.data.datasets import sentences
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Means, OutputAblation
from txcls.inspection.heads import VERDICT_MARKS, HeadMeasurements, head_summary
from txcls.lessons.page_address import UNSET, HeadChange, View

CHECKPOINT_WHERE_HEADS_MATTER = "who_won"
"""A checkpoint in which replacing a single head can cost much accuracy."""
REPLACEMENT_NAMES: dict[HeadChange, str] = {
    "mean": "its mean output",
    "zero": "zeros",
    "uniform": "uniform attention",
}
ABOUT_REPLACEMENTS = (
    "**Its mean output** over many texts removes what the part says about this one. **Zeros** also take the mean "
    "away, which the rest of the model never saw in training. **Uniform attention** leaves a head’s values: each token "
    "attends to all tokens equally."
)

Floats = NDArray[np.floating]


def open_on_head(page: layout.Page, classifier: Predictor, *, attention: Floats | None = None) -> layout.Page:
    """The page with a head selected: the one in the URL, or else the one for which uniform attention has the largest
    effect, among those whose rule is confirmed, or else among all.

    If `attention` (L, H, T, T), the attention on the page's text, is given and nothing was measured, it is the head
    whose queries attend most to a single other token, since its map shows a visible pattern.
    """
    model = classifier.checkpoint.config.model
    page = layout.fit_view(page, layer=model.n_layers - 1, head=model.n_heads - 1)
    in_url = np.array([page.view.layer, page.view.head])
    shape = (model.n_layers, model.n_heads)
    candidates = [head for head in np.ndindex(shape) if ((in_url == UNSET) | (in_url == head)).all()]
    measured = HeadMeasurements.of(classifier)
    if measured is not None:
        of_head = {head: measured.head(*head) for head in candidates}
        layer, head = max(candidates, key=lambda head: (of_head[head].verdict == "confirmed", of_head[head].uniform.kl))
    elif attention is not None:
        to_others = np.where(np.eye(attention.shape[-1], dtype=bool), 0.0, attention)
        sharpness = to_others.max(axis=-1).mean(axis=-1)  # L H
        layer, head = max(candidates, key=sharpness.__getitem__)
    else:
        layer, head = candidates[0]
    return replace(page, view=replace(page.view, layer=layer, head=head))


def choose_head(view: View, sizes: Mapping[str, int], *, row: DeltaGenerator | None = None) -> None:
    """Draw a control for each field in `sizes` ("layer", "head"), which selects one of that many.

    In a `row`, the controls have no label above; instead, the first option is "Layer 1".
    """
    container: Any = row or (st.container(horizontal=True) if lecture.is_on() else st)
    for field, n in sizes.items():
        key, name = f"{'step_' if row else ''}{field}_box", field.capitalize()
        st.session_state[key] = getattr(view, field) + 1
        options: dict[str, Any] = {"key": key, "on_change": _follow_box, "args": (field, key)}
        options["label_visibility"] = "collapsed" if row else "visible"
        if n <= 12:
            names = ("", f"{name} 1" if row else "1", *map(str, range(2, n + 1)))
            container.segmented_control(name, range(1, n + 1), format_func=names.__getitem__, required=True, **options)
        else:
            container.number_input(name, 1, n, width=130 if row else "stretch", **options)


def _follow_box(field: str, key: str) -> None:
    view_state.change_view(**{field: int(st.session_state[key]) - 1})


# How a part that is switched off is replaced


def output_replacement(classifier: Predictor) -> OutputAblation:
    """What replaces an output: its mean, or zeros if the checkpoint has no means."""
    return "zero" if Means.of(classifier) is None else "mean"


def replacement(classifier: Predictor, view: View) -> HeadChange:
    """How a switched-off head is replaced: as the view says, but by zeros if it says the mean and none was measured."""
    return output_replacement(classifier) if view.heads == "mean" else view.heads


def draw_replacement(classifier: Predictor, view: View, *, key: str) -> None:
    """Draw the control for how a switched-off head is replaced, the same on every page."""
    shipped = f" This model was imported: its means are over {len(sentences())} sentences that ship with txcls."
    options = [how for how in REPLACEMENT_NAMES if how != "mean" or output_replacement(classifier) == "mean"]
    choice(
        st, "Replaced by", options, view, "heads", key=key, names=REPLACEMENT_NAMES.__getitem__,
        selected=replacement(classifier, view),
        about=ABOUT_REPLACEMENTS + shipped * bool(classifier.checkpoint.config.imported),
    )  # fmt: skip


# What is known about a head


def draw_head_summary(classifier: Predictor, layer: int, head: int) -> None:
    """Draw in one line what was measured about a head."""
    if (measured := HeadMeasurements.of(classifier)) is not None:
        record = measured.head(layer, head)
        mark = f'<span aria-hidden="true">{VERDICT_MARKS[record.verdict]}</span>'
        classes = f"txcls-story {record.verdict.replace(' ', '-')}"
        words = html.escape(head_summary(record))
        st.html(f'<div class="txcls-stories"><span class="{classes}">{mark} {words}</span></div>')
