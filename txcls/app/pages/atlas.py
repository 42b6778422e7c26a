"""All heads of a checkpoint: a card for each, with its attention map, its tested story and its worth."""

import html
import math
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import get_args

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app import menu
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, checkpoints, heads, layout, lecture, view_state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import load_classifier, loading_placeholder, say_not_measured
from txcls.checkpoint.card import points_number
from txcls.figures import attention_map, minus, number_map, visible
from txcls.figures.style import FRAME, SCALE_BELOW, frame_cells
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import AblationMethod
from txcls.inspection.stories import (
    HeadAtlas,
    HeadRecord,
    Lists,
    all_heads_sentence,
    sentence,
    shows_clauses,
    shows_words,
    spare_sentence,
    verdict_and_test,
    worth_words,
)
from txcls.lessons.page_address import HeadOrder, View
from txcls.text.vocabulary import SPECIAL_TOKENS
from txcls.wording import signed

ORDER_NAMES: dict[HeadOrder, str] = {
    "worth": "worth",
    "story": "confirmed",
    "entropy": "entropy",
    "number": "layer",
}
ABOUT_STORIES = (
    "A story says which words a head attends to. Stories are chosen on validation texts (in newer measurements, "
    "without parts that add little) and tested on test texts: the weights of the queries that a story covers are "
    "replaced by the story’s weights, by uniform weights and, as a control, by weights on as many other words (one "
    "random draw) or on shuffled lists (words among those of similar frequency, distances among all; several draws, or "
    "one in older measurements). "
    "A story is tested only if uniform weights cost at least 0.5 points on these texts; on all test rows they may cost "
    "less. It is **confirmed** if it restores at least 0.8 of the accuracy lost with uniform weights (lower end of the "
    "interval above 0.3), the control restores at most 0.3, and at least half of the head’s weight is where the story "
    "says. It is **partly confirmed** if it restores at least 0.3, with an interval above 0 and above the control, and "
    "**refuted** if the interval ends below 0.3; otherwise **undecided**: the texts are too few to say, or the control "
    "restores more. The conditions on half of the weight and, for the last two, on the intervals were set after a "
    "first look at the results."
)
ABLATION_NAMES: dict[AblationMethod, str] = {
    "mean": "output at its mean",
    "zero": "output at zero",
    "uniform": "uniform weights",
}
MAP = "each row is a token; its bright cells are the tokens it attends to"
MAX_LISTED = 4
"""Maximum number of cards drawn before a button shows the rest."""
HEADS_PER_ROW = 2
"""Number of heads in a row, and on a slide of a lesson, which compares them; other slides have one, beside its map."""
MAX_TOKENS = 18
"""Maximum number of tokens of a sentence on a card; on a slide, too, there is room for all their names."""
HEAVIEST, LIGHTEST = 24, 8
"""Number of a list's words with the highest and lowest weights below the map, in addition to the sentence's words."""


def main() -> None:
    """Draw the page."""
    is_named = bool({"checkpoint", "lesson"} & set(st.query_params))
    page = layout.open_page(
        menu.ATLAS,
        has_box=False,
        supports=lambda checkpoint: is_named or checkpoint.confirmed,
        why_not="has no head with a confirmed story",
    )
    placeholder = loading_placeholder(page, height=480)
    classifier = load_classifier(page)
    placeholder.empty()
    atlas = HeadAtlas.of(classifier)
    if atlas is None:
        _draw_not_measured(page)
    else:
        page = heads.open_on_head(page, classifier)
        with lecture.slide(lecture.ATTENTION):
            _draw_summary(atlas)
            first_slide = st.container()
            heads_shown = [(record.story.story.layer, record.story.story.head) for record in atlas.heads]
            heads.link_where_heads_matter(classifier, heads_shown, target=menu.ATLAS)
        _draw_cards(page, classifier, atlas, first_slide)
        with lecture.slide(f"{lecture.ATTENTION}.{page.view.layer}"):
            _draw_kinds(page, atlas)
    layout.close_page(page)


