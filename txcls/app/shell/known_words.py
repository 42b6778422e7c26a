"""Offer known words as replacements for unknown ones in texts for `who_won`, whose vocabulary is small."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app.shell import view_state
from txcls.data.generated.who_won import TEAMS
from txcls.figures import visible
from txcls.inference.predictor import Predictor

MAX_UNKNOWN = 5
"""Maximum number of unknown words for which replacements are offered."""


def offer_known_words(container: DeltaGenerator, classifier: Predictor, text: str, text_box: str) -> None:
    """Draw a menu for each unknown word of the text: the words that the model knows, with the teams kept together."""
    unknown = [token for token in classifier.tokenizer.encode(text).tokens if token.is_unknown]
    if not unknown:
        return
    teams = {team.lower() for team in TEAMS}
    tokens = classifier.tokenizer.vocabulary.tokens
    known = sorted(token for token in tokens if token.isalpha() and token.lower() not in teams)
    row = container.container(horizontal=True, vertical_alignment="center", gap="small")
    row.markdown("**Words that this model does not know**; replace them:")
    for n, token in enumerate(unknown[:MAX_UNKNOWN]):
        word = text[token.start : token.end]
        key = f"known_word_{n}"
        row.menu_button(
            visible(word[:30]),
            [*TEAMS, *known] if word[:1].isupper() else [*known, *TEAMS],
            key=key,
            on_click=_replace_word,
            args=(token.start, token.end, key, text, text_box),
        )
    if len(unknown) > MAX_UNKNOWN:
        row.markdown(f"and {len(unknown) - MAX_UNKNOWN} more")


def _replace_word(start: int, end: int, key: str, text: str, text_box: str) -> None:
    view_state.put_text(text[:start] + st.session_state[key] + text[end:], text_box)
