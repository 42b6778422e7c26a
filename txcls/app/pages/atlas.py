"""All heads of a checkpoint: what each attends to, its worth, and its story, tested by intervention."""

import html
import math
from dataclasses import replace
from typing import get_args

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.address import HeadOrder, View
from txcls.app import pages
from txcls.app.shell import checkpoints, compute, heads, layout, lecture, state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import LoadingPlaceholder, load_classifier
from txcls.figures import minus, number_map, visible
from txcls.inspection.ablation import How
from txcls.inspection.stories import HeadAtlas, HeadRecord, sentence
from txcls.predictor import Predictor

ORDERS: dict[HeadOrder, str] = {
    "worth": "worth",
    "story": "share brought back",
    "entropy": "entropy",
    "number": "layer and head",
}
TESTED = (
    "A story says which key a head attends to. It is tested by intervention: all of the head's weight goes to the keys "
    "of the story, to all keys evenly, or, as a control, to as many other keys. The story is **confirmed** if it "
    "brings back at least 0.8 of the accuracy lost with even weights, the control at most 0.3, and the head itself "
    "puts most of its weight on the story's keys."
)
WORTH: dict[How, str] = {"zero": "zero", "mean": "mean", "uniform": "even"}
MAX_LISTED = 12
"""Most heads that are listed before a button shows the others."""
HEADS_OF_A_SLIDE = 3
"""Heads on a slide in lecture mode; the first slide, which has the summary, has one less."""
LONGEST_SENTENCE = 160


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(pages.ATLAS, has_box=False)
    placeholder = LoadingPlaceholder(opened, height=480)
    classifier = load_classifier(opened)
    placeholder.remove()
    atlas = HeadAtlas.of(classifier)
    if atlas is None:
        _not_measured(opened, classifier)
    else:
        opened = heads.open_on_head(opened, classifier)
        with lecture.slide(lecture.ATTENTION):
            _summary(atlas)
            first = st.container()
            places = [(record.story.story.layer, record.story.story.head) for record in atlas.heads]
            heads.link_where_heads_matter(classifier, places, target=pages.ATLAS)
        _heads(opened, atlas, first)
        with lecture.slide(f"{lecture.ATTENTION}.{opened.view.layer}"):
            _kinds(opened, atlas)
    layout.close_page(opened)


def _not_measured(opened: layout.Page, classifier: Predictor) -> None:
    """How to measure an atlas, and which checkpoints have one."""
    if opened.source.is_own:
        st.info(
            f"The heads of {plain(classifier.name)} have not been measured: this takes minutes, so the app does not "
            "do it for visitors' classifiers. The page Switchboard switches heads off for one text."
        )
    else:
        st.info(
            f"The heads of {plain(classifier.name)} have not been measured. If its data set is on this machine, "
            "this command measures them once and saves the result with the checkpoint:"
        )
        st.code(f"python -m txcls evaluate {classifier.name} --heads --write", language=None)
    others = [name for name in checkpoints.names() if checkpoints.summary(name).has_atlas]
    if others:
        st.markdown("These checkpoints have a head atlas:")
        with st.container(horizontal=True, gap="medium"):
            for name in others:
                shown = replace(opened, view=View(checkpoint=name, text=opened.view.text, mode=opened.view.mode))
                layout.link_to(shown, pages.ATLAS, f"{plain(visible(name))} →")


def _summary(atlas: HeadAtlas) -> None:
    share = atlas.confirmed_share
    if math.isnan(share):
        st.html('<div class="txcls-answer">No head is worth anything<small>even weights cost no accuracy</small></div>')
    else:
        st.html(
            f'<div class="txcls-answer">{100 * share:.0f} %<small>of the heads’ worth is carried by confirmed '
            "stories</small></div>"
        )
    st.markdown(TESTED)


def _heads(opened: layout.Page, atlas: HeadAtlas, first: DeltaGenerator) -> None:
    """One row for each head: story, verdict, figures, clearest sentence.

    In lecture mode, the first heads are in the container `first` and the others on slides of their own.
    """
    view = opened.view
    choice(st, "Sort by", get_args(HeadOrder), view, "sort", key="atlas_sort", names=ORDERS.__getitem__)
    texts = compute.clearest_texts(opened.source)
    rows = sorted(range(len(atlas.heads)), key=lambda n: _rank(atlas, n, view.sort))
    more = f"atlas_all_{opened.source.name}"
    if len(rows) > MAX_LISTED and not st.session_state.get(more):
        hidden, rows = len(rows) - MAX_LISTED, rows[:MAX_LISTED]
    else:
        hidden = 0
    together = HEADS_OF_A_SLIDE - 1 if lecture.is_on() else 0
    with first:
        for n in rows[:together]:
            _head(opened, atlas, n, texts[n])
    for start in range(together, len(rows), HEADS_OF_A_SLIDE):
        shown = rows[start : start + HEADS_OF_A_SLIDE]
        layers = sorted({atlas.heads[n].story.story.layer for n in shown})
        with lecture.slide(*(f"{lecture.ATTENTION}.{layer}" for layer in layers)):
            for n in shown:
                _head(opened, atlas, n, texts[n])
    if hidden:
        st.button(f"Show {hidden} more heads", on_click=_show_all, args=(more,), key="atlas_more")
    st.caption(
        f"Measured on {atlas.split} texts: worth on {atlas.n:,}, stories and attention on {atlas.n_stories:,}; the "
        f"stories were chosen on {atlas.n_validation:,} validation texts. Worth: the accuracy lost, in percentage "
        "points, when only this head’s output is set to zero or to its mean, or its weights are made even. Brought "
        "back: the share of the accuracy lost with even weights that the story restores (95 % CI over texts). Entropy: "
        "that of a query’s weights; 1 for even weights. Each sentence is the clearest example: most are less clear."
    )


