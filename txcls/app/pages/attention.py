"""What each head attends to: all heads at a glance, one as a map and as arcs, rollout, and the pooling weights."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from txcls.address import View
from txcls.app import menu
from txcls.app.shell import checkpoints, compute, heads, layout, lecture, state
from txcls.app.shell.charts import chart, window
from txcls.app.shell.controls import choice, clicked_point
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import classify_text
from txcls.errors import TxclsError
from txcls.figures import (
    attention_arcs,
    attention_grid,
    attention_map,
    choose_arcs,
    head_values_map,
    label,
    pooling_bars,
    query_key_bars,
)
from txcls.inspection.attention import attention_rollout, head_statistics
from txcls.predictor import Predictor
from txcls.wording import percentage

CAVEAT_IN_BRIEF = "**Attention is not by itself an explanation.**"
CAVEAT = (
    f"{CAVEAT_IN_BRIEF} It shows how a head weights the tokens’ value vectors, not what the model does with them, and "
    "very different patterns can lead to the same prediction."
)
SECTIONS = {
    "arcs": "as arcs",
    "score": "one score",
    "heads": "entropy and distance",
    "rollout": "rollout",
    "pooling": "pooling",
}
"""Parts of the page that are shown one at a time; in lecture mode, each is a slide."""


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(menu.ATTENTION, compare=True)
    read = classify_text(opened, "the attention patterns of all heads appear here.")
    if read is not None and read.has_label:
        patterns = compute.patterns(opened.source, opened.view.text)
        opened = heads.open_on_head(opened, read.classifier, attention=patterns.attention)
        _draw(opened, read.classifier, patterns)
    layout.close_page(opened)


@dataclass(frozen=True)
class Shown:
    """The displayed tokens of the text, and the attention of the selected head among them.

    Attributes:
        places: their indices.
        names: their labels.
        pattern: weights (T, T) of the selected head.
        is_part: whether the text has more tokens.
        where: layer and head in words.
        file_name: the start of the names of saved charts.
    """

    places: np.ndarray
    names: list[str]
    pattern: np.ndarray
    is_part: bool
    where: str
    file_name: str


def _draw(opened: layout.Page, classifier: Predictor, traced: compute.Patterns) -> None:
    view, tokens = opened.view, traced.tokens
    special = np.array([token.is_special for token in tokens])
    hide = False
    if special.any() and not special.all():
        hide = st.toggle("Hide tokens that the model adds", key="hide_special", persist_state="session")
    places = np.flatnonzero(~special) if hide else np.arange(len(tokens))
    places = places[window(len(places), key="attention_window")]
    shown = Shown(
        places,
        names=[tokens[place].label for place in places],
        pattern=traced.attention[view.layer, view.head][np.ix_(places, places)],
        is_part=len(places) < len(tokens),
        where=f"layer {view.layer + 1}, head {view.head + 1}",
        file_name=f"{view.checkpoint}-layer{view.layer + 1}-head{view.head + 1}",
    )
    part = f"{lecture.ATTENTION}.{view.layer}"
    with lecture.slide(part), st.container(key="attention_maps"):
        overview, detail = st.columns([2, 3], gap="large")
    with detail:  # drawn first, because visitors wait for it
        _one_head(view, classifier, shown)
    with overview:
        _all_heads(opened, traced, shown)
    if view.versus:
        with lecture.slide(part):
            _compare(opened, shown)
    sections = [name for name in SECTIONS if name != "pooling" or traced.pooling is not None]
    if lecture.is_on():
        about = {"arcs": part, "score": part, "pooling": lecture.POOLING}
        for section in sections:
            with lecture.slide(about.get(section, lecture.ATTENTION)):
                _section(section, opened, traced, shown)
    else:
        section = view.section if view.section in sections else "arcs"
        title = "More about this text's attention"
        choice(
            st, title, sections, view, "section", key="attention_section", names=SECTIONS.__getitem__, selected=section
        )
        _section(section, opened, traced, shown)


def _one_head(view: View, classifier: Predictor, shown: Shown) -> None:
    """Draw the map of the selected head."""
    with st.container(key="head_heading", horizontal=True, vertical_alignment="center", gap="small"):
        st.subheader(f"Layer {view.layer + 1}, head {view.head + 1}", anchor=False, width="content")
        heads.draw_chip(classifier, view.layer, view.head)
    st.markdown("Each **row** is a query; its attention over the keys (**columns**) sums to 1.")
    elsewhere = None
    if shown.is_part:
        elsewhere = np.clip(1.0 - shown.pattern.sum(axis=1), 0.0, 1.0)
        st.markdown(
            f"**{percentage(elsewhere.mean(), 0)}** of this head's attention is on tokens that are not shown; the "
            "column **elsewhere** has the share of each query."
        )
    chart(
        attention_map(shown.pattern, shown.names, elsewhere=elsewhere),
        key="chart_map",
        alt=f"Heat map of attention in {shown.where} over {len(shown.names)} tokens; "
        + _largest(shown.pattern, shown.names),
        of=shown.file_name,
    )


def _all_heads(opened: layout.Page, traced: compute.Patterns, shown: Shown) -> None:
    """Draw small maps of all heads, and the controls that select one."""
    view = opened.view
    n_layers, n_heads = traced.attention.shape[:2]
    st.subheader("All heads", anchor=False)
    if not lecture.is_on():
        st.markdown("Click a map to enlarge it. Rows are queries, columns keys.")
    chart(
        attention_grid(traced.attention[:, :, shown.places][:, :, :, shown.places], selected=(view.layer, view.head)),
        key="chart_grid",
        alt=f"Attention of {n_heads} heads in {n_layers} layers as small heat maps; {shown.where} is selected",
        on_select=_grid_clicked,
    )
    heads.choose_head(view, n_layers, n_heads)
    st.info(CAVEAT_IN_BRIEF if lecture.is_on() else CAVEAT)
    layout.link_to(opened, menu.EXPLANATION, "Test it: does attention explain the prediction? →")


def _section(section: str, opened: layout.Page, traced: compute.Patterns, shown: Shown) -> None:
    """Draw one of the parts of the page below the maps."""
    if section == "arcs":
        _arcs(opened.view, shown)
    elif section == "score":
        _one_score(opened, traced, shown.places)
    elif section == "heads":
        _heads(opened)
    elif section == "rollout":
        _rollout(opened, shown)
    elif traced.pooling is not None:
        _pooling(traced.pooling[shown.places], shown, opened.view)


def _arcs(view: View, shown: Shown) -> None:
    st.subheader(f"The same head as arcs: layer {view.layer + 1}, head {view.head + 1}", anchor=False)
    pattern, names = shown.pattern, shown.names
    query_column, number_column = st.columns(2, gap="large")
    tokens = [0, *(int(place) + 1 for place in shown.places)]
    st.session_state["arc_query"] = view.query if view.query in tokens else 0
    chosen = query_column.selectbox(
        "Query",
        tokens,
        format_func=lambda n: f"{n} · {label(names[tokens.index(n) - 1])}" if n else "all tokens",
        key="arc_query",
        on_change=lambda: state.change_view(query=int(st.session_state["arc_query"])),
    )
    query = tokens.index(chosen) - 1 if chosen else None
    limit = number_column.slider("Number of arcs", 10, 400, 60, 10, key="arc_number", persist_state="session")
    arcs = choose_arcs(pattern, query=query, at_most=limit)
    chart(
        attention_arcs(pattern, names, arcs),
        key="chart_arcs",
        alt=f"Arc diagram of attention in {shown.where}: {len(arcs.weights)} arcs between tokens, strongest "
        + ", ".join(
            f"{names[q][:20]} to {names[k][:20]}" for q, k in list(zip(arcs.queries, arcs.keys, strict=True))[:3]
        ),
        of=shown.file_name,
    )
    st.caption(
        f"The {len(arcs.weights)} arcs with the largest weights, and dots whose size shows self-attention: together "
        f"{percentage(arcs.share, 0)} of the attention{' of this query' if query is not None else ''}. "
        f"{arcs.n_hidden:,} weaker pairs are omitted. Arcs above the line lead from a query to a later key, those "
        "below it to an earlier key; thicker arcs have more weight."
    )


def _one_score(opened: layout.Page, traced: compute.Patterns, shown: np.ndarray) -> None:
    """Draw the score of one query and one key, dimension by dimension."""
    view = opened.view
    st.subheader("Why does this token attend to that one?", anchor=False)
    pattern = traced.attention[view.layer, view.head][np.ix_(shown, shown)]
    strongest = np.unravel_index(int(pattern.argmax()), pattern.shape)
    names = {int(place): f"{place + 1} · {label(traced.tokens[place].label)}" for place in shown}
    pair = [place - 1 for place in view.pair]
    linked = len(pair) == 2 and set(pair) <= set(names)
    query, attended = pair if linked else [int(shown[place]) for place in strongest]
    for column, title, place in zip(st.columns(2, gap="large"), ("Query", "Key"), (query, attended), strict=True):
        st.session_state[f"why_{title}"] = place
        column.selectbox(title, list(names), format_func=names.__getitem__, key=f"why_{title}", on_change=_pair_changed)
    score = compute.query_key(opened.source, view.text, layer=view.layer, head=view.head, query=query, key=attended)
    st.markdown(
        f"Query times key, divided by √{len(score.products)}, dimension by dimension: the bars sum to the score "
        f"**{score.score:.3f}**. The softmax over this query's scores for all keys turns it into the weight "
        f"**{score.weight:.3f}**. Single dimensions mean nothing by themselves: rotating queries and keys together "
        "changes the bars, but not their sum."
    )
    chart(
        query_key_bars(score.products),
        key="chart_query_key",
        alt=f"Bars of query times key in {len(score.products)} dimensions, which sum to {score.score:.2f}",
    )


def _compare(opened: layout.Page, shown: Shown) -> None:
    """Draw the attention of a second checkpoint for the same text."""
    view = opened.view
    st.subheader(f"The same text in {plain(view.checkpoint)} and in {plain(view.versus)}", anchor=False)
    try:
        other = compute.patterns(checkpoints.source(view.versus), view.text)
    except TxclsError as error:
        st.warning(plain(str(error)))
        return
    n_layers, n_heads, n_tokens, _ = other.attention.shape
    layer, head = min(view.layer, n_layers - 1), min(view.head, n_heads - 1)
    part = window(n_tokens, key="versus_window")
    other_names = [token.label for token in other.tokens[part]]
    maps = (
        (view.checkpoint, view.layer, view.head, shown.pattern, shown.names),
        (view.versus, layer, head, other.attention[layer, head][part, part], other_names),
    )
    for column, (name, of_layer, of_head, weights, tokens) in zip(st.columns(2, gap="large"), maps, strict=True):
        with column:
            st.markdown(f"**{plain(name)}**, layer {of_layer + 1}, head {of_head + 1}")
            chart(
                attention_map(weights, tokens),
                key=f"chart_versus_{name}",
                alt=f"Heat map of attention of {name} in layer {of_layer + 1}, head {of_head + 1} over {len(tokens)} "
                f"tokens; {_largest(weights, tokens)}",
                of=f"{name}-layer{of_layer + 1}-head{of_head + 1}",
            )
    st.caption(
        "Head numbers are arbitrary: head 1 of one model does not correspond to head 1 of another, even if the two "
        "differ only in the random seed. The second model may also tokenize the text differently."
    )


def _heads(opened: layout.Page) -> None:
    """Draw the entropy and distance of each head."""
    attention = compute.patterns(opened.source, opened.view.text).attention  # L H T T
    statistics, n_tokens = head_statistics(attention), attention.shape[-1]
    st.subheader("Entropy and distance of each head", anchor=False)
    left, right = st.columns(2, gap="large")
    with left:
        chart(
            head_values_map(
                statistics.entropy, title="bits", quantity="entropy in bits:", top=float(np.log2(max(n_tokens, 2)))
            ),
            key="chart_entropy",
            alt=f"Heat map of each head's entropy, from {statistics.entropy.min():.2f} to "
            f"{statistics.entropy.max():.2f} bits",
        )
        st.caption(
            f"Mean entropy of a query's attention: 0 bits if all of it is on one key, log₂ {n_tokens} = "
            f"{np.log2(n_tokens):.2f} bits if it is uniform."
        )
    with right:
        chart(
            head_values_map(
                statistics.distance,
                title="tokens",
                quantity="mean distance:",
                top=max(1.0, (n_tokens - 1) / 2),
                digits=1,
            ),
            key="chart_distance",
            alt=f"Heat map of each head's mean distance, from {statistics.distance.min():.1f} to "
            f"{statistics.distance.max():.1f} tokens",
        )
        st.caption(
            "Mean distance between query and key in tokens, weighted by attention; 0 means that each token attends to "
            f"itself. Uniform attention gives {(n_tokens * n_tokens - 1) / (3 * n_tokens):.1f} in this text."
        )


def _rollout(opened: layout.Page, shown: Shown) -> None:
    """Draw the attention through all layers."""
    attention = compute.patterns(opened.source, opened.view.text).attention
    rolled_out = attention_rollout(attention)[np.ix_(shown.places, shown.places)]
    text, rolled = st.columns([2, 3], gap="large")
    with text:
        st.subheader("All layers together: attention rollout", anchor=False)
        st.markdown(
            "How much each input token (column) contributes to each token after the last layer (row) if only attention "
            "moved information: patterns averaged over heads, mixed half and half with the identity for the residual "
            "connection, and multiplied over layers."
        )
        st.caption(
            "[Abnar & Zuidema 2020](https://aclanthology.org/2020.acl-main.385). Rollout ignores value vectors and "
            "feed-forward blocks. Whether it explains the prediction is tested under “Is attention an explanation?”."
        )
    with rolled:
        chart(
            attention_map(
                rolled_out,
                shown.names,
                rows="token after the last layer",
                columns="input token",
                verb="draws on",
            ),
            key="chart_rollout",
            alt=f"Heat map of attention rollout over {len(shown.names)} tokens; {_largest(rolled_out, shown.names)}",
        )


def _pooling(weights: np.ndarray, shown: Shown, view: View) -> None:
    st.subheader("Pooling: how much each token counts", anchor=False)
    st.markdown(
        "After the last layer, the tokens' states are averaged with these weights; the result is classified. "
        "The dashed line marks equal weights."
    )
    chart(
        pooling_bars(weights, shown.names),
        key="chart_pooling",
        alt="Bar chart of pooling weights; highest: "
        + ", ".join(f"{shown.names[place][:20]} {percentage(weights[place], 0)}" for place in np.argsort(-weights)[:3]),
    )
    if shown.is_part:
        st.caption(f"{percentage(1.0 - float(weights.sum()), 0)} of the weight is on tokens that are not shown.")


def _pair_changed() -> None:
    state.change_view(pair=tuple(int(st.session_state[f"why_{title}"]) + 1 for title in ("Query", "Key")))


def _grid_clicked() -> None:
    if (point := clicked_point("chart_grid")) is not None:
        layer, head = point[:2]
        state.change_view(layer=int(layer), head=int(head))


def _largest(weights: np.ndarray, names: list[str]) -> str:
    """The largest weight of a map and its tokens, for a chart's description."""
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    return f"largest weight: {weights[query, key]:.2f} from “{names[query][:30]}” to “{names[key][:30]}”"


if __name__ == "__main__":
    main()
