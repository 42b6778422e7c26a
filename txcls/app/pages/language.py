"""Language models: filling a blank, predicting and sampling the next token, and the two attention masks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import pages
from txcls.app.components.token_strip import StripToken, token_strip
from txcls.app.shell import checkpoints, compute, heads, layout, lecture, model_parts, state, token_html
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice, clicked_point
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import ask_for_text, say_no_tokens
from txcls.errors import TxclsError
from txcls.figures import attention_map, mask_map, surprisal_bars, token_bars, visible
from txcls.inspection.language_model import MaskedAttention, NextTokens, RankedTokens, Surprisal, continue_ids
from txcls.language.generation import Sampling, TextModel
from txcls.lessons.address import LARGEST_SEED, LanguagePart, View
from txcls.text.encoder import Encoding, Token
from txcls.wording import bounded_percentage, percentage

FloatArray = NDArray[np.float32]
LINKS = (pages.CLASSIFY, pages.TOKENS, pages.ATTENTION, pages.NEIGHBOURHOOD)
PARTS = {"fill": "Fill a blank", "continue": "Continue", "masks": "Two masks"}
PRESETS: dict[checkpoints.Objective, tuple[str, str]] = {
    "masked": ("encoder", "fills in blanks"),
    "causal": ("lm", "continues texts"),
}
MOST_MAPPED = 128
"""Most tokens of a text whose mask and patterns are drawn."""
TOP_KS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Chosen:
    """A loaded language model and its cache key."""

    source: Source
    model: TextModel
    names: tuple[str, ...]
    objective: checkpoints.Objective

    def name_of(self, token: Token) -> str:
        """A token in printable form; an unknown one as it was typed."""
        return visible(token.text if token.is_unknown else self.names[token.id])


def main() -> None:
    """Draw the page."""
    there = [name for objective in PRESETS for name in checkpoints.language_names(objective)]
    dataset = checkpoints.summary(there[0]).dataset if there else ""
    opened = layout.open_language_page(pages.LANGUAGE, dataset=dataset)
    parts: dict[LanguagePart, Callable[[layout.Opened], None]] = {"fill": _fill, "continue": _continue, "masks": _masks}
    if lecture.is_on():
        for draw in parts.values():
            draw(opened)
    else:
        choice(
            st,
            "Part of this page",
            get_args(LanguagePart),
            opened.view,
            "part",
            key="part_box",
            names=PARTS.__getitem__,
            label_visibility="collapsed",
        )
        parts[opened.view.part](opened)
    layout.close_page(opened, LINKS)


def _choose(opened: layout.Opened, objective: checkpoints.Objective) -> Chosen | None:
    """Load the selected language model and draw the line about it; without one, say how to train it and return None."""
    names, wanted = checkpoints.language_names(objective), getattr(opened.view, objective)
    if not names:
        preset, what = PRESETS[objective]
        st.info(
            f"There is no language model that {what} yet. Train one with `python -m txcls pretrain {preset}`, which "
            "takes a while on a CPU (`--max-steps 500` gives a rough one in minutes), then reload this page."
        )
        return None
    name = wanted if wanted in names else names[0]
    if wanted and wanted != name:
        st.warning(plain(f"There is no language model “{wanted[:60]}” here that {PRESETS[objective][1]}."))
    line = st.container(horizontal=True, vertical_alignment="center", gap="medium")
    if len(names) > 1 and not lecture.is_on():
        layout.picker(line, objective, names, name)
    facts = line.empty()
    waiting = st.empty()
    try:
        source = checkpoints.source(name)
        if not checkpoints.is_loaded(source):
            waiting.skeleton(480)
        language = checkpoints.language(source, objective)
    except TxclsError as error:
        waiting.empty()
        st.error(plain(str(error)))
        return None
    waiting.empty()
    chosen = Chosen(source, language.model, language.names, objective)
    if lecture.is_on():
        return chosen
    facts.html(layout.facts_html(_facts(chosen.model, with_title=len(names) < 2)))
    return chosen


def _facts(model: TextModel, *, with_title: bool) -> str:
    kinds = {"word": "words", "whitespace": "words", "basic_english": "words", "bpe": "sub-words"}
    parts = [f"<b>{token_html.escape(model.name)}</b>"]
    if with_title and model.title:
        parts.append(token_html.escape(model.title))
    if model.perplexity is not None:
        of = "" if model.model.config.causal else " of masked tokens"
        parts.append(f"perplexity <b>{model.perplexity:,.1f}</b>{of} on validation texts")
    parts.append(f"<b>{len(model.tokens):,}</b> {kinds[model.kind]}")
    parts.append(f"<b>{model.n_parameters:,}</b> parameters")
    return " · ".join(parts)


def _warn_if_cut(encoding: Encoding, chosen: Chosen, *, more: str = "") -> None:
    if encoding.truncated_at is not None:
        st.caption(
            f"✂ This text is too long for **{plain(chosen.model.name)}**: it is cut after "
            f"{len(encoding.tokens):,} tokens.{more}"
        )


# Fill in a blank


def _fill(opened: layout.Opened) -> None:
    with lecture.slide(lecture.WORDS, lecture.CLASSES):
        _fill_blank(opened)


def _fill_blank(opened: layout.Opened) -> None:
    chosen = _choose(opened, "masked")
    if chosen is None:
        return
    if not opened.has_text:
        ask_for_text("click a word, and the model predicts what was there.")
        return
    encoding = chosen.model.read(opened.view.text)
    words = [place for place, token in enumerate(encoding.tokens) if not token.is_special]
    number_of = {place: number for number, place in enumerate(words, start=1)}
    if not words:
        say_no_tokens()
        return
    blank = opened.view.blank if 1 <= opened.view.blank <= len(words) else _worth_guessing(encoding, words)
    place = words[blank - 1]
    st.markdown("**Click a word to mask it.** The model reads the tokens on both sides and ranks what could be there:")
    token_strip(
        [
            StripToken(
                text="▁▁▁▁" if at == place else chosen.name_of(token),
                number=number_of.get(at),
                title=f"token {at + 1}" + (", not in the vocabulary" if token.is_unknown else ""),
                kind="fixed" if token.is_special else "unknown" if token.is_unknown else "",
                pressed=at == place,
            )
            for at, token in enumerate(encoding.tokens)
        ],
        label="Words of the text; select one to mask it",
        key="strip_fill",
        on_choose=_blank_chosen,
    )
    _warn_if_cut(encoding, chosen)
    token = encoding.tokens[place]
    ranked = compute.fill(chosen.source, tuple(encoding.ids), place)
    st.markdown(_truth(ranked, chosen.name_of(token), len(chosen.names), is_unknown=token.is_unknown))
    _ranking(ranked, chosen, key="chart_fill", file_name=f"{chosen.source.name}-blank-{blank}")
    model_parts.parameters(chosen.model.model, chosen.model.name)


def _worth_guessing(encoding: Encoding, words: Sequence[int]) -> int:
    """The last of the longest known words, from 1: more interesting to predict than an article."""
    tokens = [encoding.tokens[place] for place in words]
    return 1 + max(range(len(tokens)), key=lambda n: (not tokens[n].is_unknown, min(len(tokens[n].text), 8), n))


def _blank_chosen(number: int) -> None:
    state.change_view(blank=number)


def _truth(ranked: RankedTokens, name: str, n_tokens: int, *, is_unknown: bool) -> str:
    """The rank of the typed token among the predictions, in words."""
    shown = plain(name[:80])
    if is_unknown or ranked.true_rank is None or ranked.true_probability is None:
        return f"**{shown}** was in the text. It is not in the vocabulary, so the model cannot predict it."
    mark = "✓ " if ranked.true_rank == 1 else ""
    return (
        f"{mark}**{shown}** was in the text: rank **{ranked.true_rank:,}** of {n_tokens:,}, with a probability of "
        f"**{bounded_percentage(ranked.true_probability)}**."
    )


def _ranking(
    ranked: RankedTokens,
    chosen: Chosen,
    *,
    key: str,
    file_name: str,
    filtered: Sequence[float] | None = None,
    **options: Any,
) -> None:
    names = [chosen.names[index] for index in ranked.ids]
    words = ", ".join(
        f"{visible(name)[:20]} {percentage(p)}" for name, p in zip(names, ranked.probabilities, strict=True)
    )
    chart(
        token_bars(
            names,
            ranked.probabilities,
            other=(ranked.n_others, ranked.other),
            filtered=filtered,
            true=ranked.ids.index(ranked.true_id) if ranked.true_id in ranked.ids else None,
        ),
        key=key,
        alt=f"Bar chart of the most probable tokens: {words}; all others {percentage(ranked.other)}",
        file_name=file_name,
        **options,
    )


# Continue the text


def _continue(opened: layout.Opened) -> None:
    with lecture.slide(lecture.CLASSES):
        read = _predict_next(opened)
    if read is None:
        return
    chosen, typed, surprisal = read
    with lecture.slide(lecture.WORDS, lecture.CLASSES):
        _surprisal(chosen, typed, surprisal)
    model_parts.parameters(chosen.model.model, chosen.model.name)


def _predict_next(opened: layout.Opened) -> "tuple[Chosen, Sequence[Token], Surprisal] | None":
    """What comes next; returns the model, the tokens of the typed text and their surprisal."""
    chosen = _choose(opened, "causal")
    if chosen is None:
        return None
    view, model = opened.view, chosen.model
    encoding = model.read(view.text)
    typed = encoding.tokens or model.start
    if not typed:
        say_no_tokens()
        return None
    if any(not 0 <= index < len(chosen.names) for index in view.added):
        st.warning("The continuation in the link is not from this model; it was ignored.")
        view = replace(view, added=())
        state.publish(view)
    upto, added = view.upto if 0 < view.upto < len(typed) else len(typed), view.added
    ids = tuple(token.id for token in typed)
    prompt = (*ids[:upto], *added)
    surprisal = compute.surprisal(chosen.source, ids)
    st.markdown(
        "The model reads only the **preceding** tokens and predicts the next one. Colour shows each token's surprisal, "
        "−log₂ of its predicted probability. Click a token to go back and see what the model predicted there."
    )
    token_strip(
        [
            *_typed_strip(typed[:upto] if added else typed, surprisal.bits, upto, chosen),
            *(
                StripToken(visible(chosen.names[index]), None, f"added token {n}", "added")
                for n, index in enumerate(added, start=1)
            ),
        ],
        label="Tokens of the text; select one to read only up to there",
        key="strip_continue",
        on_choose=_upto_chosen,
    )
    _warn_if_cut(encoding, chosen, more=" Click an earlier token to continue from there.")
    left, right = st.columns([3, 2], gap="large")
    with right:
        sampling = _sampling(view)
        filtering = st.empty()
    with left:
        _buttons(chosen, prompt, len(added), sampling, changed=bool(added) or upto < len(typed))
        if added:
            before = view.text[: typed[upto - 1].end]
            written = model.written(ids[:upto], added)
            after = token_html.escape(written if before else written.lstrip())
            st.html(f'<div class="txcls-text" dir="auto">{token_html.escape(before)}<ins>{after}</ins></div>')
        if len(prompt) > model.model.config.max_length:
            st.info(
                f"This model reads {model.model.config.max_length:,} tokens at most, and the text has reached that "
                "limit. Undo, start again, or go back to an earlier token."
            )
        else:
            true = typed[upto] if upto < len(typed) and not added else None
            expected = compute.expect(chosen.source, prompt, sampling, None if true is None else true.id)
            _next(expected, chosen, sampling, true)
            filtering.markdown(_what_filtering_leaves(expected, len(chosen.names), sampling))
    return chosen, typed, surprisal


def _typed_strip(typed: Sequence[Token], bits: FloatArray, upto: int, chosen: Chosen) -> list[StripToken]:
    """The typed tokens; full colour means no better than a uniform guess; the token at `upto` is being predicted."""
    strip = []
    blind = float(np.log2(len(chosen.names)))
    for place, token in enumerate(typed):
        known = not np.isnan(bits[place])
        kind = "fixed" if token.is_special else "unknown" if token.is_unknown else ""
        strip.append(
            StripToken(
                text=chosen.name_of(token),
                number=place if place and not token.is_special else None,
                title=f"token {place + 1}" + (f": {bits[place]:.1f} bits" if known else ""),
                kind="later" if place > upto else kind,
                pressed=place == upto,
                shade=round(min(float(bits[place]) / blind, 1.0), 3) if known else 0.0,
            )
        )
    return strip


def _upto_chosen(number: int) -> None:
    same = number == st.session_state["_view"].upto
    state.change_view(upto=0 if same else number, added=())


def _buttons(chosen: Chosen, prompt: tuple[int, ...], n_added: int, sampling: Sampling, *, changed: bool) -> None:
    full = len(prompt) > chosen.model.model.config.max_length
    row = st.container(horizontal=True, gap="small")
    for n, words in ((1, "Sample next"), (10, "Sample 10")):
        row.button(
            words,
            key=f"sample_{n}",
            type="primary" if n == 1 else "secondary",
            disabled=full,
            on_click=_sample,
            args=(chosen, prompt, n_added, n, sampling),
        )
    row.button("Undo", key="undo", disabled=not n_added, on_click=_undo)
    row.button("Start again", key="start_again", disabled=not changed, on_click=_start_again)


def _sample(chosen: Chosen, prompt: tuple[int, ...], n_added: int, n: int, sampling: Sampling) -> None:
    _add(continue_ids(chosen.model, prompt, n=n, sampling=sampling, drawn=n_added))


def _add(ids: Sequence[int]) -> None:
    state.change_view(added=(*st.session_state["_view"].added, *ids))


def _undo() -> None:
    state.change_view(added=st.session_state["_view"].added[:-1])


def _start_again() -> None:
    state.change_view(added=(), upto=0)


def _sampling(view: View) -> Sampling:
    """Draw the controls of sampling; returns their values."""
    st.subheader("How the next token is sampled", anchor=False)
    for field in ("temperature", "top_k", "top_p", "seed"):
        st.session_state[f"{field}_box"] = getattr(view, field)
    st.slider(
        "Temperature",
        0.0,
        2.0,
        step=0.05,
        key="temperature_box",
        on_change=state.follow("temperature", "temperature_box"),
        help="Logits are divided by it before the softmax: below 1 favours probable tokens, 0 always takes the best.",
    )
    st.select_slider(
        "Top-k",
        sorted({*TOP_KS, view.top_k}, key=lambda k: k or 10**9),
        key="top_k_box",
        format_func=lambda k: f"{k:,}" if k else "all",
        on_change=state.follow("top_k", "top_k_box"),
        help="Only the k most probable tokens can be sampled.",
    )
    st.slider(
        "Top-p",
        0.05,
        1.0,
        step=0.05,
        key="top_p_box",
        on_change=state.follow("top_p", "top_p_box"),
        help="Only the smallest set of tokens that reaches this probability can be sampled.",
    )
    st.number_input(
        "Seed",
        0,
        LARGEST_SEED,
        key="seed_box",
        on_change=state.follow("seed", "seed_box"),
        help="The same seed gives the same samples.",
    )
    return Sampling(temperature=view.temperature, top_k=view.top_k or None, top_p=view.top_p, seed=view.seed)


def _filters(sampling: Sampling) -> bool:
    return sampling.temperature != 1.0 or sampling.top_k is not None or sampling.top_p < 1.0


def _next(expected: NextTokens, chosen: Chosen, sampling: Sampling, true: Token | None) -> None:
    ranked = expected.ranked
    st.subheader("What comes next?", anchor=False)
    if true is not None:
        read = f" (read as {chosen.names[true.id]})" if true.is_unknown else ""
        st.markdown(_truth(ranked, chosen.name_of(true) + read, len(chosen.names), is_unknown=False))
    st.markdown("Select a token to append it, here or in the chart:")
    token_strip(
        [
            StripToken(visible(chosen.names[index]), number, percentage(probability, 2))
            for number, (index, probability) in enumerate(zip(ranked.ids, ranked.probabilities, strict=True))
        ],
        label="The most probable next tokens; select one to append it",
        key="strip_next",
        on_choose=lambda number: _add([ranked.ids[number]]),
    )
    _ranking(
        ranked,
        chosen,
        key="chart_next",
        file_name=f"{chosen.source.name}-next",
        filtered=expected.filtered if _filters(sampling) else None,
        on_select=lambda: _bar_clicked(ranked.ids),
    )


def _bar_clicked(ids: Sequence[int]) -> None:
    point = clicked_point("chart_next")
    if point is not None and (row := int(point[0])) < len(ids):
        _add([ids[row]])


def _what_filtering_leaves(expected: NextTokens, n_tokens: int, sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return "At temperature 0 nothing is sampled: the most probable token is always taken."
    if expected.n_kept == n_tokens:
        return f"All **{n_tokens:,}** tokens can be sampled."
    can = "token can" if expected.n_kept == 1 else "tokens can"
    return (
        f"**{expected.n_kept:,}** of {n_tokens:,} {can} be sampled, with **{bounded_percentage(expected.kept)}** of "
        "the unfiltered probability."
    )


def _surprisal(chosen: Chosen, typed: Sequence[Token], surprisal: Surprisal) -> None:
    st.subheader("How surprising was each token?", anchor=False)
    bits = surprisal.bits
    if surprisal.mean is None or surprisal.perplexity is None:
        st.markdown("No token of this text has a token before it, so there is nothing to measure.")
        return
    unknown = " A word outside the vocabulary counts as <unk>." if any(token.is_unknown for token in typed) else ""
    st.markdown(
        f"On average **{surprisal.mean:.2f} bits** per token: −log₂ of its predicted probability. Two to this power is "
        f"the perplexity, **{surprisal.perplexity:,.1f}**: the model was as uncertain as if choosing uniformly among "
        f"that many tokens.{plain(unknown)}"
    )
    shown = [place for place in range(len(typed)) if not np.isnan(bits[place])]
    most = max(shown, key=lambda place: bits[place])
    chart(
        surprisal_bars(bits[shown], [chosen.name_of(typed[place]) for place in shown], mean=surprisal.mean),
        key="chart_surprisal",
        alt=f"Bar chart of the surprisal of {len(shown)} tokens in bits; highest: "
        f"{chosen.name_of(typed[most])[:20]} with {bits[most]:.1f}",
        file_name=f"{chosen.source.name}-surprisal",
    )


# Attention masks


@dataclass(frozen=True)
class Seen:
    """A text in one model: its token names, attention mask and attention patterns."""

    chosen: Chosen
    sight: MaskedAttention
    names: list[str]


def _masks(opened: layout.Opened) -> None:
    with lecture.slide(lecture.ATTENTION):
        st.markdown(
            "The same text in two models. Each **row** is a query, each **column** a key. In a causal model, later "
            "keys are masked: otherwise it could copy the next token instead of predicting it. A masked-token model "
            "attends in both directions."
        )
        columns = st.columns(2, gap="large")
    both: dict[checkpoints.Objective, Seen] = {}
    headings: dict[checkpoints.Objective, str] = {"causal": "Causal", "masked": "Bidirectional"}
    for column, (objective, heading) in zip(columns, headings.items(), strict=True):
        with column:
            st.subheader(heading, anchor=False)
            chosen = _choose(opened, objective)
            if chosen is not None and (seen := _mask(opened, chosen)) is not None:
                both[objective] = seen
    if not both:
        return
    with lecture.slide(lecture.ATTENTION):
        st.subheader("Attention of one head", anchor=False)
        shapes = [seen.sight.patterns.shape for seen in both.values()]
        n_layers, n_heads = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
        fitted = layout.fit_view(opened, of="these models", layer=n_layers - 1, head=n_heads - 1)
        view = replace(fitted.view, layer=max(fitted.view.layer, 0), head=max(fitted.view.head, 0))
        heads.choose_head(view, n_layers, n_heads)
        for column, objective in zip(st.columns(2, gap="large"), headings, strict=True):
            if objective in both:
                with column:
                    _pattern(view, both[objective])


def _mask(opened: layout.Opened, chosen: Chosen) -> Seen | None:
    encoding = chosen.model.read(opened.view.text)
    read = (encoding.tokens or chosen.model.start)[:MOST_MAPPED]
    if not read:
        say_no_tokens()
        return None
    sight = compute.sight(chosen.source, chosen.objective, tuple(token.id for token in read))
    names = [chosen.name_of(token) for token in read]
    n_seen, n_all = int(sight.mask.sum()), sight.mask.size
    st.markdown(f"**The mask**: {n_seen:,} of {n_all:,} query–key pairs are unmasked.")
    chart(
        mask_map(sight.mask, names),
        key=f"chart_mask_{chosen.objective}",
        alt=f"Attention mask of the {chosen.objective} model over {len(names)} tokens: {n_seen:,} of {n_all:,} "
        "query–key pairs unmasked",
        file_name=f"{chosen.source.name}-mask",
    )
    _warn_if_cut(encoding, chosen)
    if len(encoding.tokens) > MOST_MAPPED:
        st.caption(f"Shown for the first {MOST_MAPPED} of {len(encoding.tokens):,} tokens.")
    return Seen(chosen, sight, names)


def _pattern(view: View, seen: Seen) -> None:
    chosen = seen.chosen
    n_layers, n_heads = seen.sight.patterns.shape[:2]
    layer, head = min(view.layer, n_layers - 1), min(view.head, n_heads - 1)
    where = f"layer {layer + 1} of {n_layers}, head {head + 1} of {n_heads}"
    last = " (its last)" if (layer, head) != (view.layer, view.head) else ""
    st.markdown(f"**{plain(chosen.model.name)}**, {where}{last}: each row sums to 1 over its unmasked keys.")
    weights = np.where(seen.sight.mask, seen.sight.patterns[layer, head], np.nan)  # masked cells stay blank
    chart(
        attention_map(weights, seen.names),
        key=f"chart_pattern_{chosen.objective}",
        alt=f"Heat map of attention of the {chosen.objective} model in {where} over {len(seen.names)} tokens",
        file_name=f"{chosen.source.name}-layer{layer + 1}-head{head + 1}-map",
    )


if __name__ == "__main__":
    main()
