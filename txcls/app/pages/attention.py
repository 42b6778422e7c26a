"""What each head attends to: maps of all heads, one head as a map and as arcs, and the pooling weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st

from txcls.app import menu
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, checkpoints, heads, layout, lecture, view_state
from txcls.app.shell.charts import chart, window
from txcls.app.shell.controls import PageSection, clicked_point, draw_sections
from txcls.app.shell.markdown import escape
from txcls.app.shell.prediction import classify_text
from txcls.errors import TraceError, TxclsError
from txcls.figures import (
    MAX_NAMED,
    attention_arcs,
    attention_grid,
    attention_map,
    choose_arcs,
    label,
    minus,
    pooling_bars,
    query_key_bars,
)
from txcls.figures.style import SCALE_BELOW
from txcls.lessons.page_address import View
from txcls.text.formatting import bounded_percentage, head_name, percentage

ABOUT_TWO = "Head numbers are arbitrary, and the second model may tokenize the text differently."
ABOUT_SCORE = (
    "A single dimension has no meaning of its own: rotating queries and keys together changes the bars, but not their "
    "sum."
)
CAVEAT = (
    "**Attention is not by itself an explanation.** It shows how a head weights the tokens’ value vectors, not what "
    "the model does with them. Each row of a map (a query) sums to 1. A head favours what gets half of its weight "
    "on this text (nearby: up to two tokens away), or the one token that has the largest weight in half of its rows."
)
DIAGONALS = {1: "the next token", -1: "the previous token", 0: "itself"}
"""Offsets of a key from its query, and what the head then attends to."""
NEAR = 2
"""Maximum distance of a nearby token; a head favours these if they get half its weight and twice uniform attention."""
MAX_ARCS = 60
"""Maximum number of arcs."""
MAX_TAGGED = 6
"""Maximum number of heads per layer for which the maps have room for tags."""
FAMILIES = {
    "nearby": "nearby tokens",
    "one token": "one and the same token",
    "previous": "the previous token",
    "next": "the next token",
    "itself": "the token itself",
    "other": "other",
}
"""What a head may favour on this text: the tag on its map, and the words for it in a sentence."""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.ATTENTION, compare=True)
    classified = classify_text(page, "the attention patterns of all heads appear here.")
    if classified is not None and classified.has_label:
        patterns = cached_results.patterns(page.source, page.view.text)
        page = heads.open_on_head(page, classified.classifier, attention=patterns.attention)
        _draw_maps_and_sections(page, patterns)
    layout.close_page(page)


@dataclass(frozen=True)
class ShownTokens:
    """The displayed tokens of the text, and the attention of the selected head among them."""

    positions: np.ndarray  # indices in the text
    names: list[str]
    pattern: np.ndarray  # T T
    is_partial: bool  # whether the text has other tokens
    head: str
    file_name: str  # the start of the names of saved charts


def _draw_maps_and_sections(page: layout.Page, patterns: cached_results.Patterns) -> None:
    view, tokens = page.view, patterns.tokens
    part = f"{lecture.ATTENTION}.{view.layer}"
    families = _name_families(patterns.attention)
    with lecture.slide(part):
        layout.draw_answer(page, _summarise(families), about=CAVEAT)
        maps = st.container(key="attention_maps")
    special = np.array([token.is_special for token in tokens])
    hides_special = False
    if special.any() and not special.all():
        hides_special = st.toggle("Hide tokens that the model adds", key="hide_special", persist_state="session")
    positions = np.flatnonzero(~special) if hides_special else np.arange(len(tokens))
    positions = positions[window(len(positions), key="attention_window")]
    shown = ShownTokens(
        positions,
        names=[tokens[index].label for index in positions],
        pattern=patterns.attention[view.layer, view.head][np.ix_(positions, positions)],
        is_partial=len(positions) < len(tokens),
        head=head_name(view.layer, view.head),
        file_name=f"{view.checkpoint}-layer{view.layer + 1}-head{view.head + 1}",
    )
    with maps:
        is_narrow, is_long = lecture.is_on() or lesson.now() is not None, len(positions) > MAX_NAMED
        overview, detail = st.columns([1, 2] if is_long else [2, 3] if is_narrow else 2, gap="large")
    with detail:  # drawn first, because visitors wait for it
        _draw_head(shown)
    with overview:
        _draw_all_heads(page, patterns, shown, families)
    if not lecture.is_on():
        with maps:
            layout.draw_link(page, menu.HEADS, f"What is {shown.head} worth? →")
    if view.versus:
        with lecture.slide(part):
            _draw_comparison(page, shown)
    parts = [
        PageSection("arcs", "As arcs", partial(_draw_arcs, view, shown, n_tokens=len(tokens)), (part,)),
        PageSection("score", "One score", partial(_draw_score, page, patterns, shown), (part,)),
    ]
    if patterns.pooling is not None:
        draw = partial(_draw_pooling, patterns.pooling[shown.positions], shown)
        parts.append(PageSection("pooling", "Pooling", draw, (lecture.POOLING,)))
    draw_sections(view, parts)


def _draw_head(shown: ShownTokens) -> None:
    """Draw the map of the selected head."""
    with st.container(key="head_heading", horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader(shown.head.capitalize(), anchor=False, width="content")
        st.markdown(_finding(shown.pattern), width="content")
    elsewhere = None
    if shown.is_partial:
        elsewhere = np.clip(1.0 - shown.pattern.sum(axis=1), 0.0, 1.0)
        st.markdown(f"**{percentage(elsewhere.mean(), 0)}** of its attention is **elsewhere**, on tokens not shown.")
    figure = attention_map(shown.pattern, shown.names, elsewhere=elsewhere)
    figure.update_layout(coloraxis_colorbar=SCALE_BELOW, coloraxis_showscale=not lecture.is_on())
    chart(
        figure,
        key="chart_map",
        alt=f"Heat map of attention in {shown.head} over {len(shown.names)} tokens; "
        + _largest_weight(shown.pattern, shown.names),
        file_prefix=shown.file_name,
        grows=True,
    )


def _main_diagonal(pattern: np.ndarray) -> tuple[int, float] | None:
    """The offset of the diagonal of a pattern (T, T) with a mean weight of at least half, and this mean; else None."""
    for offset in DIAGONALS:
        if len(pattern) > 1 and (share := float(np.diagonal(pattern, offset).mean())) >= 0.5:
            return offset, share
    return None


def _finding(pattern: np.ndarray) -> str:
    """A sentence on the diagonal that has most weight of a pattern (T, T); if none has, on how to read the map."""
    if (diagonal := _main_diagonal(pattern)) is None:
        return "Each **row**’s token attends to its bright **columns**."
    offset, share = diagonal
    missing = {1: " (the last has none)", -1: " (the first has none)"}.get(offset, "")
    return f"**{percentage(share, 0)}** goes to **{DIAGONALS[offset]}**{missing}."


def _name_families(attention: np.ndarray) -> list[str]:
    """Where most of the weight of each head of `attention` (L, H, T, T) goes, layer by layer: keys of `FAMILIES`."""
    places = np.arange(attention.shape[-1])
    is_near = np.abs(places[:, None] - places) <= NEAR
    families = []
    for pattern in attention.reshape(-1, *is_near.shape):
        if (diagonal := _main_diagonal(pattern)) is not None:
            family = DIAGONALS[diagonal[0]].removeprefix("the ").removesuffix(" token")
        elif float((pattern * is_near).sum()) / len(pattern) >= max(0.5, 2 * is_near.mean()):
            family = "nearby"
        elif len(pattern) > 1 and np.bincount(pattern.argmax(axis=1)).max() >= len(pattern) / 2:
            family = "one token"
        else:
            family = "other"
        families.append(family)
    return families


def _summarise(families: Sequence[str]) -> str:
    """Which tokens are favoured by how many heads, in a sentence."""
    if set(families) == {"other"}:
        return f"None of {len(families)} heads favours nearby tokens or one token."
    found = sorted(FAMILIES.keys() & families, key=lambda family: (family == "other", -families.count(family), family))
    of_all = [f" of {len(families)} heads", *[""] * (len(found) - 1)]  # said once
    counts = [f"(**{families.count(family)}**{of})" for family, of in zip(found, of_all, strict=True)]
    clauses = ", ".join(f"{FAMILIES[family]} {count}" for family, count in zip(found, counts, strict=True))
    return f"{clauses[0].upper()}{clauses[1:]}."


def _draw_all_heads(
    page: layout.Page, patterns: cached_results.Patterns, shown: ShownTokens, families: Sequence[str]
) -> None:
    """Draw small maps of all heads, and the controls that select one."""
    view = page.view
    n_layers, n_heads = patterns.attention.shape[:2]
    grid = attention_grid(
        patterns.attention[:, :, shown.positions][:, :, :, shown.positions],
        selected=(view.layer, view.head),
        tags=families if n_heads <= MAX_TAGGED else (),
    )
    grid.update_layout(
        height=grid.layout.height - 68,
        coloraxis_showscale=lecture.is_on(),  # the map beside it has the scale, but needs its height on a slide
        coloraxis_colorbar=SCALE_BELOW,
    )
    chart(
        grid,
        key="chart_grid",
        alt=f"Attention of {n_heads} heads in {n_layers} layers as small heat maps; {shown.head} is selected",
        on_select=_select_clicked_head,
        grows=n_layers >= n_heads and lesson.now() is None,
    )
    if not lecture.is_on():
        row = st.container(key="all_heads", horizontal=True, vertical_alignment="center", gap="small")
        row.markdown("Choose a map, or a layer and head:", width="content")
        heads.choose_head(view, {"layer": n_layers, "head": n_heads}, row=row)


def _draw_arcs(view: View, shown: ShownTokens, *, n_tokens: int) -> None:
    st.subheader(f"From which token to which does {shown.head} attend?", anchor=False)
    pattern, names, said = shown.pattern, shown.names, st.empty()
    tokens = [0, *(int(index) + 1 for index in shown.positions)]
    st.session_state["arc_query"] = view.query if view.query in tokens else 0
    chosen = st.selectbox(
        "Query",
        tokens,
        format_func=lambda n: f"{n} · {label(names[tokens.index(n) - 1])}" if n else "all tokens",
        key="arc_query",
        on_change=lambda: view_state.change_view(query=int(st.session_state["arc_query"])),
        width=480,
    )
    query = tokens.index(chosen) - 1 if chosen else None
    arcs = choose_arcs(pattern, query=query, min_weight=0.2 / n_tokens, max_arcs=MAX_ARCS)
    diagonal = _main_diagonal(pattern) if query is None else None
    if diagonal is not None:
        finding = f"{_finding(pattern).removesuffix('.')}: the **blue** arcs; the others are grey."
    else:
        of_query = " of this query" * (query is not None)
        finding = f"Shown: {bounded_percentage(arcs.share)} of the attention{of_query}."
    dot = "; a dot: to itself" * bool(np.diagonal(pattern).max() >= 0.05)
    said.markdown(f"{finding} Thicker: more weight{dot}.")
    chart(
        attention_arcs(pattern, names, arcs, offset=None if diagonal is None else diagonal[0]),
        key="chart_arcs",
        alt=f"Arc diagram of attention in {shown.head}: {len(arcs.weights)} arcs between tokens, strongest "
        + ", ".join(
            f"{names[q][:20]} to {names[k][:20]}" for q, k in list(zip(arcs.queries, arcs.keys, strict=True))[:3]
        ),
        file_prefix=shown.file_name,
    )


def _draw_score(page: layout.Page, patterns: cached_results.Patterns, shown: ShownTokens) -> None:
    """Draw the score of one query and one key, dimension by dimension."""
    view = page.view
    st.subheader(f"How is one score of {shown.head} computed?", anchor=False)
    names = {int(index): f"{index + 1} · {label(patterns.tokens[index].label)}" for index in shown.positions}
    pair = [index - 1 for index in view.pair]
    if len(pair) != 2 or not set(pair) <= set(names):
        strongest = np.unravel_index(int(shown.pattern.argmax()), shown.pattern.shape)
        pair = shown.positions[list(strongest)].tolist()
    (query, key), said = pair, st.empty()
    for column, title, index in zip(st.columns(2, gap="large"), ("Query", "Key"), pair, strict=True):
        st.session_state[f"why_{title}"] = index
        column.selectbox(title, list(names), format_func=names.__getitem__, key=f"why_{title}", on_change=_select_pair)
    try:
        score = cached_results.query_key(page.source, view.text, layer=view.layer, head=view.head, query=query, key=key)
    except TraceError as error:
        st.info(str(error))
        return
    compared, n_dimensions = "", len(score.products)
    asked, chosen = (escape(label(patterns.tokens[index].label)) for index in pair)
    if others := [other for other in np.argsort(-patterns.attention[view.layer, view.head, query]) if other != key]:
        best = cached_results.query_key(
            page.source, view.text, layer=view.layer, head=view.head, query=query, key=int(others[0])
        )
        name = escape(label(patterns.tokens[others[0]].label))
        compared = f" The second-highest is **{name}** with {minus(f'{best.score:.1f}')}."
    said.markdown(
        f"For query **{asked}**, key **{chosen}** scores **{minus(f'{score.score:.1f}')}**: the sum of the bars, query "
        f"× key / √{n_dimensions} in each dimension.{compared} A softmax turns scores into weights: **{chosen}** gets "
        f"**{bounded_percentage(score.weight)}**.",
        help=None if lecture.is_on() else ABOUT_SCORE,
    )
    chart(
        query_key_bars(score.products),
        key="chart_query_key",
        alt=f"Bars of query times key in {len(score.products)} dimensions, which sum to {score.score:.2f}",
    )


def _draw_comparison(page: layout.Page, shown: ShownTokens) -> None:
    """Draw the attention of a second checkpoint for the same text."""
    view = page.view
    titles = {name: escape(checkpoints.title(name)) for name in (view.checkpoint, view.versus)}
    st.subheader(" and ".join(titles.values()), anchor=False, help=ABOUT_TWO)
    try:
        other = cached_results.patterns(checkpoints.source(view.versus), view.text)
    except TxclsError as error:
        st.warning(escape(str(error)))
        return
    n_layers, n_heads, n_tokens, _ = other.attention.shape
    layer, head = min(view.layer, n_layers - 1), min(view.head, n_heads - 1)
    shown_tokens = window(n_tokens, key="versus_window")
    other_names = [token.label for token in other.tokens[shown_tokens]]
    heads_to_map = (
        (view.checkpoint, view.layer, view.head, shown.pattern, shown.names),
        (view.versus, layer, head, other.attention[layer, head][shown_tokens, shown_tokens], other_names),
    )
    for column, (name, map_layer, map_head, weights, tokens) in zip(
        st.columns(2, gap="large"), heads_to_map, strict=True
    ):
        with column:
            st.markdown(f"**{titles[name]}**, {head_name(map_layer, map_head)}")
            chart(
                attention_map(weights, tokens),
                key=f"chart_versus_{name}",
                alt=f"Heat map of attention, {head_name(map_layer, map_head)} of {checkpoints.title(name)}; "
                + _largest_weight(weights, tokens),
                file_prefix=f"{name}-layer{map_layer + 1}-head{map_head + 1}",
            )


def _draw_pooling(weights: np.ndarray, shown: ShownTokens) -> None:
    st.subheader("Which token weighs most in the average?", anchor=False)
    ends = (weights.argmax(), weights.argmin())
    most, least = (f"**{escape(label(shown.names[n]))}** ({percentage(weights[n])})" for n in ends)
    st.markdown(
        f"{most}; least: {least}. The class is read from the average of the tokens’ final vectors with these weights."
    )
    chart(
        pooling_bars(weights, shown.names),
        key="chart_pooling",
        alt="Bar chart of pooling weights; highest: "
        + ", ".join(f"{shown.names[index][:20]} {percentage(weights[index], 0)}" for index in np.argsort(-weights)[:3]),
    )
    if shown.is_partial:
        st.markdown(f"{percentage(1.0 - float(weights.sum()), 0)} of the weight is on tokens that are not shown.")


def _select_pair() -> None:
    view_state.change_view(pair=tuple(int(st.session_state[f"why_{title}"]) + 1 for title in ("Query", "Key")))


def _select_clicked_head() -> None:
    if (point := clicked_point("chart_grid")) is not None:
        layer, head = point[:2]
        view_state.change_view(layer=int(layer), head=int(head))


def _largest_weight(weights: np.ndarray, names: list[str]) -> str:
    """The largest weight of a map and its tokens in words, for a chart's description."""
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    return f"largest weight: {weights[query, key]:.2f} from “{names[query][:30]}” to “{names[key][:30]}”"


if __name__ == "__main__":
    main()
