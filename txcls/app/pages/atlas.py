"""All heads of a checkpoint: a card for each with its map, its tested story and its worth."""

import html
import math
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import get_args

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.address import HeadOrder, View
from txcls.app import menu
from txcls.app.shell import checkpoints, compute, heads, layout, lecture, state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import load_classifier, loading_placeholder
from txcls.figures import attention_map, minus, number_map, visible
from txcls.inspection.ablation import AblationMethod
from txcls.inspection.stories import (
    HeadAtlas,
    HeadRecord,
    Lists,
    all_heads_sentence,
    sentence,
    spare_sentence,
    worth_words,
)
from txcls.predictor import Predictor

ORDERS: dict[HeadOrder, str] = {
    "story": "confirmed",
    "worth": "worth",
    "entropy": "entropy",
    "number": "layer",
}
ABOUT_TESTS = (
    "A story says on which words a head puts its weight. It is found, and parts that add little are left out, on "
    "validation texts, and tested on test texts: the weights of the queries that it is about are replaced by those of "
    "the story, by uniform ones and, as a control, by weight on as many other words or the same list shuffled among "
    "words of like frequency. The story is **confirmed** if it brings back at least 0.8 of the accuracy lost with "
    "uniform weights (the lower end of the interval above 0.3), the control at most 0.3, and at least half of the "
    "head’s own weight is where the story says. Where the story’s key is the model’s own answer (the team that it then "
    "names), this shows that the row is enough to name a team, not how the team is found."
)
ABLATION_TITLES: dict[AblationMethod, str] = {
    "mean": "output at its mean",
    "zero": "output at zero",
    "uniform": "uniform weights",
}
MAX_LISTED = 4
"""Maximum number of heads listed before a button shows the rest."""
HEADS_OF_A_SLIDE = 2
"""Heads on a slide in lecture mode, and in a row otherwise."""
MAX_TOKENS = 18
"""Maximum number of tokens of a sentence on a card."""
N_HEAVIEST = 6
"""How many of a list's heaviest words are named above the map."""
HEAVIEST, LIGHTEST = 24, 8
"""How many of a list's heaviest and lightest words are shown, in addition to those of the sentence."""


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.ATLAS, has_box=False)
    placeholder = loading_placeholder(opened, height=480)
    classifier = load_classifier(opened)
    placeholder.empty()
    atlas = HeadAtlas.of(classifier)
    if atlas is None:
        _not_measured(opened, classifier)
    else:
        opened = heads.open_on_head(opened, classifier)
        with lecture.slide(lecture.ATTENTION):
            _summary(atlas)
            first = st.container()
            places = [(record.story.story.layer, record.story.story.head) for record in atlas.heads]
            heads.link_where_heads_matter(classifier, places, target=menu.ATLAS)
        _heads(opened, classifier, atlas, first)
        with lecture.slide(f"{lecture.ATTENTION}.{opened.view.layer}"):
            _kinds(opened, atlas)
    layout.close_page(opened)


def _not_measured(opened: layout.Page, classifier: Predictor) -> None:
    """Explain how to measure an atlas, and list the checkpoints that have one."""
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
                layout.link_to(shown, menu.ATLAS, f"{plain(visible(name))} →")


def _summary(atlas: HeadAtlas) -> None:
    n = _n_confirmed(atlas)
    st.html(
        f'<div class="txcls-answer">{n} of {len(atlas.heads)}<small>heads have a story confirmed by intervention'
        "</small></div>"
    )
    with st.container(key="atlas_terms"):
        st.html(f'<p class="txcls-terms">{heads.TERMS}</p>')
    if lecture.is_on() or not _n_confirmed(atlas):
        _all_together(atlas)


def _n_confirmed(atlas: HeadAtlas) -> int:
    return sum(head.story.verdict == "confirmed" for head in atlas.heads)


def _all_together(atlas: HeadAtlas) -> None:
    """Draw what all heads together, and all that can be spared, are worth."""
    st.markdown(" ".join(filter(None, (all_heads_sentence(atlas), spare_sentence(atlas)))))


def _seed_choice(classifier: Predictor) -> str:
    """How the seed of this checkpoint was chosen, if that is known: it limits what the stories say about others."""
    training = classifier.checkpoint.metrics.get("training", {})
    choice = training.get("seed_choice")
    return f" This checkpoint was trained with seed {training.get('seed')}, {choice}." if choice else ""


