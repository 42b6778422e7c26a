"""Fill a blank: a masked-token model ranks the candidates for a masked position."""

from collections.abc import Sequence

import streamlit as st

from txcls.app.components.token_strip import StripToken, token_strip
from txcls.app.pages.language.model import Chosen, choose_model, draw_ranking, rank_of_true_token, warn_if_cut
from txcls.app.shell import checkpoints, compute, layout, lecture, model_parts, state
from txcls.app.shell.markdown import plain
from txcls.app.shell.prediction import ask_for_text, say_no_tokens
from txcls.data.generated.agreement import INFO
from txcls.data.generated.agreement.rows import CLASSES, VERBS
from txcls.evaluation.agreement import plural_share
from txcls.text.tokens import Encoding
from txcls.wording import percentage


def draw(opened: layout.Opened) -> None:
    """Draw this part of the page."""
    with lecture.slide(lecture.WORDS, lecture.CLASSES):
        _fill_blank(opened)


def _fill_blank(opened: layout.Opened) -> None:
    chosen = choose_model(opened, "masked")
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
    st.markdown("**Click a word to mask it.** The model ranks what could be there; ␣ is the space before a word:")
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
    warn_if_cut(encoding, chosen)
    token = encoding.tokens[place]
    ranked = compute.fill_blank(chosen.source, tuple(encoding.ids), place)
    st.markdown(rank_of_true_token(ranked, chosen.name_of(token), len(chosen.names), is_unknown=token.is_unknown))
    if token.text.strip().lower() in VERBS:
        _compare_number(opened, chosen, encoding, place)
    draw_ranking(ranked, chosen, key="chart_fill")
    model_parts.parameters(chosen.model.model, chosen.model.name)


def _compare_number(opened: layout.Opened, chosen: Chosen, encoding: Encoding, place: int) -> None:
    """Draw how plural the masked verb is for this model and, from the words before it, for the classifiers trained on
    that question."""
    share = plural_share(chosen.model, encoding.ids, place)
    answers = [f"**{plain(chosen.model.name)}**, which has seen no label: {percentage(share)} plural"]
    before = opened.view.text[: encoding.tokens[place].start]
    for name in checkpoints.names():
        if checkpoints.summary(name).dataset == INFO.name and before.strip():
            prediction = compute.predict(checkpoints.source(name), before).prediction
            if prediction.label is not None:  # the words before it give tokens
                plural = prediction.probabilities[CLASSES[1]]
                answers.append(f"**{plain(name)}**, from the words before it: {percentage(plural)}")
    st.markdown(f"Is or are? {'; '.join(answers)}.")


def _worth_guessing(encoding: Encoding, words: Sequence[int]) -> int:
    """The number, from 1, of the last of the longest known words: more interesting to predict than an article."""
    tokens = [encoding.tokens[place] for place in words]
    return 1 + max(range(len(tokens)), key=lambda n: (not tokens[n].is_unknown, min(len(tokens[n].text), 8), n))


def _blank_chosen(number: int) -> None:
    state.change_view(blank=number)