def _show_all(key: str) -> None:
    st.session_state[key] = True


def _rank(atlas: HeadAtlas, n: int, order: HeadOrder) -> tuple[float, int]:
    record = atlas.heads[n]
    share = -math.inf if math.isnan(record.story.share) else record.story.share
    entropy = float(atlas.table.entropy.ravel()[n])
    return {"worth": -record.worth["uniform"], "story": -share, "entropy": entropy, "number": 0.0}[order], n


def _head(opened: layout.Page, atlas: HeadAtlas, n: int, text: str) -> None:
    record = atlas.heads[n]
    story = record.story.story
    layer, head = story.layer, story.head
    chosen = (layer, head) == (opened.view.layer, opened.view.head)
    name = f"{layer + 1}.{head + 1}"
    with st.container(border=True, key=f"atlas_head_{layer}_{head}"):
        words, figures, look = st.columns([5, 5, 4], gap="medium", vertical_alignment="center")
        words.html(
            f'<div class="txcls-head"><b>Head {name}</b> {heads.verdict_html(record)}'
            f"<p>{html.escape(sentence(record.story))}</p></div>"
        )
        figures.html(_figures(record, float(atlas.table.entropy[layer, head])))
        with look:
            there = replace(opened, view=replace(opened.view, text=text, layer=layer, head=head))
            shown = text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]} …"
            layout.link_to(there, pages.ATTENTION, f"“{plain(visible(shown))}” →")
            st.button(
                f"Kinds of {name} are shown below" if chosen else f"Show kinds of {name}",
                key=f"atlas_kinds_{layer}_{head}",
                on_click=state.change_view,
                kwargs={"layer": layer, "head": head},
                disabled=chosen,
            )


def _figures(record: HeadRecord, entropy: float) -> str:
    """The figures of a head as a small HTML table."""
    story = record.story
    worth = [f"{name} <b>{_points(record.worth[how])}</b>" for how, name in WORTH.items()]
    if math.isnan(story.share):
        back = "nothing is lost when its weights are even"
    else:
        low, high = story.interval
        interval = "" if math.isnan(low) else f" ({_two(low)} to {_two(high)})"
        control = "" if math.isnan(story.control_share) else f", control <b>{_two(story.control_share)}</b>"
        back = f"<b>{_two(story.share)}</b>{interval}{control}"
    attends = " / ".join(
        f"{weight:.2f}" + ("" if math.isnan(even) else f" (chance {even:.2f})")
        for weight, even in zip(story.attention, story.chance, strict=True)
        if not math.isnan(weight)
    )
    rows = (
        ("brought back", back),
        ("worth, points", " · ".join(worth)),
        ("own attention", attends),
        ("entropy", f"<b>{entropy:.2f}</b> of uniform"),
    )
    cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows if value)
    return f'<table class="txcls-head-figures">{cells}</table>'


def _kinds(opened: layout.Page, atlas: HeadAtlas) -> None:
    """Attention of the selected head by kinds of query and key, compared with even weights."""
    layer, head = opened.view.layer, opened.view.head
    table = atlas.table
    st.subheader(f"Head {layer + 1}.{head + 1}: attention by kind of token, compared with chance", anchor=False)
    over = np.where(table.coverage > 0, table.attention[layer, head] - table.chance, np.nan)
    query, key = np.unravel_index(int(np.nanargmax(over)), over.shape)
    chart(
        number_map(
            over,
            rows=table.queries,
            columns=table.keys,
            row_title="query",
            column_title="key",
            bound=1.0,
        ),
        key="chart_kinds",
        alt=f"Heat map of the attention of head {layer + 1}.{head + 1} over chance, {len(table.queries)} kinds of "
        f"queries by {len(table.keys)} kinds of keys; largest: {table.queries[query]} to {table.keys[key]}, "
        f"{over[query, key]:+.2f}",
    )
    st.caption(
        "The mean weight of queries of one kind (rows) on keys of one kind (columns), minus that of even weights, over "
        "the texts that have such a key. A token can be of several kinds, so rows do not sum to 0. Largest: "
        f"{table.queries[query]} → {table.keys[key]}, {table.attention[layer, head, query, key]:.2f} (even weights: "
        f"{table.chance[query, key]:.2f}). This is only a picture; the test above says whether it matters."
    )


def _points(worth: float) -> str:
    return minus(f"{round(100 * worth, 1) + 0.0:.1f}")  # 0.0 for -0.0


def _two(value: float) -> str:
    return minus(f"{round(value, 2) + 0.0:.2f}")


if __name__ == "__main__":
    main()
