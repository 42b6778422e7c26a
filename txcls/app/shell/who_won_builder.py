"""Build sentences for the `who_won` models from select boxes."""

from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from txcls.app.shell import view_state
from txcls.data.generated.who_won import (
    ENDINGS,
    INVERSE_VERBS,
    MAINS,
    MANNERS,
    OPENINGS,
    PLACES,
    RELATIVES,
    TEAMS,
    VERBS,
    Form,
    Main,
    Place,
    Relative,
    make_report,
)

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
    # Stored separately: Streamlit deletes the values of the boxes while a page without them is open.
    teams = st.session_state.setdefault("_report_teams", ("Rovers", "City"))
    st.session_state["report_winner"], st.session_state["report_loser"] = teams
    with row.popover("Build a sentence", width="content"):
        st.button("Swap the teams", key="report_exchange", on_click=_swap_teams, args=(text_box,), width="stretch")
        first, second = st.columns(2)
        write: dict[str, Any] = {"on_change": _write, "args": (text_box,)}
        first.selectbox("Winner (A)", TEAMS, key="report_winner", **write)
        second.selectbox("Loser (B)", TEAMS, key="report_loser", **write)
        first.selectbox("Main clause", MAINS, format_func=FORM_TITLES.__getitem__, key="report_main", **write)
        main: Main = st.session_state["report_main"]
        if verbs := _verbs(main):
            second.selectbox("Verb", verbs, key=f"report_verb_{len(verbs)}", **write)
        for column, place in ((first, "first"), (second, "second")):
            column.selectbox(
                f"After the {place} team",
                ("", *RELATIVES),
                format_func=lambda kind: RELATIVE_WORDS.get(kind, "nothing"),
                key=f"report_{place}",
                **write,
            )
        first.selectbox("Beginning", ("", *OPENINGS), format_func=_or_nothing, key="report_opening", **write)
        second.selectbox("End", ("", *ENDINGS), format_func=_or_nothing, key="report_ending", **write)
        if verbs:
            first.selectbox("Adverb", ("", *MANNERS), format_func=_or_nothing, key="report_manner", **write)


def _verbs(main: Main) -> tuple[str, ...]:
    """The verbs of a main clause; none if the clause itself says who won or lost."""
    if main.startswith("not but"):
        return ()
    return INVERSE_VERBS if "inverse" in main else tuple(VERBS)


def _write(text_box: str) -> None:
    """Write the sentence of the select boxes into the text box."""
    values = st.session_state
    main: Main = values["report_main"]
    verbs = _verbs(main)
    winner, loser = values["report_winner"], values["report_loser"]
    if winner == loser:  # the visitor has chosen the other box's team, so that box changes
        other = next(team for team in TEAMS if team != winner)
        winner, loser = (winner, other) if winner != values["_report_teams"][0] else (other, loser)
    values["_report_teams"] = (winner, loser)
    form = Form(
        main=main,
        verb=values.get(f"report_verb_{len(verbs)}", verbs[0]) if verbs else main.rsplit(" ", 1)[-1],
        relatives=_relatives(),
        manner=values.get("report_manner", "") if verbs else "",
        opening=values["report_opening"],
        ending=values["report_ending"],
    )
    others = [team for team in TEAMS if team not in (winner, loser)]
    view_state.put_text(make_report(form, winner=winner, loser=loser, others=others).text, text_box)


def _relatives() -> tuple[tuple[Place, Relative, str, str, int], ...]:
    relatives = []
    for n, place in enumerate(PLACES):
        kind = st.session_state[f"report_{place}"]
        if kind in get_args(Relative):
            relatives.append((place, kind, "lost" if kind == "lost to" else "beat", TIME, n))
    return tuple(relatives)


def _swap_teams(text_box: str) -> None:
    values = st.session_state
    values["report_loser"], values["report_winner"] = values["_report_teams"]
    _write(text_box)


def _or_nothing(words: str) -> str:
    return words or "nothing"