def _draw_not_measured(page: layout.Page) -> None:
    """Explain how to measure an atlas, and list the checkpoints that have one."""
    say_not_measured(page, "--heads")
    others = [name for name in checkpoints.names() if checkpoints.summary(name).has_atlas]
    if others:
        st.markdown("These checkpoints have a head atlas:")
        with st.container(horizontal=True, gap="medium"):
            for name in others:
                shown = replace(page, view=View(checkpoint=name, text=page.view.text, mode=page.view.mode))
                layout.link_to(shown, menu.ATLAS, f"{plain(visible(name))} →")


def _draw_summary(atlas: HeadAtlas) -> None:
    """Draw which head is worth most."""
    best = max(atlas.heads, key=lambda head: head.worth)
    points = points_number(best.worth)
    st.html(
        f'<div class="txcls-answer">{points} points<small>of accuracy are lost without head {best.head_name}'
        f"<span>: {points} more of 100 answers are wrong</span></small></div>"
    )


def _about_cards(atlas: HeadAtlas, n_texts: int) -> str:
    """What is on a card, and how many heads have a confirmed story."""
    n_confirmed = sum(head.story.verdict == "confirmed" for head in atlas.heads)
    return (
        f"Each card is a head. In its map, {MAP}. <span>1.2 means layer 1, head 2. Each map shows the clearest of "
        f"{n_texts} texts. A test confirmed the sentence on {n_confirmed} of {len(atlas.heads)} cards.</span>"
    )


def _draw_terms(records: Sequence[HeadRecord]) -> None:
    st.html(f'<p class="txcls-terms">{heads.terms(records)} <b>Map</b>: {MAP}.</p>')


def _seed_sentence(classifier: Predictor) -> str:
    """A sentence on how the seed of this checkpoint was chosen, if known; other seeds may give other stories."""
    training = classifier.checkpoint.metrics.get("training", {})
    reason = training.get("seed_choice")
    return f" This checkpoint was trained with seed {training.get('seed')}, {reason}." if reason else ""


def _draw_cards(page: layout.Page, classifier: Predictor, atlas: HeadAtlas, first_slide: DeltaGenerator) -> None:
    """Draw a card for each head; in lecture mode, the first ones in `first_slide`, the others on slides."""
    view = page.view
    has_confirmed = any(record.story.verdict == "confirmed" for record in atlas.heads)
    orders = [order for order in get_args(HeadOrder) if has_confirmed or order != "story"]
    chosen: HeadOrder = view.sort if view.sort in orders else "worth"
    clearest, n_texts = cached_results.clearest_texts(page.source)
    about, controls = st.columns([2, 1], gap="medium")
    terms = f"<details><summary>what do these words mean?</summary>{heads.terms(atlas.heads)}</details>"
    about.html(f'<div class="txcls-terms">{_about_cards(atlas, n_texts)} {terms}</div>')
    names = ORDER_NAMES.__getitem__
    choice(controls, "Sort by", orders, view, "sort", key="atlas_sort", names=names, selected=chosen)
    order = sorted(range(len(atlas.heads)), key=lambda n: _sort_key(atlas, n, chosen))
    show_all_key = f"atlas_all_{page.source.name}"
    shown = order if st.session_state.get(show_all_key) or len(order) <= MAX_LISTED else order[:MAX_LISTED]
    per_row = 1 if _is_alone() else HEADS_PER_ROW
    for start in range(0, len(shown), per_row):
        row = shown[start : start + per_row]
        layers = sorted({atlas.heads[n].story.story.layer for n in row})
        slide = first_slide if lecture.is_on() and not start else None
        with slide or lecture.slide(*(f"{lecture.ATTENTION}.{layer}" for layer in layers)):
            if lecture.is_on() and not _is_alone():
                _draw_terms([atlas.heads[n] for n in row])
            for column, n in zip(st.columns(per_row, gap="medium"), row, strict=False):
                with column:
                    _draw_card(page, classifier, atlas, n, clearest[n])
    if len(shown) < len(order):
        st.button(
            f"Show {len(order) - len(shown)} more heads", on_click=_show_all, args=(show_all_key,), key="atlas_more"
        )
    if not lecture.is_on():
        st.markdown(" ".join(filter(None, (all_heads_sentence(atlas), spare_sentence(atlas)))))
    with st.expander("How this was measured"):
        st.markdown(ABOUT_STORIES)
        st.html(
            f'<p class="txcls-terms">{heads.kinds_html(heads.KINDS)} Typical words have a z-score of the log-odds '
            "ratio above 4.</p>"
        )
        has_intervals = atlas.heads[0].changed is not None
        shortened = " (and shortened on more)" if any(h.story.is_minimal for h in atlas.heads) else ""
        has_confirmed = any(head.story.verdict == "confirmed" for head in atlas.heads)
        sorts = "; sorted by “confirmed”, heads of the same verdict follow its lower end" if has_confirmed else ""
        interval = f", with its 95 % interval (paired, Agresti & Min 2005){sorts}"
        st.markdown(
            f"Worth was measured on {atlas.n:,} {atlas.split} texts, attention on {atlas.n_stories:,}, each story on "
            "those of them that have its queries and keys; stories were chosen on "
            f"{atlas.n_validation:,} validation texts{shortened}. Worth: the accuracy lost, in "
            "percentage points, when only this head’s output is replaced by its mean over texts"
            f"{interval if has_intervals else ''}. Restored: the share of the accuracy lost with uniform weights that "
            "the story restores (95 % interval over texts). Entropy: of a "
            "query’s weights, divided by that of uniform weights." + plain(_seed_sentence(classifier))
        )


