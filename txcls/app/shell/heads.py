"""What pages show about attention heads: worth, tested stories, the head shown first, and selectors."""

import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from txcls.app import menu
from txcls.app.shell import checkpoints, layout, lecture, view_state
from txcls.checkpoint.card import CLEAR, MIN_CLEAR_RATIO, needs_two_decimals, points_number
from txcls.data.examples import REPORTS
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation_on_rows import AccuracyEffects
from txcls.inspection.stories import VERDICT_MARKS, HeadAtlas, HeadRecord, chip, sentence, verdict_and_test
from txcls.inspection.stories.kinds import AGREEING, ATTRACTOR, NAMED, NOT_NAMED
from txcls.lessons.page_address import UNSET, View
from txcls.wording import percentage

CHECKPOINT_WHERE_HEADS_MATTER = "who_won"
"""A checkpoint in which replacing a single head can cost much accuracy."""
MAX_CHIPS, MAX_CHIPS_ON_A_SLIDE = 8, 3
"""Maximum number of heads listed with their story, normally and in lecture mode; the Head atlas shows all."""
KINDS = {
    "class token": "added before the text.",
    "rare word": "unknown, or among the least frequent, together 5 % of the training texts.",
    "typical word": "one of up to 20 that are most typical of a class.",
    "negation": "not, no, never and the like.",
    "first team": "named first in the reported match.",
    "second team": "named second in the reported match.",
    "verb": "says who won.",
    "other team": "of another match.",
    "other verb": "of another match.",
    "marker": "can reverse who won: “to” in “lost to”, “were … by”, “that”.",
    NAMED: "the team that the model predicts.",
    NOT_NAMED: "the other team of that match.",
    AGREEING: "the last noun of the predicted number.",
    ATTRACTOR: "later nouns of the other number.",
    "word list": "a fixed weight for each word of the vocabulary, whatever the query’s word.",
    "distance": "a fixed weight for each distance between query and key, whatever the query’s word.",
}
"""Definitions of the kinds of tokens in stories that are not obvious."""

Floats = NDArray[np.floating]


# The head that a page shows


def open_on_head(page: layout.Page, classifier: Predictor, *, attention: Floats | None = None) -> layout.Page:
    """The page with a head selected: the one in the URL, or else the first by `HeadRecord.rank` or by worth.

    If `attention` (L, H, T, T), the attention on the page's text, is given and that head has no confirmed story, the
    head is chosen whose queries attend most to a single other token, since its map shows a visible pattern.
    """
    model = classifier.checkpoint.config.model
    page = layout.fit_view(page, checkpoint_name=page.view.checkpoint, layer=model.n_layers - 1, head=model.n_heads - 1)
    worth, atlas = _worth_of_heads(classifier), HeadAtlas.of(classifier)
    in_url = np.array([page.view.layer, page.view.head])
    candidates = [head for head in np.ndindex(worth.shape) if ((in_url == UNSET) | (in_url == head)).all()]
    if atlas is None:
        layer, head = max(candidates, key=worth.__getitem__)
    else:
        layer, head = min(candidates, key=lambda head: atlas.heads[head[0] * model.n_heads + head[1]].rank)
    is_confirmed = atlas is not None and atlas.heads[layer * model.n_heads + head].story.verdict == "confirmed"
    if attention is not None and not is_confirmed:
        to_others = np.where(np.eye(attention.shape[-1], dtype=bool), 0.0, attention)
        sharpness = to_others.max(axis=-1).mean(axis=-1)  # L H
        layer, head = max(candidates, key=sharpness.__getitem__)
    return replace(page, view=replace(page.view, layer=layer, head=head))


def choose_head(view: View, sizes: Mapping[str, int], *, row: DeltaGenerator | None = None) -> None:
    """Draw a control for each field ("layer", "head") that selects one of as many as `sizes` says.

    In a `row`, the first option has the name instead of a label above.
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
    view_state.change_view(**{field: int(st.session_state[key]) - 1, "guess": 0})


# Measurements of heads


def _worth_of_heads(classifier: Predictor) -> Floats:
    """Worth of each head (L, H): the accuracy lost when its output is replaced by its mean; zeros if not measured."""
    config = classifier.checkpoint.config.model
    if (effects := AccuracyEffects.of(classifier, method="mean")) is not None:
        return effects.accuracy - effects.heads
    return np.zeros((config.n_layers, config.n_heads))


def kinds_html(names: Collection[str]) -> str:
    """Definitions of those of the `KINDS` that are among `names`, as HTML."""
    return " ".join(f"<b>{kind.capitalize()}</b>: {meaning}" for kind, meaning in KINDS.items() if kind in names)


def terms(records: Sequence[HeadRecord]) -> str:
    """Definitions of the words on the chips and in the stories of these heads, as HTML."""
    has_intervals = all(record.changed is not None for record in records)
    verdicts = " ".join(verdict_and_test(record)[0] for record in records)
    definitions = {
        "not needed by itself": "the interval of its worth ends under half a point.",
        "hardly needed": "the interval of its worth begins above 0 and ends under half a point.",
        "looks clear": f"on average, at least {percentage(CLEAR, 0)} of the weight is where the story says, and "
        f"{MIN_CLEAR_RATIO:g} times as much as with uniform attention.",
        "no story found": "uniform weights cost half a point or more, but less for the candidate story’s queries.",
        "not tested": "uniform weights for these queries cost under half a point, too little to test a story on.",
    }
    kinds = set[str]().union(*(record.story.story.kinds for record in records))
    used = (f" <b>{term.capitalize()}</b>: {text}" for term, text in definitions.items() if term in verdicts)
    return (
        "A <b>story</b> describes what a head attends to. <b>Worth</b>: points of test accuracy lost when only this "
        "head’s output is replaced by its mean "
        f"({'95 % interval' if has_intervals else 'no interval was measured'}).{''.join(used)} {kinds_html(kinds)}"
    )


def _terms_to_open(records: Sequence[HeadRecord]) -> str:
    return f'<details class="txcls-terms"><summary>what is this?</summary>{terms(records)}</details>'


def chip_html(record: HeadRecord, *, named: bool = False, two_decimals: bool = False) -> str:
    """A head's story, verdict and worth in one line of HTML; `named` puts layer and head first."""
    name = f"<b>{record.head_name}</b> " if named else ""
    return _story_html(record, html.escape(chip(record, two_decimals=two_decimals)), before=name)


