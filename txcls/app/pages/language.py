"""Language models: fill a blank, or predict and sample the next token."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import menu
from txcls.app.components.widgets import StripToken, token_strip
from txcls.app.shell import cached_results, checkpoints, layout, lecture, token_html, view_state
from txcls.app.shell.cache import Source
from txcls.app.shell.charts import chart
from txcls.app.shell.controls import choice, clicked_point
from txcls.app.shell.markdown import escape
from txcls.app.shell.prediction import ask_for_text, say_no_tokens
from txcls.errors import TxclsError
from txcls.figures import surprisal_bars, token_bars, visible
from txcls.inference.generation import Sampling, TextModel, generate
from txcls.inspection.language_model import NextTokens, RankedTokens, Surprisal
from txcls.lessons.page_address import MAX_SEED, LanguagePart, View
from txcls.text.formatting import bounded_percentage, percentage
from txcls.text.tokens import Encoding, Token

FloatArray = NDArray[np.float32]
TOP_KS = (0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
PART_NAMES = {"fill": "Fill a blank", "continue": "Continue"}
PRESETS: dict[checkpoints.Objective, tuple[str, str]] = {
    "masked": ("encoder", "fills in blanks"),
    "causal": ("lm", "continues texts"),
}
"""For each objective, the preset to train with, and what such a model does."""


@dataclass(frozen=True)
class ChosenModel:
    """A loaded language model and its cache key."""

    source: Source
    model: TextModel
    names: tuple[str, ...]

    def name_of(self, token: Token) -> str:
        """A token in printable form; an unknown token as typed."""
        return visible(token.text) if token.is_unknown else self.name(token.id)

    def name(self, index: int) -> str:
        """The token with this id in printable form; on slides, which lack the room, without the sign of a space."""
        name = self.names[index]
        return visible((name.removeprefix("␣") or name) if lecture.is_on() else name)


def main() -> None:
    """Draw the page."""
    names = [name for objective in PRESETS for name in checkpoints.language_model_names(objective)]
    dataset = checkpoints.summary(names[0]).dataset if names else ""
    page, controls = layout.open_language_page(menu.LANGUAGE, dataset=dataset)
    parts: dict[LanguagePart, Callable[[layout.PlainPage, Any], None]] = {
        "fill": _draw_fill,
        "continue": _draw_continuation,
    }
    if lecture.is_on():
        for draw in parts.values():
            draw(page, st)
    else:
        row = controls.container(horizontal=True, vertical_alignment="center", gap="small")
        choice(
            row,
            "Part of this page",
            get_args(LanguagePart),
            page.view,
            "part",
            key="part_box",
            names=PART_NAMES.__getitem__,
            label_visibility="collapsed",
        )
        parts[page.view.part](page, row)
    layout.close_page(page)


@lecture.slide(lecture.WORDS)
def _draw_fill(page: layout.PlainPage, controls: Any) -> None:
    chosen = _choose_model(page, "masked", controls)
    if chosen is None:
        return
    if not page.has_text:
        ask_for_text("click a token, and the model predicts what was there.")
        return
    encoding = chosen.model.read(page.view.text)
    word_indices = [index for index, token in enumerate(encoding.tokens) if not token.is_special]
    numbers = {index: number for number, index in enumerate(word_indices, start=1)}
    if not word_indices:
        say_no_tokens()
        return
    blank = page.view.blank if 1 <= page.view.blank <= len(word_indices) else _choose_blank(encoding, word_indices)
    index = word_indices[blank - 1]
    signs = "" if lecture.is_on() else " ␣ is a space."
    if len(encoding.tokens) > len(numbers):
        signs += " &lt;cls&gt; is added."
    lead = st.container(key="lead")
    controls.markdown(f"**Click a token to mask it.**{signs}", width="content")
    token_strip(
        [
            StripToken(
                text="▁▁▁▁" if n == index else chosen.name_of(token),
                number=numbers.get(n),
                title=f"token {n + 1}" + (", not in the vocabulary" if token.is_unknown else ""),
                kind="fixed" if token.is_special else "unknown" if token.is_unknown else "",
                pressed=n == index,
            )
            for n, token in enumerate(encoding.tokens)
        ],
        label="Words of the text; select one to mask it",
        key="strip_fill",
        on_choose=lambda number: view_state.change_view(blank=number),
    )
    _warn_if_cut(encoding, chosen)
    token = encoding.tokens[index]
    ranked = cached_results.fill_blank(chosen.source, tuple(encoding.ids), index)
    sentence = _describe_expected(ranked, chosen, chosen.name_of(token), is_unknown=token.is_unknown)
    layout.draw_answer(page, sentence, place=lead)
    _draw_ranking(ranked, chosen, key="chart_fill")
    _draw_facts(chosen.model)


def _choose_blank(encoding: Encoding, word_indices: Sequence[int]) -> int:
    """The 1-based index of the longest word in the vocabulary (the last in a tie); an article would be too easy to
    predict."""
    tokens = [encoding.tokens[index] for index in word_indices]
    return 1 + max(range(len(tokens)), key=lambda n: (not tokens[n].is_unknown, min(len(tokens[n].text), 8), n))


def _draw_continuation(page: layout.PlainPage, controls: Any) -> None:
    with lecture.slide():
        chosen = _choose_model(page, "causal", controls)
        if chosen is None:
            return
        encoding = chosen.model.read(page.view.text)
        typed = encoding.tokens or chosen.model.start
        if not typed:
            say_no_tokens()
            return
        surprisal = cached_results.surprisal(chosen.source, tuple(token.id for token in typed))
        _draw_prediction(page, controls, chosen, encoding, surprisal)
    with lecture.slide(lecture.WORDS):
        _draw_surprisal(chosen, typed, surprisal)
    _draw_facts(chosen.model)


def _draw_prediction(
    page: layout.PlainPage, controls: Any, chosen: ChosenModel, encoding: Encoding, surprisal: Surprisal
) -> None:
    """Draw the predicted next tokens, and the controls that sample one."""
    view, model = page.view, chosen.model
    typed = encoding.tokens or model.start
    if any(not 0 <= index < len(chosen.names) for index in view.added):
        st.warning("The continuation in the link is not from this model; it was ignored.")
        view = replace(view, added=())
        view_state.write_to_url(view)
    upto, added = view.upto if 0 < view.upto < len(typed) else len(typed), view.added
    ids = tuple(token.id for token in typed)
    prompt = (*ids[:upto], *added)
    lead = st.container(key="lead_next")
    controls.markdown(
        "**Click a token to go back to it**: the stronger its colour, the more surprising it was.",
        width="content",
        help="Surprisal: −log₂ of the predicted probability. Full colour: no better than a uniform guess.",
    )
    token_strip(
        [
            *_list_typed(typed[:upto] if added else typed, surprisal.bits, upto, chosen),
            *(
                StripToken(chosen.name(index), None, f"added token {n}", "added")
                for n, index in enumerate(added, start=1)
            ),
        ],
        label="Tokens of the text; select one to continue from there",
        key="strip_continue",
        on_choose=_select_last_read,
    )
    _warn_if_cut(encoding, chosen, more=" Click an earlier token to continue from there.")
    left, right = st.columns([3, 2], gap="large")
    with right:
        sampling = _draw_sampling(view)
        filter_container = st.empty()
    with left:
        _draw_buttons(chosen, prompt, added, sampling, changed=bool(added) or upto < len(typed))
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
            return
        true = typed[upto] if upto < len(typed) and not added else None
        expected = cached_results.next_tokens(chosen.source, prompt, sampling, None if true is None else true.id)
        ranked = expected.ranked
        name = None if true is None else chosen.name_of(true)
        if true is not None and true.is_unknown:
            name = f"{name} (read as {chosen.name(true.id)})"
        sentence = _describe_expected(ranked, chosen, name, is_unknown=False)
        layout.draw_answer(page, sentence, place=lead, question="What comes next?")
        is_filtering = sampling.temperature != 1.0 or sampling.top_k is not None or sampling.top_p < 1.0
        _draw_ranking(
            ranked,
            chosen,
            key="chart_next",
            filtered=expected.filtered if is_filtering else None,
            on_select=lambda: _add_clicked(ranked.ids),
        )
        st.caption("Click a bar to append its token.")
        filter_container.markdown(_describe_filter(expected, len(chosen.names), sampling))


def _list_typed(typed: Sequence[Token], bits: FloatArray, upto: int, chosen: ChosenModel) -> list[StripToken]:
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


def _select_last_read(number: int) -> None:
    is_selected = number == st.session_state["_view"].upto
    view_state.change_view(upto=0 if is_selected else number, added=())


def _draw_buttons(
    chosen: ChosenModel, prompt: tuple[int, ...], added: tuple[int, ...], sampling: Sampling, *, changed: bool
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
            args=(chosen, prompt, len(added), n, sampling),
        )
    change = view_state.change_view
    row.button("Undo", key="undo", disabled=not added, on_click=change, kwargs={"added": added[:-1]})
    row.button("Start again", key="start_again", disabled=not changed, on_click=change, kwargs={"added": (), "upto": 0})


def _sample(chosen: ChosenModel, prompt: tuple[int, ...], n_added: int, n: int, sampling: Sampling) -> None:
    steps = generate(chosen.model.model, prompt, n=n, sampling=sampling, drawn=n_added)
    _add_tokens([step.id for step in steps])


def _add_tokens(ids: Sequence[int]) -> None:
    view_state.change_view(added=(*st.session_state["_view"].added, *ids))


def _draw_sampling(view: View) -> Sampling:
    """Draw the sampling controls; return their values."""
    st.markdown("**How the next token is sampled**")
    boxes: dict[str, Callable[..., Any]] = {
        "temperature": partial(
            st.slider, "Temperature", 0.0, 2.0, step=0.05,
            help="Logits are divided by it before the softmax: below 1, it favours probable tokens; 0 takes the best.",
        ),
        "top_k": partial(
            st.select_slider, "Top-k", sorted({*TOP_KS, view.top_k}, key=lambda k: k or 10**9),
            format_func=lambda k: f"{k:,}" if k else "all", help="Only the k most probable tokens can be sampled.",
        ),
        "top_p": partial(
            st.slider, "Top-p", 0.05, 1.0, step=0.05,
            help="Only the smallest set of tokens that reaches this probability can be sampled.",
        ),
        "seed": partial(st.number_input, "Seed", 0, MAX_SEED, help="The same seed gives the same samples."),
    }  # fmt: skip
    for field, draw in boxes.items():
        key = f"{field}_box"
        st.session_state[key] = getattr(view, field)
        draw(key=key, on_change=view_state.store_value_of(field, key))
    return Sampling(temperature=view.temperature, top_k=view.top_k or None, top_p=view.top_p, seed=view.seed)


def _add_clicked(ids: Sequence[int]) -> None:
    point = clicked_point("chart_next")
    if point is not None and (row := int(point[0])) < len(ids):
        _add_tokens([ids[row]])


def _describe_filter(expected: NextTokens, n_tokens: int, sampling: Sampling) -> str:
    if sampling.temperature == 0:
        return "At temperature 0 nothing is sampled: the most probable token is always taken."
    if expected.n_candidates == n_tokens:
        return f"All **{n_tokens:,}** tokens can be sampled."
    return (
        f"**{expected.n_candidates:,}** of {n_tokens:,} tokens can be sampled, with "
        f"**{bounded_percentage(expected.candidate_share)}** of the unfiltered probability."
    )


def _draw_surprisal(chosen: ChosenModel, typed: Sequence[Token], surprisal: Surprisal) -> None:
    st.subheader("Which token was the most surprising?", anchor=False)
    bits = surprisal.bits
    if surprisal.mean is None or surprisal.perplexity is None:
        st.markdown("No token of this text has a token before it, so there is nothing to measure.")
        return
    unknown = " A word outside the vocabulary counts as <unk>." if any(token.is_unknown for token in typed) else ""
    shown = [index for index in range(len(typed)) if not np.isnan(bits[index])]
    most_surprising = max(shown, key=lambda index: bits[index])
    st.markdown(
        f"**{escape(chosen.name_of(typed[most_surprising]))}**: the model **{escape(chosen.model.name)}** gave it only "
        f"{percentage(float(2.0 ** -bits[most_surprising]), 2)}, a surprisal of "
        f"**{bits[most_surprising]:.1f} bits**. The mean is {surprisal.mean:.2f} bits.{escape(unknown)}",
        help=f"The mean is that of a uniform choice among {surprisal.perplexity:,.1f} tokens (the perplexity).",
    )
    chart(
        surprisal_bars(bits[shown], [chosen.name_of(typed[index]) for index in shown], mean=surprisal.mean),
        key="chart_surprisal",
        alt=f"Bar chart of the surprisal of {len(shown)} tokens in bits; highest: "
        f"{chosen.name_of(typed[most_surprising])[:20]} with {bits[most_surprising]:.1f}",
        file_prefix=chosen.source.name,
    )


def _choose_model(page: layout.PlainPage, objective: checkpoints.Objective, controls: Any) -> ChosenModel | None:
    """Load the selected language model, with a picker if there are several; without one, explain how to train it."""
    names, requested = checkpoints.language_model_names(objective), getattr(page.view, objective)
    if not names:
        preset, ability = PRESETS[objective]
        st.info(
            f"There is no language model that {ability} yet. Train one with `python -m txcls pretrain {preset}`, which "
            "takes a while on a CPU (`--max-steps 500` trains a rough one in minutes), then reload this page."
        )
        return None
    name = requested if requested in names else names[0]
    if requested and requested != name:
        st.warning(escape(f"There is no language model “{requested[:60]}” here that {PRESETS[objective][1]}."))
    if len(names) > 1 and not lecture.is_on():
        layout.picker(controls, objective, names, name)
    placeholder = st.empty()
    try:
        source = checkpoints.source(name)
        if not checkpoints.is_loaded(source):
            placeholder.skeleton(480)
        language = checkpoints.language_model(source, objective)
    except TxclsError as error:
        placeholder.empty()
        st.error(escape(str(error)))
        return None
    placeholder.empty()
    return ChosenModel(source, language.model, language.names)


def _draw_facts(model: TextModel) -> None:
    """Draw the line about a model."""
    kind = "" if model.model.config.causal else "masked-token "
    perplexity = (
        "" if model.perplexity is None else f" · {kind}perplexity **{model.perplexity:,.1f}** on validation texts"
    )
    st.caption(f"**{escape(model.title or model.name)}**{perplexity} · vocabulary of **{len(model.tokens):,}** tokens")


def _warn_if_cut(encoding: Encoding, chosen: ChosenModel, *, more: str = "") -> None:
    """Draw a note, with `more` at its end, if the text is too long for the model."""
    if encoding.truncated_at is not None:
        st.caption(
            f"✂ This text is too long for **{escape(chosen.model.name)}**: it is cut after "
            f"{len(encoding.tokens):,} tokens.{more}"
        )


def _describe_expected(ranked: RankedTokens, chosen: ChosenModel, name: str | None = None, *, is_unknown: bool) -> str:
    """Which tokens are the most probable, and the rank of the token in the text if its `name` is given."""
    first = ", then ".join(
        f"**{escape(chosen.name(index))}** ({bounded_percentage(probability)})"
        for index, probability in zip(ranked.ids[:2], ranked.probabilities, strict=False)
    )
    reads = "only what comes before" if chosen.model.model.config.causal else "both sides of the gap"
    vocabulary = f"with its vocabulary of {len(chosen.model.tokens):,} tokens"
    sentence = f"{first}: the model {escape(chosen.model.name)}, {vocabulary}, reads {reads}."
    if name is None:
        return sentence
    shown = escape(name[:80])
    if is_unknown or ranked.true_rank is None or ranked.true_probability is None:
        return f"{sentence} **{shown}** was in the text; the model cannot predict it: it is not in the vocabulary."
    mark = "◀\N{NO-BREAK SPACE}" if ranked.true_id in ranked.ids else ""
    return (
        f"{sentence} {mark}**{shown}** was in the text: rank **{ranked.true_rank:,}** of {len(chosen.names):,} "
        f"(**{bounded_percentage(ranked.true_probability)}**)."
    )


def _draw_ranking(
    ranked: RankedTokens,
    chosen: ChosenModel,
    *,
    key: str,
    filtered: Sequence[float] | None = None,
    **options: Any,
) -> None:
    """Draw the most probable tokens as bars; `filtered` are their probabilities after filtering."""
    names = [chosen.name(index) for index in ranked.ids]
    probabilities = ", ".join(
        f"{name[:20]} {percentage(p)}" for name, p in zip(names, ranked.probabilities, strict=True)
    )
    chart(
        token_bars(
            names,
            ranked.probabilities,
            other=(ranked.n_others, ranked.other),
            filtered=filtered,
            actual=ranked.ids.index(ranked.true_id) if ranked.true_id in ranked.ids else None,
        ),
        key=key,
        alt=f"Bar chart of the most probable tokens: {probabilities}; all others {percentage(ranked.other)}",
        file_prefix=chosen.source.name,
        **options,
    )


if __name__ == "__main__":
    main()