def _is_alone() -> bool:
    """Whether a head has a slide of its own, with room for the names of all tokens."""
    return lecture.is_on() and lesson.now() is None


def _show_all(key: str) -> None:
    st.session_state[key] = True


def _sort_key(atlas: HeadAtlas, n: int, order: HeadOrder) -> tuple[float, ...]:
    record = atlas.heads[n]
    keys: dict[HeadOrder, tuple[float, ...]] = {
        "story": record.rank,
        "worth": (-record.worth,),
        "entropy": (float(atlas.table.entropy.ravel()[n]),),
        "number": (),
    }
    return (*keys[order], n)


def _draw_card(
    page: layout.Page,
    classifier: Predictor,
    atlas: HeadAtlas,
    n: int,
    clearest: tuple[str, tuple[int, int] | None],
) -> None:
    """Draw a head: its story and worth, its map for a clear example, and an expander with its metrics."""
    record = atlas.heads[n]
    text, pair = clearest
    layer, head = record.story.story.layer, record.story.story.head
    name = record.head_name
    has_room = not lecture.is_on() or _is_alone()  # for more than the map beside that of another head
    traced = cached_results.patterns(page.source, text)
    tokens, pattern = traced.tokens[:MAX_TOKENS], traced.attention[layer, head]
    lists = record.story.story.lists if shows_words(record.story) else None
    words = _words_by_weight(lists, cached_results.token_strings(page.source)) if lists is not None else []
    ids = {token.id for token in classifier.tokenizer.encode(text).tokens}
    if pair is not None and (max(pair) >= len(tokens) or not shows_clauses(record.story)):
        pair = None  # nothing to frame
    story = sentence(record.story).partition(" (")[0]  # the figures in brackets are in the metrics
    test = verdict_and_test(record)[1]
    framed = ""
    if pair is not None:
        names = " → ".join(visible(tokens[position].text.strip()) for position in pair)
        framed = f'<div class="txcls-notes">Framed: {html.escape(names)}.</div>'
    with st.container(border=True, key=f"atlas_head_{layer}_{head}"):
        about, map_place = st.columns([2, 3], gap="medium") if _is_alone() else (st.container(), st.container())
        below = about if _is_alone() else st.container()
        about.html(
            f'<div class="txcls-head"><p><b>Head {name}</b> · {html.escape(story + _heaviest_word(words, ids))}</p>'
            f"<b>worth {worth_words(record)}</b> {heads.verdict_html(record)}</div>{framed}"
        )
        is_cut = len(traced.tokens) > MAX_TOKENS
        figure = attention_map(
            pattern[:MAX_TOKENS, :MAX_TOKENS],
            tokens,
            rows="query (attends)",
            columns="key (attended to)",
            elsewhere=pattern[:MAX_TOKENS, MAX_TOKENS:].sum(axis=1) if is_cut else None,
        )
        figure.update_layout(coloraxis_showscale=has_room)
        if pair is not None:
            query, key = pair
            frame_cells(figure, (query, query + 1), (key, key + 1), colour=FRAME, width=3)
        if not lecture.is_on():  # the scale below the map: above it, the map would end below a small window
            figure.update_layout(
                coloraxis_colorbar=SCALE_BELOW,
                height=max(310, 162 + 15 * len(tokens)),
                yaxis_tickfont_size=13,  # for rows 14 px high
            )
        with map_place:
            chart(
                figure,
                key=f"chart_head_{layer}_{head}",
                alt=f"Heat map of the attention of head {name} over {len(tokens)} tokens of “{text[:80]}”",
            )
        if test:
            below.html(f'<div class="txcls-notes">{html.escape(f"{test[0].upper()}{test[1:]}.")}</div>')
        if _is_alone():
            with about:
                _draw_terms([record])
        if words and has_room:
            with below:
                st.html(_word_list_html(words, ids))
        if lecture.is_on():
            return
        with st.expander("Metrics"):
            st.html(_metrics_html(record, float(atlas.table.entropy[layer, head])))
            is_selected = (layer, head) == (page.view.layer, page.view.head)
            st.button(
                f"Kinds of {name} are shown below" if is_selected else f"Show kinds of {name}",
                key=f"atlas_kinds_{layer}_{head}",
                on_click=view_state.change_view,
                kwargs={"layer": layer, "head": head},
                disabled=is_selected,
            )
        on_this_text = replace(page, view=replace(page.view, text=text, layer=layer, head=head))
        layout.link_to(on_this_text, menu.ATTENTION, f"Head {name} on this sentence →")


