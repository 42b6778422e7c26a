"""The attention masks of a causal and a masked language model, and the attention of one head in each."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from txcls.app.pages.language.model import ChosenModel, choose_model, warn_if_cut
from txcls.app.shell import cached_results, checkpoints, heads, layout, lecture
from txcls.app.shell.charts import chart
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import say_no_tokens
from txcls.figures import attention_map, mask_map
from txcls.inspection.language_model import MaskedAttention
from txcls.lessons.page_address import View

MAX_TOKENS = 128
"""Maximum number of tokens in a text whose mask and patterns are drawn."""


@dataclass(frozen=True)
class TextAttention:
    """A text in one model: its attention mask and patterns, and the names of its tokens."""

    chosen: ChosenModel
    attention: MaskedAttention
    names: list[str]


def draw(page: layout.PlainPage) -> None:
    """Draw this part of the page."""
    with lecture.slide(lecture.ATTENTION):
        st.markdown(
            "The same text in two models. Each **row** is a query, each **column** a key. In a causal model, later "
            "keys are masked: otherwise it could copy the next token instead of predicting it. A masked language model "
            "attends in both directions."
        )
        columns = st.columns(2, gap="large")
    by_objective: dict[checkpoints.Objective, TextAttention] = {}
    headings: dict[checkpoints.Objective, str] = {"causal": "Causal", "masked": "Bidirectional"}
    for column, (objective, heading) in zip(columns, headings.items(), strict=True):
        with column:
            st.subheader(heading, anchor=False)
            chosen = choose_model(page, objective)
            if chosen is not None and (shown := _draw_mask(page, chosen)) is not None:
                by_objective[objective] = shown
    if not by_objective:
        return
    with lecture.slide(lecture.ATTENTION):
        st.subheader("Attention of one head", anchor=False)
        shapes = [shown.attention.patterns.shape for shown in by_objective.values()]
        n_layers, n_heads = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
        fitted = layout.fit_view(page, layer=n_layers - 1, head=n_heads - 1)
        view = replace(fitted.view, layer=max(fitted.view.layer, 0), head=max(fitted.view.head, 0))
        heads.choose_head(view, {"layer": n_layers, "head": n_heads})
        for column, objective in zip(st.columns(2, gap="large"), headings, strict=True):
            if objective in by_objective:
                with column:
                    _draw_pattern(view, by_objective[objective])


def _draw_mask(page: layout.PlainPage, chosen: ChosenModel) -> TextAttention | None:
    encoding = chosen.model.read(page.view.text)
    tokens = (encoding.tokens or chosen.model.start)[:MAX_TOKENS]
    if not tokens:
        say_no_tokens()
        return None
    attention = cached_results.masked_attention(chosen.source, chosen.objective, tuple(token.id for token in tokens))
    names = [chosen.name_of(token) for token in tokens]
    n_unmasked, n_all = int(attention.mask.sum()), attention.mask.size
    st.markdown(f"**The mask**: {n_unmasked:,} of {n_all:,} query–key pairs are unmasked.")
    chart(
        mask_map(attention.mask, names),
        key=f"chart_mask_{chosen.objective}",
        alt=f"Attention mask of the {chosen.objective} model over {len(names)} tokens: {n_unmasked:,} of {n_all:,} "
        "query–key pairs unmasked",
        file_prefix=chosen.source.name,
    )
    warn_if_cut(encoding, chosen)
    if len(encoding.tokens) > MAX_TOKENS:
        st.caption(f"Shown for the first {MAX_TOKENS} of {len(encoding.tokens):,} tokens.")
    return TextAttention(chosen, attention, names)


def _draw_pattern(view: View, shown: TextAttention) -> None:
    chosen = shown.chosen
    n_layers, n_heads = shown.attention.patterns.shape[:2]
    layer, head = min(view.layer, n_layers - 1), min(view.head, n_heads - 1)
    where = f"layer {layer + 1} of {n_layers}, head {head + 1} of {n_heads}"
    note = " (its last)" if (layer, head) != (view.layer, view.head) else ""
    st.markdown(f"**{plain(chosen.model.name)}**, {where}{note}: each row sums to 1 over its unmasked keys.")
    weights = np.where(shown.attention.mask, shown.attention.patterns[layer, head], np.nan)  # masked cells stay blank
    chart(
        attention_map(weights, shown.names),
        key=f"chart_pattern_{chosen.objective}",
        alt=f"Heat map of attention of the {chosen.objective} model in {where} over {len(shown.names)} tokens",
        file_prefix=f"{chosen.source.name}-layer{layer + 1}-head{head + 1}",
    )
