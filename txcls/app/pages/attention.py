"""What each head attends to: all heads at a glance, one as a map and as arcs, rollout, and the pooling weights."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from txcls.app import pages
from txcls.app.shell import checkpoints, compute, heads, layout, lecture, model_parts, state
from txcls.app.shell.charts import chart, window
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
from txcls.lessons.address import View
from txcls.model import LayerNorm
from txcls.predictor import Predictor
from txcls.wording import percentage

CAVEAT_IN_BRIEF = "**Attention is not by itself an explanation.**"
CAVEAT = (
    f"{CAVEAT_IN_BRIEF} It shows which tokens a head read from, not what the model did with them, and very different "
    "patterns can lead to the same prediction."
)
LINKS = (
    pages.CLASSIFY,
    pages.TOKENS,
    pages.STEPS,
    pages.ATLAS,
    pages.SWITCHBOARD,
    pages.EXPLANATION,
    pages.POSITIONS,
    pages.LANGUAGE,
)
SECTIONS = {
    "arcs": "as arcs",
    "score": "one score",
    "heads": "entropy and distance",
    "rollout": "rollout",
    "pooling": "pooling",
}
"""Parts of the page that are drawn one at a time, or each on a slide of its own."""
LAYER_NORM = r"""
\mathrm{LayerNorm}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} \odot \gamma + \beta
\qquad \mu = \frac{1}{D}\sum_{i=1}^{D} x_i
\qquad \sigma^2 = \frac{1}{D}\sum_{i=1}^{D} (x_i - \mu)^2
"""


def main() -> None:
    """Draw the page."""
    opened = layout.open_page(pages.ATTENTION, compare=True)
    read = classify_text(opened, "the attention patterns of all heads appear here.")
    if read is not None and read.has_label:
        opened = heads.open_on_head(opened, read.classifier)
        _draw(opened, read.classifier, compute.patterns(opened.source, opened.view.text))
    layout.close_page(opened, LINKS)


def _draw(opened: layout.Page, classifier: Predictor, traced: compute.Patterns) -> None:
    view, tokens = opened.view, traced.tokens
    n_layers, n_heads = traced.attention.shape[:2]
    special = np.array([token.is_special for token in tokens])
    hide = False
    if special.any() and not special.all():
        hide = st.toggle("Hide tokens that the model adds", key="hide_special", persist_state="session")
    kept = np.flatnonzero(~special) if hide else np.arange(len(tokens))
    kept = kept[window(len(kept), key="attention_window")]
    names = [tokens[place].label for place in kept]
    patterns = traced.attention[:, :, kept][:, :, :, kept]
    pattern = patterns[view.layer, view.head]
    where = f"layer {view.layer + 1}, head {view.head + 1}"
    file_name = f"{view.checkpoint}-layer{view.layer + 1}-head{view.head + 1}"

    shown = f"{lecture.ATTENTION}.{view.layer}"
    with lecture.slide(shown):
        overview, detail = st.columns([2, 3], gap="large")
    with detail:  # sent first: it is what people wait for
        st.subheader(f"Layer {view.layer + 1}, head {view.head + 1}", anchor=False)
        heads.draw_chip(classifier, view.layer, view.head)
        st.markdown("Each **row** is a query; its attention over the keys (**columns**) sums to 1.")
        elsewhere = None
        if len(kept) < len(tokens):
            elsewhere = np.clip(1.0 - pattern.sum(axis=1), 0.0, 1.0)
            st.markdown(
                f"Tokens that are not shown get **{percentage(elsewhere.mean(), 0)}** of this head's attention; the "
                "column **elsewhere** has each query's part of it."
            )
        chart(
            attention_map(pattern, names, elsewhere=elsewhere),
            key="chart_map",
            alt=f"Heat map of attention in {where} over {len(names)} tokens; {_largest(pattern, names)}",
            file_name=f"{file_name}-map",
        )
    with overview:
        st.subheader("All heads", anchor=False)
        if not lecture.is_on():
            st.markdown(
                "Click a map to enlarge it. All maps share one colour scale from 0 to 1, finer for small weights."
            )
        chart(
            attention_grid(patterns, selected=(view.layer, view.head)),
            key="chart_grid",
            alt=f"Attention of {n_heads} heads in {n_layers} layers as small heat maps; {where} is selected",
            file_name=f"{view.checkpoint}-all-heads",
            on_select=_grid_clicked,
        )
        heads.choose_head(view, n_layers, n_heads)
        st.info(CAVEAT_IN_BRIEF if lecture.is_on() else CAVEAT)
        layout.link_to(opened, pages.EXPLANATION, "Test it: does attention explain the prediction? →")

    if view.versus:
        with lecture.slide(shown):
            _compare(opened, pattern, names)

    def draw(section: str) -> None:
        if section == "arcs":
            st.subheader(f"The same head as arcs: layer {view.layer + 1}, head {view.head + 1}", anchor=False)
            _arcs(view, kept, pattern, names, where, file_name)
        elif section == "score":
            _why(opened, traced, kept)
        elif section == "heads":
            _heads(opened)
        elif section == "rollout":
            _rollout(opened, kept, names)
        elif traced.pooling is not None:
            _pooling(traced.pooling[kept], names, len(kept) < len(tokens), view)

    sections = [name for name in SECTIONS if name != "pooling" or traced.pooling is not None]
    if lecture.is_on():
        about = {"arcs": shown, "score": shown, "pooling": lecture.POOLING}
        for section in sections:
            with lecture.slide(about.get(section, lecture.ATTENTION)):
                draw(section)
    else:
        draw(_choose_section(view, sections))
    _layer_norm()


def _choose_section(view: View, sections: Sequence[str]) -> str:
    """A control that selects the part of the page to draw."""
    section = view.section if view.section in sections else "arcs"
    st.session_state["attention_section"] = section
    st.segmented_control(
        "More about this text's attention",
        sections,
        format_func=SECTIONS.__getitem__,
        required=True,
        key="attention_section",
        on_change=state.follow("section", "attention_section"),
    )
    return section


def _arcs(view: View, kept: np.ndarray, pattern: np.ndarray, names: list[str], where: str, file_name: str) -> None:
    query_column, number_column = st.columns(2, gap="large")
    tokens = [0, *(int(place) + 1 for place in kept)]
    st.session_state["arc_query"] = view.query if view.query in tokens else 0
    chosen = query_column.selectbox(
        "Query",
        tokens,
        format_func=lambda n: f"{n} · {label(names[tokens.index(n) - 1])}" if n else "all tokens",
        key="arc_query",
        on_change=_query_changed,
    )
    query = tokens.index(chosen) - 1 if chosen else None
    most = number_column.slider("Number of arcs", 10, 400, 60, 10, key="arc_number", persist_state="session")
    arcs = choose_arcs(pattern, query=query, at_most=most)
    chart(
        attention_arcs(pattern, names, arcs),
        key="chart_arcs",
        alt=f"Arc diagram of attention in {where}: {len(arcs.weights)} arcs between tokens, strongest "
        + ", ".join(
            f"{names[q][:20]} to {names[k][:20]}" for q, k in list(zip(arcs.queries, arcs.keys, strict=True))[:3]
        ),
        file_name=f"{file_name}-arcs",
    )
    st.caption(
        f"The {len(arcs.weights)} arcs with the largest weights, and dots whose size shows self-attention: together "
        f"{percentage(arcs.share, 0)} of the attention{' of this query' if query is not None else ''}. "
        f"{arcs.n_hidden:,} weaker pairs are omitted. Arcs above the line lead from a query to a later key, below to "
        "an earlier one; thicker means more weight."
    )


def _why(opened: layout.Page, traced: compute.Patterns, kept: np.ndarray) -> None:
    """One query and one key, dimension by dimension."""
    view = opened.view
    st.subheader("Why does this token attend to that one?", anchor=False)
    pattern = traced.attention[view.layer, view.head][np.ix_(kept, kept)]
    strongest = np.unravel_index(int(pattern.argmax()), pattern.shape)
    names = {int(place): f"{place + 1} · {label(traced.tokens[place].label)}" for place in kept}
    pair = [place - 1 for place in view.pair]
    linked = len(pair) == 2 and set(pair) <= set(names)
    query, attended = pair if linked else [int(kept[place]) for place in strongest]
    for column, title, place in zip(st.columns(2, gap="large"), ("Query", "Key"), (query, attended), strict=True):
        st.session_state[f"why_{title}"] = place
        column.selectbox(title, list(names), format_func=names.__getitem__, key=f"why_{title}", on_change=_pair_changed)
    found = compute.query_key(opened.source, view.text, layer=view.layer, head=view.head, query=query, key=attended)
    st.markdown(
        f"Query times key, divided by √{len(found.products)}, dimension by dimension: the bars sum to the score "
        f"**{found.score:.3f}**. The softmax over this query's scores for all keys turns it into the weight "
        f"**{found.weight:.3f}**. Single dimensions mean nothing by themselves: rotating queries and keys together "
        "changes the bars, but not their sum."
    )
    chart(
        query_key_bars(found.products),
        key="chart_query_key",
        alt=f"Bars of query times key in {len(found.products)} dimensions, which sum to {found.score:.2f}",
        file_name=f"{view.checkpoint}-query-key",
    )


def _compare(opened: layout.Page, pattern: np.ndarray, names: list[str]) -> None:
    """The same text in a second checkpoint."""
    view = opened.view
    st.subheader(f"The same text in {plain(view.checkpoint)} and in {plain(view.versus)}", anchor=False)
    try:
        other = compute.patterns(checkpoints.source(view.versus), view.text)
    except TxclsError as error:
        st.warning(plain(str(error)))
        return
    n_layers, n_heads, n_tokens, _ = other.attention.shape
    layer, head = min(view.layer, n_layers - 1), min(view.head, n_heads - 1)
    shown = window(n_tokens, key="versus_window")
    others = [token.label for token in other.tokens[shown]]
    maps = (
        (view.checkpoint, view.layer, view.head, pattern, names),
        (view.versus, layer, head, other.attention[layer, head][shown, shown], others),
    )
    for column, (name, of_layer, of_head, weights, tokens) in zip(st.columns(2, gap="large"), maps, strict=True):
        with column:
            st.markdown(f"**{plain(name)}**, layer {of_layer + 1}, head {of_head + 1}")
            chart(
                attention_map(weights, tokens),
                key=f"chart_versus_{name}",
                alt=f"Heat map of attention of {name} in layer {of_layer + 1}, head {of_head + 1} over {len(tokens)} "
                f"tokens; {_largest(weights, tokens)}",
                file_name=f"{name}-layer{of_layer + 1}-head{of_head + 1}-map",
            )
    st.caption(
        "Head numbers are arbitrary: head 1 of one model does not correspond to head 1 of another, even if the two "
        "differ only in the random seed. The second model may also tokenize the text differently."
    )


def _heads(opened: layout.Page) -> None:
    """Entropy and distance of each head."""
    found = compute.paths(opened.source, opened.view.text)
    n_tokens = len(found.rollout)
    st.subheader("Entropy and distance of each head", anchor=False)
    left, right = st.columns(2, gap="large")
    with left:
        chart(
            head_values_map(
                found.heads.entropy, title="bits", quantity="entropy in bits:", top=float(np.log2(max(n_tokens, 2)))
            ),
            key="chart_entropy",
            alt=f"Board of each head's entropy, from {found.heads.entropy.min():.2f} to "
            f"{found.heads.entropy.max():.2f} bits",
            file_name=f"{opened.view.checkpoint}-entropy",
        )
        st.caption(
            f"Entropy of a query's attention, mean over queries: 0 bits if all of it is on one key, log₂ {n_tokens} = "
            f"{np.log2(n_tokens):.2f} bits if it is uniform."
        )
    with right:
        chart(
            head_values_map(
                found.heads.distance,
                title="tokens",
                quantity="mean distance:",
                top=max(1.0, (n_tokens - 1) / 2),
                digits=1,
            ),
            key="chart_distance",
            alt=f"Board of each head's mean distance, from {found.heads.distance.min():.1f} to "
            f"{found.heads.distance.max():.1f} tokens",
            file_name=f"{opened.view.checkpoint}-distance",
        )
        st.caption(
            "Distance between query and key in tokens, mean weighted by attention; 0 means that each token attends to "
            f"itself. Uniform attention gives {(n_tokens * n_tokens - 1) / (3 * n_tokens):.1f} in this text."
        )


def _rollout(opened: layout.Page, kept: np.ndarray, names: list[str]) -> None:
    """Attention through all layers."""
    rolled_out = compute.paths(opened.source, opened.view.text).rollout[np.ix_(kept, kept)]
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
                names,
                rows="token after the last layer",
                columns="input token",
                verb="draws on",
            ),
            key="chart_rollout",
            alt=f"Heat map of attention rollout over {len(names)} tokens; {_largest(rolled_out, names)}",
            file_name=f"{opened.view.checkpoint}-rollout",
        )


def _pooling(weights: np.ndarray, names: list[str], hide: bool, view: View) -> None:
    st.subheader("Pooling: how much each token counts", anchor=False)
    st.markdown(
        "After the last layer, the tokens' states are averaged with these weights into the vector that is classified. "
        "The dashed line marks equal weights."
    )
    chart(
        pooling_bars(weights, names),
        key="chart_pooling",
        alt="Bar chart of pooling weights; highest: "
        + ", ".join(f"{names[place][:20]} {percentage(weights[place], 0)}" for place in np.argsort(-weights)[:3]),
        file_name=f"{view.checkpoint}-pooling",
    )
    if hide:
        st.caption(f"Tokens that are not shown get {percentage(1.0 - float(weights.sum()), 0)} of the weight.")


def _layer_norm() -> None:
    with st.expander("LayerNorm: what every block does to each token", on_change="rerun") as section:
        if not section.open:
            return
        st.markdown(
            "Each token's D numbers x are normalised to mean 0 and variance 1, then scaled and shifted by two learned "
            "vectors γ and β (`weight` and `bias`). ε avoids a division by zero when all numbers are equal."
        )
        model_parts.code(LayerNorm, formula=LAYER_NORM)


def _query_changed() -> None:
    state.change_view(query=int(st.session_state["arc_query"]))


def _pair_changed() -> None:
    state.change_view(pair=tuple(int(st.session_state[f"why_{title}"]) + 1 for title in ("Query", "Key")))


def _grid_clicked() -> None:
    points = st.session_state["chart_grid"]["selection"]["points"]
    if points:
        layer, head = points[0]["customdata"][:2]
        state.change_view(layer=int(layer), head=int(head))


def _largest(weights: np.ndarray, names: list[str]) -> str:
    """The largest weight of a map and its tokens, for a description."""
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    return f"largest weight: {weights[query, key]:.2f} from “{names[query][:30]}” to “{names[key][:30]}”"


if __name__ == "__main__":
    main()