def _words_by_weight(lists: Lists, token_strings: Sequence[str]) -> list[tuple[int, str, float]]:
    """A story's words by decreasing weight: id, spelling and weight; empty if the story has no list of words."""
    if lists.words is None:
        return []
    order = [int(n) for n in np.argsort(-lists.words, kind="stable") if n >= len(SPECIAL_TOKENS)]
    return [(n, token_strings[n].strip(), float(lists.words[n])) for n in order if token_strings[n].strip()]


def _heaviest_word(words: Sequence[tuple[int, str, float]], ids: Set[int]) -> str:
    """The end of a story's sentence: the text's word with the highest weight; "" for a story without a word list."""
    names = [name for n, spelling, _ in words if n in ids and (name := visible(spelling.strip(" ␣")))]
    return f"; in this text, most on “{names[0]}”" if names else ""


def _word_list_html(words: Sequence[tuple[int, str, float]], ids: Set[int]) -> str:
    """A list's words with the highest and lowest weights and the sentence's words (marked), as HTML."""
    shown = {word_id for word_id, _, _ in (*words[:HEAVIEST], *words[-LIGHTEST:])} | ids
    items = []
    for word_id, spelling, weight in words:
        if word_id in shown:
            tag = "mark" if word_id in ids else "span"
            items.append(f'<{tag} title="{signed(weight)}">{html.escape(visible(spelling))}</{tag}>')
    return (
        '<div class="txcls-word-list"><small>Words by weight, largest first (marked: in this sentence)</small>'
        f"<p>{' '.join(items)}</p></div>"
    )


