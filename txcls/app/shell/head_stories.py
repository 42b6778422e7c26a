"""What is known about a checkpoint's heads, on every page that shows them: worth, tested stories, and where to look."""

import html
from collections.abc import Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import pages
from txcls.app.shell import lecture, loading, state
from txcls.data.examples import REPORTS
from txcls.inspection.ablation import AccuracyEffects
from txcls.inspection.stories import MARKS, HeadAtlas, HeadRecord, chip, verdict_words
from txcls.inspection.stories.measured import IDLE
from txcls.predictor import Predictor

HEADS_MATTER = "who_won"
"""The checkpoint in which heads decide."""
MOST_CHIPS, MOST_CHIPS_OF_A_SLIDE = 8, 3
"""Most heads whose chips stand below one another, usually and in lecture mode; the Head atlas has all."""

Floats = NDArray[np.floating]


def atlas_of(classifier: Predictor) -> HeadAtlas | None:
    """The checkpoint's atlas, None if it has none."""
    return HeadAtlas.of(classifier)


def worth_of_heads(classifier: Predictor) -> Floats:
    """What each head is worth, (L, H): the accuracy lost when its weights are made even, by the checkpoint's atlas.

    Without an atlas the accuracy lost without the head; zeros if that was not measured either.
    """
    config = classifier.checkpoint.config.model
    if (atlas := atlas_of(classifier)) is not None:
        worth = [one.worth["uniform"] for one in atlas.heads]
        return np.array(worth).reshape(config.n_layers, config.n_heads)
    if (effects := AccuracyEffects.of(classifier)) is not None:
        return effects.accuracy - effects.heads
    return np.zeros((config.n_layers, config.n_heads))


def chip_html(record: HeadRecord, *, named: bool = False) -> str:
    """A head's story, verdict and worth in one line, as HTML; `named` puts layer and head before it."""
    story = record.story.story
    name = f"<b>{story.layer + 1}.{story.head + 1}</b> " if named else ""
    verdict = record.story.verdict
    mark = f'<span aria-hidden="true">{MARKS[verdict]}</span>'
    kind = verdict.replace(" ", "-")
    return f'<span class="txcls-story {kind}">{name}{mark} {html.escape(chip(record))}</span>'


def verdict_html(record: HeadRecord) -> str:
    """The verdict alone, as HTML."""
    verdict = record.story.verdict
    words = f'<span aria-hidden="true">{MARKS[verdict]}</span> {html.escape(verdict_words(record.story))}'
    return f'<span class="txcls-story {verdict.replace(" ", "-")}">{words}</span>'


def draw_chip(classifier: Predictor, layer: int, head: int) -> None:
    """The chip of one head, and the offer of another model if it is idle; nothing if nothing was measured."""
    if (atlas := atlas_of(classifier)) is not None:
        record = atlas.heads[layer * classifier.checkpoint.config.model.n_heads + head]
        st.html(f'<div class="txcls-stories">{chip_html(record)}</div>')
    offer_where_heads_matter(classifier, [(layer, head)])


def draw_chips(classifier: Predictor) -> None:
    """The chips of all heads, or of those that are worth most."""
    atlas = atlas_of(classifier)
    if atlas is None:
        return
    most = MOST_CHIPS_OF_A_SLIDE if lecture.is_on() else MOST_CHIPS
    best = sorted(atlas.heads, key=lambda one: -one.worth["uniform"])[:most]
    chips = "".join(chip_html(record, named=True) for record in best)
    st.html(f'<div class="txcls-stories several">{chips}</div>')
    if len(best) < len(atlas.heads):
        st.caption(f"The {most} heads that are worth most, of {len(atlas.heads)}.")


def offer_where_heads_matter(
    classifier: Predictor, shown: Sequence[tuple[int, int]], *, there: pages.PageInfo = pages.ATTENTION
) -> None:
    """If one of the shown heads is idle, a link to the model in which heads decide, if it is among the checkpoints.

    Args:
        classifier: the shown one.
        shown: layer and head of each head that the visitor looks at.
        there: the page that the link opens.
    """
    if classifier.name == HEADS_MATTER or HEADS_MATTER not in loading.names():
        return
    idle = idle_heads(classifier, shown)
    if not idle:
        return
    if len(idle) > 1:
        which, it = f"{len(idle)} of {len(shown)} heads are idle", "any one of them"
    else:
        [(layer, head)] = idle
        which, it = f"Head {layer + 1}.{head + 1} is idle", "it"
    means = f"what {it} attends to" if atlas_of(classifier) is not None else f"leaving {it} out"
    st.page_link(
        there.path,
        label=f"{which}: {means} hardly changes the accuracy. In {HEADS_MATTER} heads decide the answer →",
        query_params=state.link_params(state.View(checkpoint=HEADS_MATTER, text=REPORTS[0].text)),
    )


def idle_heads(classifier: Predictor, shown: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those that were measured, and cost next to no accuracy when their weights are even (or they are off)."""
    if atlas_of(classifier) is None and AccuracyEffects.of(classifier) is None:
        return []
    worth = worth_of_heads(classifier)
    return [place for place in shown if worth[place] < IDLE]
