"""Fill a blank: a masked language model ranks the candidates for a masked position."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from txcls.app.components.token_strip import StripToken, token_strip
from txcls.app.pages.language.model import (
    ChosenModel,
    choose_model,
    draw_facts,
    draw_ranking,
    expected_tokens,
    warn_if_cut,
)
from txcls.app.shell import cached_results, checkpoints, layout, lecture, view_state
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import ask_for_text, say_no_tokens
from txcls.data.generated.agreement import CLASSES, INFO, VERBS
from txcls.evaluation.measure_agreement import plural_share
from txcls.text.formatting import percentage
from txcls.text.tokens import Encoding


def draw(page: layout.PlainPage, controls: Any) -> None:
    """Draw this part of the page."""
    with lecture.slide(lecture.WORDS):
        _draw_fill(page, controls)


def _draw_fill(page: layout.PlainPage, controls: Any) -> None:
    chosen = choose_model(page, "masked", controls)
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
    blank = page.view.blank if 1 <= page.view.blank <= len(word_indices) else _default_blank(encoding, word_indices)
    index = word_indices[blank - 1]
    signs = "" if lecture.is_on() else " ␣ is a space."
    if len(encoding.tokens) > len(numbers):
        signs += " The model adds &lt;cls&gt;."
    lead = st.container(key="lead")
    controls.markdown(f"**Click a token to mask it:** the model ranks what could be there.{signs}", width="content")
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
        on_choose=_set_blank,
    )
    warn_if_cut(encoding, chosen)
    token = encoding.tokens[index]
    ranked = cached_results.fill_blank(chosen.source, tuple(encoding.ids), index)
    sentence = expected_tokens(ranked, chosen, chosen.name_of(token), is_unknown=token.is_unknown)
    layout.lead(page, sentence, place=lead)
    if token.text.strip().lower() in VERBS:
        _draw_plural_share(page, chosen, encoding, index)
    draw_ranking(ranked, chosen, key="chart_fill")
    draw_facts(chosen.model)


def _draw_plural_share(page: layout.PlainPage, chosen: ChosenModel, encoding: Encoding, index: int) -> None:
    """Draw the probability of a plural verb for this model and, from the words before it, for classifiers."""
    share = plural_share(chosen.model, encoding.ids, index)
    results = [f"**{plain(chosen.model.name)}**, which has seen no label: {percentage(share)} plural"]
    words_before = page.view.text[: encoding.tokens[index].start]
    for name in checkpoints.names():
        if checkpoints.summary(name).dataset == INFO.name and words_before.strip():
            prediction = cached_results.predict(checkpoints.source(name), words_before).prediction
            if prediction.label is not None:  # the words before it give tokens
                plural = prediction.probabilities[CLASSES[1]]
                results.append(f"**{plain(name)}**, from the words before it: {percentage(plural)}")
    st.markdown(f"Is or are? {'; '.join(results)}.")


def _default_blank(encoding: Encoding, word_indices: Sequence[int]) -> int:
    """The 1-based index of the longest word in the vocabulary (the last in a tie); an article would be too easy to
    predict."""
    tokens = [encoding.tokens[index] for index in word_indices]
    return 1 + max(range(len(tokens)), key=lambda n: (not tokens[n].is_unknown, min(len(tokens[n].text), 8), n))


def _set_blank(number: int) -> None:
    view_state.change_view(blank=number)