def verdict_html(record: HeadRecord) -> str:
    """Only the verdict, as HTML."""
    return _story_html(record, html.escape(verdict_and_test(record)[0]))


def _story_html(record: HeadRecord, text: str, *, before: str = "") -> str:
    verdict = record.story.verdict
    mark = f'<span aria-hidden="true">{VERDICT_MARKS[verdict]}</span>'
    return f'<span class="txcls-story {verdict.replace(" ", "-")}">{before}{mark} {text}</span>'


def draw_chip(classifier: Predictor, layer: int, head: int, *, explain: bool = False) -> None:
    """Draw the story of a head if it was measured, and a link to another model if the head can be removed.

    With `explain`, the story and the words on the chip are explained below it.
    """
    if (atlas := HeadAtlas.of(classifier)) is not None:
        record = atlas.heads[layer * classifier.checkpoint.config.model.n_heads + head]
        st.html(f'<div class="txcls-stories">{chip_html(record)}{_terms_to_open([record])}</div>')
        if explain:
            st.markdown(_explanation(record))
    link_where_heads_matter(classifier, [(layer, head)])


def _explanation(record: HeadRecord) -> str:
    """A head's story as a sentence, and what the words on its chip mean."""
    tested = ""
    if record.story.verdict == "idle":
        tested = " **Not tested**: with uniform attention instead, accuracy falls by less than half a point."
    return (
        f"{sentence(record.story)}.{tested} **Worth**: points of accuracy lost when this head’s output is replaced by "
        "its mean. All of this was measured on test texts, not on this text."
    )


def draw_chips(classifier: Predictor) -> None:
    """Draw the stories of all heads, or of the first by `HeadRecord.rank`."""
    atlas = HeadAtlas.of(classifier)
    if atlas is None:
        return
    limit = MAX_CHIPS_ON_A_SLIDE if lecture.is_on() else MAX_CHIPS
    best = sorted(atlas.heads, key=lambda record: record.rank)[:limit]
    # The same digits on all chips, whose order is that of the lower ends.
    two_decimals = any(r.changed and needs_two_decimals(r.changed.low, r.changed.high) for r in best)
    chips = "".join(chip_html(record, named=True, two_decimals=two_decimals) for record in best)
    interval = "" if best[0].changed is None else " (95 % interval)"
    about = (
        "<p><b>The heads on test texts</b>, by layer and head: what is known about their attention, and how many "
        f"points of accuracy are lost if only its output is replaced by its mean{interval}.</p>"
    )
    st.html(f'<div class="txcls-stories several">{about}{chips}{_terms_to_open(best)}</div>')
    if len(best) < len(atlas.heads):
        lower_end = "" if best[0].changed is None else " (lower end)"
        st.caption(
            f"{limit} of {len(atlas.heads)} heads, sorted by what is known (story confirmed, partly confirmed, the "
            f"rest), then by worth{lower_end}."
        )


def link_where_heads_matter(
    classifier: Predictor, heads: Sequence[tuple[int, int]], *, target: menu.PageInfo = menu.ATTENTION
) -> None:
    """Link to a model in which heads matter, if it is installed and one of `heads`, (layer, head), can be removed."""
    if classifier.name == CHECKPOINT_WHERE_HEADS_MATTER or CHECKPOINT_WHERE_HEADS_MATTER not in checkpoints.names():
        return
    removable = removable_heads(classifier, heads)
    if not removable:
        return
    atlas = HeadAtlas.of(classifier)
    if target is menu.ATLAS:  # the Head atlas itself lists them
        sentence = ""
    elif len(removable) > 1:
        together = ""
        if atlas is not None and atlas.spare_lost is not None and len(heads) == len(atlas.heads):
            together = f" (together they cost {points_number(atlas.spare_lost)}; no interval was measured)"
        sentence = (
            f"For {len(removable)} of {len(heads)} heads, even the upper end of the worth’s interval is under half a "
            f"point{together}."
        )
    else:
        [(layer, head)] = removable
        sentence = f"The interval of head {layer + 1}.{head + 1}’s worth ends under half a point."
    if sentence:
        st.caption(sentence)
    st.page_link(
        target.path,
        label=f"See {CHECKPOINT_WHERE_HEADS_MATTER}, a model in which single heads matter →",
        query_params=view_state.link_params(View(checkpoint=CHECKPOINT_WHERE_HEADS_MATTER, text=REPORTS[0].text)),
    )


def removable_heads(classifier: Predictor, heads: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of the heads that are spare (`HeadRecord.is_spare`); none if this was not measured."""
    if (atlas := HeadAtlas.of(classifier)) is None:
        return []
    n_heads = classifier.checkpoint.config.model.n_heads
    return [(layer, head) for layer, head in heads if atlas.heads[layer * n_heads + head].is_spare]
