"""The attention masks of a causal and of a masked-token model, and the attention of one head in each."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from txcls.address import View
from txcls.app.pages.language.model import Chosen, choose_model, warn_if_cut
from txcls.app.shell import checkpoints, compute, heads, layout, lecture
from txcls.app.shell.charts import chart
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import say_no_tokens
from txcls.figures import attention_map, mask_map
from txcls.inspection.language_model import MaskedAttention

MAX_MAPPED = 128
"""Maximum number of tokens in a text whose mask and patterns are drawn."""


@dataclass(frozen=True)
class Seen:
    """A text in one model: its token names, attention mask and attention patterns."""

    chosen: Chosen
    attention: MaskedAttention
    names: list[str]


def draw(opened: layout.Opened) -> None:
    """Draw this part of the page."""
    with lecture.slide(lecture.ATTENTION):
        st.markdown(
            "The same text in two models. Each **row** is a query, each **column** a key. In a causal model, later "
            "keys are masked: otherwise it could copy the next token instead of predicting it. A masked-token model "
            "attends in both directions."
        )
        columns = st.columns(2, gap="large")
    by_objective: dict[checkpoints.Objective, Seen] = {}
    headings: dict[checkpoints.Objective, str] = {"causal": "Causal", "masked": "Bidirectional"}
    for column, (objective, heading) in zip(columns, headings.items(), strict=True):
        with column:
            st.subheader(heading, anchor=False)
            chosen = choose_model(opened, objective)
            if chosen is not None and (seen := _mask(opened, chosen)) is not None:
                by_objective[objective] = seen
    if not by_objective:
        return
    with lecture.slide(lecture.ATTENTION):
        st.subheader("Attention of one head", anchor=False)
        shapes = [seen.attention.patterns.shape for seen in by_objective.values()]
        n_layers, n_heads = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
        fitted = layout.fit_view(opened, of="these models", layer=n_layers - 1, head=n_heads - 1)
        view = replace(fitted.view, layer=max(fitted.view.layer, 0), head=max(fitted.view.head, 0))
        heads.choose_head(view, n_layers, n_heads)
        for column, objective in zip(st.columns(2, gap="large"), headings, strict=True):
            if objective in by_objective:
                with column:
                    _pattern(view, by_objective[objective])


def _mask(opened: layout.Opened, chosen: Chosen) -> Seen | None:
    encoding = chosen.model.read(opened.view.text)
    read = (encoding.tokens or chosen.model.start)[:MAX_MAPPED]
    if not read:
        say_no_tokens()
        return None
    attention = compute.masked_attention(chosen.source, chosen.objective, tuple(token.id for token in read))
    names = [chosen.name_of(token) for token in read]
    n_seen, n_all = int(attention.mask.sum()), attention.mask.size
    st.markdown(f"**The mask**: {n_seen:,} of {n_all:,} query–key pairs are unmasked.")
    chart(
        mask_map(attention.mask, names),
        key=f"chart_mask_{chosen.objective}",
        alt=f"Attention mask of the {chosen.objective} model over {len(names)} tokens: {n_seen:,} of {n_all:,} "
        "query–key pairs unmasked",
        of=chosen.source.name,
    )
    warn_if_cut(encoding, chosen)
    if len(encoding.tokens) > MAX_MAPPED:
        st.caption(f"Shown for the first {MAX_MAPPED} of {len(encoding.tokens):,} tokens.")
    return Seen(chosen, attention, names)


def _pattern(view: View, seen: Seen) -> None:
    chosen = seen.chosen
    n_layers, n_heads = seen.attention.patterns.shape[:2]
    layer, head = min(view.layer, n_layers - 1), min(view.head, n_heads - 1)
    where = f"layer {layer + 1} of {n_layers}, head {head + 1} of {n_heads}"
    last = " (its last)" if (layer, head) != (view.layer, view.head) else ""
    st.markdown(f"**{plain(chosen.model.name)}**, {where}{last}: each row sums to 1 over its unmasked keys.")
    weights = np.where(seen.attention.mask, seen.attention.patterns[layer, head], np.nan)  # masked cells stay blank
    chart(
        attention_map(weights, seen.names),
        key=f"chart_pattern_{chosen.objective}",
        alt=f"Heat map of attention of the {chosen.objective} model in {where} over {len(seen.names)} tokens",
        of=f"{chosen.source.name}-layer{layer + 1}-head{head + 1}",
    )
