"""Continue the text: the next token, how it is sampled, and the surprisal of the typed tokens."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app.components.token_strip import StripToken, token_strip
from txcls.app.pages.language.model import (
    ChosenModel,
    choose_model,
    draw_facts,
    draw_ranking,
    expected_tokens,
    warn_if_cut,
)
from txcls.app.shell import cached_results, layout, lecture, token_html, view_state
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import clicked_point
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import say_no_tokens
from txcls.figures import surprisal_bars
from txcls.inference.generation import Sampling, generate
from txcls.inspection.language_model import NextTokens, Surprisal
from txcls.lessons.page_address import MAX_SEED, View
from txcls.text.formatting import bounded_percentage, percentage
from txcls.text.tokens import Token

FloatArray = NDArray[np.float32]
TOP_KS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)


def draw(page: layout.PlainPage, controls: Any) -> None:
    """Draw this part of the page."""
    with lecture.slide():
        drawn = _draw_prediction(page, controls)
    if drawn is None:
        return
    chosen, typed, surprisal = drawn
    with lecture.slide(lecture.WORDS):
        _draw_surprisal(chosen, typed, surprisal)
    draw_facts(chosen.model)


def _draw_prediction(page: layout.PlainPage, controls: Any) -> tuple[ChosenModel, Sequence[Token], Surprisal] | None:
    """Draw the predicted next tokens; return the model, the tokens of the typed text and their surprisal."""
    chosen = choose_model(page, "causal", controls)
    if chosen is None:
        return None
    view, model = page.view, chosen.model
    encoding = model.read(view.text)
    typed = encoding.tokens or model.start
    if not typed:
        say_no_tokens()
        return None
    if any(not 0 <= index < len(chosen.names) for index in view.added):
        st.warning("The continuation in the link is not from this model; it was ignored.")
        view = replace(view, added=())
        view_state.publish(view)
    upto, added = view.upto if 0 < view.upto < len(typed) else len(typed), view.added
    ids = tuple(token.id for token in typed)
    prompt = (*ids[:upto], *added)
    surprisal = cached_results.surprisal(chosen.source, ids)
    controls.markdown(
        "**Sample the next token**, or click one to go back: the stronger its colour, the more surprising it was.",
        width="content",
        help="Surprisal: −log₂ of the predicted probability. Full colour: no better than a uniform guess.",
    )
    token_strip(
        [
            *_typed_tokens(typed[:upto] if added else typed, surprisal.bits, upto, chosen),
            *(
                StripToken(chosen.name(index), None, f"added token {n}", "added")
                for n, index in enumerate(added, start=1)
            ),
        ],
        label="Tokens of the text; select one to continue from there",
        key="strip_continue",
        on_choose=_set_upto,
    )
    warn_if_cut(encoding, chosen, more=" Click an earlier token to continue from there.")
    left, right = st.columns([3, 2], gap="large")
    with right:
        sampling = _draw_sampling(view)
        filter_container = st.empty()
    with left:
        _draw_buttons(chosen, prompt, len(added), sampling, changed=bool(added) or upto < len(typed))
        if added:
            text_before = view.text[: typed[upto - 1].end]
            continuation = model.appended_text(ids[:upto], added)
            after = token_html.escape(continuation if text_before else continuation.lstrip())
            st.html(f'<div class="txcls-text" dir="auto">{token_html.escape(text_before)}<ins>{after}</ins></div>')
        if len(prompt) > model.model.config.max_length:
            st.info(
                f"This model reads {model.model.config.max_length:,} tokens at most, and the text has reached that "
                "limit. Undo, start again, or go back to an earlier token."
            )
        else:
            true_token = typed[upto] if upto < len(typed) and not added else None
            expected = cached_results.next_tokens(
                chosen.source, prompt, sampling, None if true_token is None else true_token.id
            )
            _draw_next(expected, chosen, sampling, true_token)
            filter_container.markdown(_filter_sentence(expected, len(chosen.names), sampling))
    return chosen, typed, surprisal


def _typed_tokens(typed: Sequence[Token], bits: FloatArray, upto: int, chosen: ChosenModel) -> list[StripToken]:
    """The typed tokens; full colour means no better than a uniform guess. The model predicts the token at `upto`."""
    strip = []
    uniform_bits = float(np.log2(len(chosen.names)))
    for index, token in enumerate(typed):
        is_known = not np.isnan(bits[index])
        kind = "fixed" if token.is_special else "unknown" if token.is_unknown else ""
        strip.append(
            StripToken(
                text=chosen.name_of(token),
                number=index if index and not token.is_special else None,
                title=f"token {index + 1}" + (f": {bits[index]:.1f} bits" if is_known else ""),
                kind="later" if index > upto else kind,
                pressed=index == upto,
                shade=round(min(float(bits[index]) / uniform_bits, 1.0), 3) if is_known else 0.0,
            )
        )
    return strip


def _set_upto(number: int) -> None:
    is_selected = number == st.session_state["_view"].upto
    view_state.change_view(upto=0 if is_selected else number, added=())


def _draw_buttons(
    chosen: ChosenModel, prompt: tuple[int, ...], n_added: int, sampling: Sampling, *, changed: bool
) -> None:
    is_full = len(prompt) > chosen.model.model.config.max_length
    row = st.container(horizontal=True, gap="small")
    for n, text in ((1, "Sample next"), (10, "Sample 10")):
        row.button(
            text,
            key=f"sample_{n}",
            type="primary" if n == 1 else "secondary",
            disabled=is_full,
            on_click=_sample,
            args=(chosen, prompt, n_added, n, sampling),
        )
    row.button("Undo", key="undo", disabled=not n_added, on_click=_undo)
    row.button("Start again", key="start_again", disabled=not changed, on_click=_start_again)


def _sample(chosen: ChosenModel, prompt: tuple[int, ...], n_added: int, n: int, sampling: Sampling) -> None:
    steps = generate(chosen.model.model, prompt, n=n, sampling=sampling, drawn=n_added)
    _add_tokens([step.id for step in steps])


def _add_tokens(ids: Sequence[int]) -> None:
    view_state.change_view(added=(*st.session_state["_view"].added, *ids))


def _undo() -> None:
    view_state.change_view(added=st.session_state["_view"].added[:-1])


def _start_again() -> None:
    view_state.change_view(added=(), upto=0)


def _draw_sampling(view: View) -> Sampling:
    """Draw the sampling controls; return their values."""
    st.subheader("How the next token is sampled", anchor=False)
    for field in ("temperature", "top_k", "top_p", "seed"):
        st.session_state[f"{field}_box"] = getattr(view, field)
    st.slider(
        "Temperature",
        0.0,
        2.0,
        step=0.05,
        key="temperature_box",
        on_change=view_state.follow("temperature", "temperature_box"),
        help="Logits are divided by it before the softmax: values below 1 favour probable tokens, 0 takes the best.",
    )
    st.select_slider(
        "Top-k",
        sorted({*TOP_KS, view.top_k}, key=lambda k: k or 10**9),
        key="top_k_box",
        format_func=lambda k: f"{k:,}" if k else "all",
        on_change=view_state.follow("top_k", "top_k_box"),
        help="Only the k most probable tokens can be sampled.",
    )
    st.slider(
        "Top-p",
        0.05,
        1.0,
        step=0.05,
        key="top_p_box",
        on_change=view_state.follow("top_p", "top_p_box"),
        help="Only the smallest set of tokens that reaches this probability can be sampled.",
    )
    st.number_input(
        "Seed",
        0,
        MAX_SEED,
        key="seed_box",
        on_change=view_state.follow("seed", "seed_box"),
        help="The same seed gives the same samples.",
    )
    return Sampling(temperature=view.temperature, top_k=view.top_k or None, top_p=view.top_p, seed=view.seed)


def _is_filtering(sampling: Sampling) -> bool:
    return sampling.temperature != 1.0 or sampling.top_k is not None or sampling.top_p < 1.0


def _draw_next(expected: NextTokens, chosen: ChosenModel, sampling: Sampling, true: Token | None) -> None:
    ranked = expected.ranked
    st.subheader("What comes next?", anchor=False)
    read_as = f" (read as {chosen.name(true.id)})" if true is not None and true.is_unknown else ""
    name = None if true is None else chosen.name_of(true) + read_as
    st.markdown(expected_tokens(ranked, chosen, name, is_unknown=False))
    if not lecture.is_on():  # the chart needs the height, and its bars can be selected too
        st.markdown("Select a token to append it, here or in the chart:")
        token_strip(
            [
                StripToken(chosen.name(index), number, percentage(probability, 2))
                for number, (index, probability) in enumerate(zip(ranked.ids, ranked.probabilities, strict=True))
            ],
            label="The most probable next tokens; select one to append it",
            key="strip_next",
            on_choose=lambda number: _add_tokens([ranked.ids[number]]),
        )
    draw_ranking(
        ranked,
        chosen,
        key="chart_next",
        filtered=expected.filtered if _is_filtering(sampling) else None,
        on_select=lambda: _add_clicked(ranked.ids),
    )


def _add_clicked(ids: Sequence[int]) -> None:
    point = clicked_point("chart_next")
    if point is not None and (row := int(point[0])) < len(ids):
        _add_tokens([ids[row]])


def _filter_sentence(expected: NextTokens, n_tokens: int, sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return "At temperature 0 nothing is sampled: the most probable token is always taken."
    if expected.n_candidates == n_tokens:
        return f"All **{n_tokens:,}** tokens can be sampled."
    return (
        f"**{expected.n_candidates:,}** of {n_tokens:,} token{'s' * (expected.n_candidates > 1)} can be sampled, with "
        f"**{bounded_percentage(expected.candidate_share)}** of the unfiltered probability."
    )


def _draw_surprisal(chosen: ChosenModel, typed: Sequence[Token], surprisal: Surprisal) -> None:
    st.subheader("How surprising was each token?", anchor=False)
    bits = surprisal.bits
    if surprisal.mean is None or surprisal.perplexity is None:
        st.markdown("No token of this text has a token before it, so there is nothing to measure.")
        return
    unknown = " A word outside the vocabulary counts as <unk>." if any(token.is_unknown for token in typed) else ""
    st.markdown(
        f"On average **{surprisal.mean:.2f} bits** per token, a perplexity of **{surprisal.perplexity:,.1f}**: as "
        f"surprising as a uniform choice among that many tokens.{plain(unknown)}"
    )
    shown = [index for index in range(len(typed)) if not np.isnan(bits[index])]
    most_surprising = max(shown, key=lambda index: bits[index])
    chart(
        surprisal_bars(bits[shown], [chosen.name_of(typed[index]) for index in shown], mean=surprisal.mean),
        key="chart_surprisal",
        alt=f"Bar chart of the surprisal of {len(shown)} tokens in bits; highest: "
        f"{chosen.name_of(typed[most_surprising])[:20]} with {bits[most_surprising]:.1f}",
        file_prefix=chosen.source.name,
    )
