"""Controls that write a text of `who_won`: a sentence from select boxes, and known words in place of unknown ones."""

from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app.shell import view_state
from txcls.data.generated.who_won import (
    ENDINGS,
    INVERSE_VERBS,
    MAINS,
    PLACES,
    RELATIVES,
    TEAMS,
    VERBS,
    Form,
    Main,
    Relative,
    make_report,
)
from txcls.figures import visible
from txcls.inference.predictor import Predictor

MAX_UNKNOWN = 5
"""Maximum number of unknown words for which replacements are offered."""
FORM_TITLES = {
    "active": "A beat B",
    "inverse": "B lost to A",
    "passive": "B were beaten by A",
    "cleft": "It was A who beat B",
    "cleft object": "It was B that A beat",
    "cleft inverse": "It was B who lost to A",
    "not but won": "Not B but A won",
    "not but lost": "Not A but B lost",
}
"""Each main clause as a pattern in which A wins."""
RELATIVE_WORDS = {
    "beat": "who beat …",
    "lost to": "who lost to …",
    "were beaten by": "who were beaten by …",
    "whom": "whom … beat",
}
TIME = "last week"


def draw(row: DeltaGenerator, text_box: str) -> None:
    """Draw a button that opens select boxes, which write the text."""
    with row.popover("Build a sentence", width="content"):
        _draw_boxes(text_box)


def _draw_boxes(text_box: str) -> None:
    # Stored separately: Streamlit deletes the values of the boxes while a page without them is open.
    teams = st.session_state.setdefault("_report_teams", ("Rovers", "City"))
    st.session_state["report_winner"], st.session_state["report_loser"] = teams
    st.button("Swap the teams", key="report_exchange", on_click=_swap_teams, args=(text_box,), width="stretch")
    first, second = st.columns(2)
    write: dict[str, Any] = {"on_change": _put_sentence, "args": (text_box,)}
    first.selectbox("Winner (A)", TEAMS, key="report_winner", **write)
    second.selectbox("Loser (B)", TEAMS, key="report_loser", **write)
    first.selectbox("Main clause", MAINS, format_func=FORM_TITLES.__getitem__, key="report_main", **write)
    if verbs := _verbs(st.session_state["report_main"]):
        second.selectbox("Verb", verbs, key=f"report_verb_{len(verbs)}", **write)
    for column, place in zip((first, second), PLACES, strict=True):
        column.selectbox(
            f"After the {place} team",
            ("", *RELATIVES),
            format_func=lambda kind: RELATIVE_WORDS.get(kind, "nothing"),
            key=f"report_{place}",
            **write,
        )
    first.selectbox("End", ("", *ENDINGS), format_func=lambda words: words or "nothing", key="report_ending", **write)


def _verbs(main: Main) -> tuple[str, ...]:
    """The verbs of a main clause; none if the clause itself says who won or lost."""
    if main.startswith("not but"):
        return ()
    return INVERSE_VERBS if "inverse" in main else tuple(VERBS)


def _put_sentence(text_box: str) -> None:
    """Write the sentence of the select boxes into the text box."""
    values = st.session_state
    main: Main = values["report_main"]
    verbs = _verbs(main)
    winner, loser = values["report_winner"], values["report_loser"]
    if winner == loser:  # the visitor has chosen the other box's team, so that box changes
        other = next(team for team in TEAMS if team != winner)
        winner, loser = (winner, other) if winner != values["_report_teams"][0] else (other, loser)
    values["_report_teams"] = (winner, loser)
    kinds = {place: values[f"report_{place}"] for place in PLACES}
    relatives = [
        (place, kind, "lost" if kind == "lost to" else "beat", TIME, n)
        for n, (place, kind) in enumerate(kinds.items())
        if kind in get_args(Relative)
    ]
    verb = values.get(f"report_verb_{len(verbs)}", verbs[0]) if verbs else main.rsplit(" ", 1)[-1]
    form = Form(main=main, verb=verb, relatives=tuple(relatives), ending=values["report_ending"])
    others = [team for team in TEAMS if team not in (winner, loser)]
    view_state.put_text(make_report(form, winner=winner, loser=loser, others=others).text, text_box)


def _swap_teams(text_box: str) -> None:
    values = st.session_state
    values["report_loser"], values["report_winner"] = values["_report_teams"]
    _put_sentence(text_box)


def offer_known_words(container: DeltaGenerator, classifier: Predictor, text: str, text_box: str) -> None:
    """For each unknown word of the text, draw a menu of words that the model knows, teams apart."""
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