def _metrics_html(record: HeadRecord, entropy: float) -> str:
    """The metrics of a head as a small HTML table."""
    story = record.story
    points_lost = " · ".join(f"{name} <b>{_points(record.lost[how])}</b>" for how, name in ABLATION_NAMES.items())
    if story.verdict == "idle":
        points = _points(story.accuracy - story.uniform)
        restored = (
            f"too little is lost to judge: uniform weights for these queries cost <b>{points} points</b> on "
            f"{story.n:,} texts"
        )
    elif story.story.has_leak:
        restored = "not shown: its queries depend on the prediction"
    else:
        low, high = story.interval
        interval = "" if math.isnan(low) else f" ({_two_decimals(low)} to {_two_decimals(high)})"
        control = "" if math.isnan(story.control_share) else f", control <b>{_two_decimals(story.control_share)}</b>"
        if story.control_range is not None:
            control += f" ({' to '.join(_two_decimals(story.share_of(end)) for end in story.control_range)} by draw)"
        elif control and story.story.lists is not None:
            control += " (one draw)"
        restored = f"<b>{_two_decimals(story.share)}</b>{interval}{control}"
    attention = " / ".join(
        f"{weight:.2f}" + ("" if math.isnan(uniform) else f" (uniform {uniform:.2f})")
        for weight, uniform in zip(story.attention, story.chance, strict=True)
        if not math.isnan(weight)
    )
    rows = (
        ("story", "not described" if story.story.has_leak else html.escape(str(story.story))),
        ("in words", html.escape(sentence(story))),
        ("restored", restored),
        ("points lost", points_lost),
        ("overlap of the weights" if story.story.lists is not None else "head’s weight there", attention),
        ("entropy", f"<b>{entropy:.2f}</b> of uniform"),
    )
    cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows if value)
    return f'<table class="txcls-head-figures">{cells}</table>'


def _draw_kinds(page: layout.Page, atlas: HeadAtlas) -> None:
    """Draw the attention of the selected head by kinds of query and key, compared with uniform weights."""
    layer, head = page.view.layer, page.view.head
    table = atlas.table
    st.subheader(
        f"Head {layer + 1}.{head + 1}: attention by kind of token, compared with uniform attention", anchor=False
    )
    difference = np.where(table.coverage > 0, table.attention[layer, head] - table.chance, np.nan)
    query, key = np.unravel_index(int(np.nanargmax(difference)), difference.shape)
    about, map_place = st.columns([2, 5], gap="medium") if lecture.is_on() else (st.container(), st.container())
    about.html(
        '<p class="txcls-terms">Mean weight of queries of one kind (rows) on keys of one kind (columns), minus that of '
        f"uniform attention. Largest: {table.queries[query]} → {table.keys[key]}, "
        f"{table.attention[layer, head, query, key]:.2f} instead of {table.chance[query, key]:.2f}. Empty: no text has "
        f"such a pair. {heads.kinds_html({*table.queries, *table.keys})}</p>"
    )
    figure = number_map(
        difference,
        rows=table.queries,
        columns=table.keys,
        row_title="query",
        column_title="key",
        bound=max(0.1, float(np.nanmax(np.abs(difference)))),
        row_height=42,
        digits=2,
    )
    with map_place:
        chart(
            figure.update_layout(coloraxis_colorbar_title_text="difference"),
            key="chart_kinds",
            alt=f"Heat map of the attention of head {layer + 1}.{head + 1} minus uniform weights, "
            f"{len(table.queries)} kinds of queries by {len(table.keys)} kinds of keys; largest: "
            f"{table.queries[query]} to {table.keys[key]}, {signed(difference[query, key], 2)}",
        )
    st.caption(
        "Averaged over the queries that have such a key. A token can be of several kinds, so rows do not sum to 0. The "
        "map does not show whether this attention matters; the head’s card says whether its story was tested."
    )


def _points(fraction: float) -> str:
    return minus(f"{round(100 * fraction, 1) + 0.0:.1f}")  # + 0.0 turns -0.0 into 0.0


def _two_decimals(value: float) -> str:
    return minus(f"{round(value, 2) + 0.0:.2f}")


if __name__ == "__main__":
    main()