def _heads(opened: layout.Page, classifier: Predictor, atlas: HeadAtlas, first: DeltaGenerator) -> None:
    """Draw a card for each head; in lecture mode, the first heads are in the container `first`, the rest on slides."""
    view = opened.view
    choice(st, "Sort by", get_args(HeadOrder), view, "sort", key="atlas_sort", names=ORDERS.__getitem__)
    texts = compute.clearest_texts(opened.source)
    order = sorted(range(len(atlas.heads)), key=lambda n: _rank(atlas, n, view.sort))
    more = f"atlas_all_{opened.source.name}"
    listed = order if st.session_state.get(more) or len(order) <= MAX_LISTED else order[:MAX_LISTED]
    for start in range(0, len(listed), HEADS_OF_A_SLIDE):
        row = listed[start : start + HEADS_OF_A_SLIDE]
        layers = sorted({atlas.heads[n].story.story.layer for n in row})
        slide = first if lecture.is_on() and not start else None
        with slide or lecture.slide(*(f"{lecture.ATTENTION}.{layer}" for layer in layers)):
            for column, n in zip(st.columns(HEADS_OF_A_SLIDE, gap="medium"), row, strict=False):
                with column:
                    _card(opened, classifier, atlas, n, texts[n])
    if len(listed) < len(order):
        st.button(f"Show {len(order) - len(listed)} more heads", on_click=_show_all, args=(more,), key="atlas_more")
    if not lecture.is_on() and _n_confirmed(atlas):
        _all_together(atlas)
    with st.expander("How this was measured"):
        st.markdown(ABOUT_TESTS)
        st.markdown(
            f"On {atlas.split} texts: worth on {atlas.n:,}, stories and attention on {atlas.n_stories:,}; the stories "
            f"were chosen on {atlas.n_validation:,} validation texts. Worth: the accuracy lost, in percentage points, "
            "when only this head’s output is replaced by its mean over texts. Brought back: the share of the accuracy "
            "lost with uniform weights that the story restores (95 % interval over texts). Entropy: that of a query’s "
            "weights; 1 for uniform weights. Each sentence is the clearest example: most are less clear."
            + plain(_seed_choice(classifier))
        )


def _show_all(key: str) -> None:
    st.session_state[key] = True


def _rank(atlas: HeadAtlas, n: int, order: HeadOrder) -> tuple[float, ...]:
    record = atlas.heads[n]
    by: dict[HeadOrder, tuple[float, ...]] = {
        "story": record.rank,
        "worth": (-record.worth,),
        "entropy": (float(atlas.table.entropy.ravel()[n]),),
        "number": (),
    }
    return (*by[order], n)


def _card(opened: layout.Page, classifier: Predictor, atlas: HeadAtlas, n: int, text: str) -> None:
    """Draw a head: its story and worth, its map on a clear sentence, and an expander with its metrics."""
    record = atlas.heads[n]
    layer, head = record.story.story.layer, record.story.story.head
    name = f"{layer + 1}.{head + 1}"
    traced = compute.patterns(opened.source, text)
    tokens, pattern = traced.tokens[:MAX_TOKENS], traced.attention[layer, head]
    lists = record.story.story.lists if record.story.verdict != "wrong" else None
    by_weight = _by_weight(lists, compute.spellings(opened.source)) if lists is not None else []
    with st.container(border=True, key=f"atlas_head_{layer}_{head}"):
        st.html(
            f'<div class="txcls-head"><b>Head {name}</b> {heads.verdict_html(record)} <b>{worth_words(record)}</b>'
            f"<p>{html.escape(sentence(record.story) + _heaviest(by_weight))}</p></div>"
        )
        cut = len(traced.tokens) > MAX_TOKENS
        chart(
            attention_map(
                pattern[:MAX_TOKENS, :MAX_TOKENS],
                tokens,
                elsewhere=pattern[:MAX_TOKENS, MAX_TOKENS:].sum(axis=1) if cut else None,
            ),
            key=f"chart_head_{layer}_{head}",
            alt=f"Heat map of the attention of head {name} over {len(tokens)} tokens of “{text[:80]}”",
        )
        if by_weight:
            st.html(_word_list(by_weight, {token.id for token in classifier.encoder.encode(text).tokens}))
        if lecture.is_on():
            return
        with st.expander("Figures"):
            st.html(_figures(record, float(atlas.table.entropy[layer, head])))
            chosen = (layer, head) == (opened.view.layer, opened.view.head)
            st.button(
                f"Kinds of {name} are shown below" if chosen else f"Show kinds of {name}",
                key=f"atlas_kinds_{layer}_{head}",
                on_click=state.change_view,
                kwargs={"layer": layer, "head": head},
                disabled=chosen,
            )
        there = replace(opened, view=replace(opened.view, text=text, layer=layer, head=head))
        layout.link_to(there, menu.ATTENTION, f"Head {name} on this sentence →")


def _by_weight(lists: Lists, words: Sequence[str]) -> list[tuple[int, str, float]]:
    """The words of a list by decreasing weight: id, spelling and weight; none if the story has no list of words."""
    if lists.words is None:
        return []
    order = map(int, np.argsort(-lists.words, kind="stable"))
    return [(word, words[word].strip(), float(lists.words[word])) for word in order if words[word].strip()]


def _heaviest(by_weight: Sequence[tuple[int, str, float]]) -> str:
    """The end of a story's sentence, with its heaviest words; "" for a story without a list of words."""
    names = [name for _, spelling, _ in by_weight if (name := visible(spelling.strip(" ␣")))]
    return f"; the heaviest: {', '.join(names[:N_HEAVIEST])}" if names else ""


def _word_list(by_weight: Sequence[tuple[int, str, float]], ids: Set[int]) -> str:
    """The heaviest and lightest words of a list and those of the sentence (marked), by decreasing weight."""
    shown = {word for word, _, _ in (*by_weight[:HEAVIEST], *by_weight[-LIGHTEST:])} | ids
    items = []
    for word, spelling, weight in by_weight:
        if word in shown:
            tag = "mark" if word in ids else "span"
            items.append(f'<{tag} title="{weight:+.1f}">{html.escape(visible(spelling))}</{tag}>')
    return (
        '<div class="txcls-word-list"><small>Words by weight, heaviest first (marked: in this sentence)</small>'
        f"<p>{' '.join(items)}</p></div>"
    )


def _figures(record: HeadRecord, entropy: float) -> str:
    """The metrics of a head as a small HTML table."""
    story = record.story
    lost = " · ".join(f"{name} <b>{_points(record.lost[how])}</b>" for how, name in ABLATION_TITLES.items())
    if story.verdict == "idle":
        lost_there = _points(story.accuracy - story.even)
        back = f"not computed: uniform weights for these queries cost <b>{lost_there} points</b> of {story.n:,} texts"
    else:
        low, high = story.interval
        interval = "" if math.isnan(low) else f" ({_two(low)} to {_two(high)})"
        control = "" if math.isnan(story.control_share) else f", control <b>{_two(story.control_share)}</b>"
        back = f"<b>{_two(story.share)}</b>{interval}{control}"
    attends = " / ".join(
        f"{weight:.2f}" + ("" if math.isnan(even) else f" (uniform {even:.2f})")
        for weight, even in zip(story.attention, story.chance, strict=True)
        if not math.isnan(weight)
    )
    rows = (
        ("story tested", html.escape(str(story.story))),
        ("brought back", back),
        ("points lost", lost),
        ("overlap of the weights" if story.story.lists is not None else "own weight there", attends),
        ("entropy", f"<b>{entropy:.2f}</b> of uniform"),
    )
    cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows if value)
    return f'<table class="txcls-head-figures">{cells}</table>'


def _kinds(opened: layout.Page, atlas: HeadAtlas) -> None:
    """Draw the attention of the selected head by kinds of query and key, compared with uniform weights."""
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
        "The mean weight of queries of one kind (rows) on keys of one kind (columns), minus the uniform weight, over "
        "the texts that have such a key. A token can be of several kinds, so rows do not sum to 0. Largest: "
        f"{table.queries[query]} → {table.keys[key]}, {table.attention[layer, head, query, key]:.2f} (uniform weights: "
        f"{table.chance[query, key]:.2f}). This is only a picture; the test above says whether it matters."
    )


def _points(worth: float) -> str:
    return minus(f"{round(100 * worth, 1) + 0.0:.1f}")  # + 0.0 turns -0.0 into 0.0


def _two(value: float) -> str:
    return minus(f"{round(value, 2) + 0.0:.2f}")


if __name__ == "__main__":
    main()
