"""The state of a session, and the URL that restores it.

Each browser session has one `View` (`txcls.lessons.address`). Widgets change it through callbacks, pages read it, and
`publish` writes it to the URL.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from txcls.app.shell.limits import limits
from txcls.data.examples import EXAMPLES
from txcls.lessons import address
from txcls.lessons.address import (
    CELL,
    LARGEST_SEED,
    LONGEST_LINKED_CONTINUATION,
    LONGEST_LINKED_TEXT,
    MOST_ROWS,
    OF_TOKENS,
    OPEN,
    SLIDE,
    SWITCH,
    Encoding,
    HeadChange,
    HeadOrder,
    Part,
    Substitute,
    View,
    params_from_view,
    sendable,
    training_step,
)

__all__ = [
    "CELL",
    "LARGEST_SEED",
    "LONGEST_LINKED_CONTINUATION",
    "LONGEST_LINKED_TEXT",
    "MOST_ROWS",
    "OPEN",
    "PLACE",
    "SLIDE",
    "SWITCH",
    "Anchor",
    "Encoding",
    "HeadChange",
    "HeadOrder",
    "Part",
    "Substitute",
    "View",
    "anchor_to",
    "as_read",
    "change_view",
    "changes_of",
    "current_view",
    "follow",
    "link_params",
    "notes_on",
    "params_from_view",
    "publish",
    "put_text",
    "sendable",
    "shown_view",
    "view_from_params",
]

JOB = "job"
"""The parameter with the token of a visitor's files (`own.py`); only the address bar has it, links leave it out."""
JOB_TOKEN = "_job_token"
"""Where the session's state holds it."""


def view_from_params(
    params: Mapping[str, str],
    *,
    checkpoints: Sequence[str],
    first_text: Callable[[str], str] = lambda _: EXAMPLES[0].text,
) -> tuple[View, list[str]]:
    """`txcls.lessons.address.view_from_params` with this host's limit on the length of texts."""
    return address.view_from_params(
        params, checkpoints=checkpoints, first_text=first_text, most_characters=limits().characters
    )


def as_read(text: str, notes: list[str]) -> str:
    """The text, cut to `limits().characters` and encodable as UTF-8; adds a note if it was cut."""
    return address.cut(text, notes, most=limits().characters)


@dataclass(frozen=True, slots=True)
class Anchor:
    """What an address is relative to while a lesson is on.

    Attributes:
        place: the parameters that name the lesson and its step.
        base: the parameters of the step; the address of a page in a lesson holds only what differs from them.
    """

    place: Mapping[str, str]
    base: Mapping[str, str]


PLACE = ("lesson", "step", "lang", "page")
"""Parameters that name a lesson, its step and language, and a page that the visitor has gone to from there."""
_INNER_STEP = "at"
"""What the step of the page Step by step is called in a lesson's address, where `step` is the lesson's own."""


def anchor_to(anchor: Anchor | None) -> None:
    """Begin or end a lesson, or go to another step of it."""
    if anchor is None:
        st.session_state.pop("_anchor", None)
    else:
        st.session_state["_anchor"] = anchor


def link_params(view: View) -> dict[str, str]:
    """The parameters of a link to a view, within the lesson if one is on."""
    params = params_from_view(view)
    anchor: Anchor | None = st.session_state.get("_anchor")
    if anchor is None:
        return params
    kept = {name: value for name, value in params.items() if anchor.base.get(name) != value}
    kept |= {name: "" for name in anchor.base if name not in params and name != "text"}
    if "step" in kept:
        kept[_INNER_STEP] = kept.pop("step")
    return {**anchor.place, **kept}


def step_unsaid() -> int:
    """The training step that an address without one means: the beginning, or that of the lesson's step."""
    anchor: Anchor | None = st.session_state.get("_anchor")
    return 0 if anchor is None else training_step(anchor.base, [])


def changes_of(params: Mapping[str, str]) -> dict[str, str]:
    """What an address within a lesson says beyond the lesson's step, and how it is shown."""
    return {name: value for name, value in params.items() if name not in (*PLACE, SLIDE, "mode")}


def _said(params: Mapping[str, str]) -> dict[str, str]:
    """The parameters of an address; within a lesson with those of the step that it does not change."""
    anchor: Anchor | None = st.session_state.get("_anchor")
    if anchor is None or "lesson" not in params:
        return dict(params)
    own = {name: value for name, value in params.items() if name not in PLACE}
    if _INNER_STEP in own:
        own["step"] = own.pop(_INNER_STEP)
    both = {**anchor.base, **own}
    return {name: value for name, value in both.items() if value or name == "text"}


def current_view(checkpoints: Sequence[str], *, text_box: str, first_text: Callable[[str], str]) -> View:
    """This session's view, updated from the URL after a link or the browser's back button.

    `first_text` gives a checkpoint's text where the URL has none.
    `text_box` is the key of the page's text area. It is set only when the page opens or the URL brings another text:
    at any other time the visitor may be typing in it.
    """
    state, params = st.session_state, st.query_params.to_dict()
    touched = state.pop("_touched", False)  # a widget has just changed the view, so the URL is out of date
    if "_view" not in state or (params and _written(params) != _written(state["_published"]) and not touched):
        state["_view"], state["_notes"] = view_from_params(
            _said(params), checkpoints=checkpoints, first_text=first_text
        )
        state[text_box] = state["_view"].text
    elif text_box not in state:
        state[text_box] = state["_view"].text
    view: View = state["_view"]
    if params:
        view = replace(view, training_step=training_step(_said(params), []))
    if view.checkpoint not in checkpoints:
        view = replace(view, checkpoint=checkpoints[0] if checkpoints else "")
        state["_view"] = view
    if view.versus and (view.versus not in checkpoints or view.versus == view.checkpoint):
        view = replace(view, versus="")
        state["_view"] = view
    return view


def _written(params: Mapping[str, str]) -> dict[str, str]:
    """What the server has written into the URL, without what the browser writes."""
    return {name: value for name, value in params.items() if name not in ("training_step", SLIDE, JOB)}


def change_view(**changes: Any) -> None:
    """Change fields of this session's view; for callbacks, which run before the page is drawn.

    Another text or another model discards what was chosen for the text before, such as the continuation; another text
    also discards its switched tokens.
    """
    notes: list[str] = []
    for field in ("text", "changed"):
        if field in changes:
            changes[field] = as_read(changes[field], notes)
    if notes:
        st.session_state["_notes"] = notes
    if "text" in changes or "causal" in changes:
        changes = {"upto": 0, "added": (), **changes}
    view = shown_view()
    if "text" in changes and changes["text"] != view.text:
        switched = tuple(part for part in view.switched if not part.startswith("t"))
        changes = {**OF_TOKENS, "order": (), "switched": switched, **changes}
    if "checkpoint" in changes and changes["checkpoint"] != view.checkpoint:
        changes = {**OF_TOKENS, "word": 0, **changes}
    st.session_state["_view"] = replace(view, **changes)
    st.session_state["_touched"] = True


def follow_address() -> None:
    """Let the page that is opened next show what its address says, whatever a widget has changed in this run."""
    st.session_state.pop("_touched", None)


def put_text(text: str, text_box: str) -> None:
    """Make this the text of the session and of the page's box; for callbacks."""
    change_view(text=text)
    st.session_state[text_box] = text


def follow(field: str, key: str) -> Callable[[], None]:
    """A callback, for `on_change`, that copies a widget's value into a field of the view."""

    def copy() -> None:
        given = st.session_state[key] or ""
        change_view(**{field: given})
        kept = getattr(shown_view(), field)
        if kept != given and isinstance(given, str):
            st.session_state[key] = kept  # it was cut

    return copy


def shown_view() -> View:
    """This session's current view."""
    view: View = st.session_state.get("_view", View())
    return view


def publish(view: View) -> None:
    """Put the view into the URL."""
    params = link_params(view)
    st.session_state["_view"] = view
    st.session_state["_published"] = params
    if view.mode and SLIDE in st.query_params:
        params = {**params, SLIDE: st.query_params[SLIDE]}
    if token := st.session_state.get(JOB_TOKEN):
        params = {**params, JOB: token}
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def add_note(note: str) -> None:
    """Have a note shown on the page, once."""
    notes = st.session_state.setdefault("_more_notes", [])
    if note not in notes:
        notes.append(note)


def notes_on(view: View) -> list[str]:
    """Notes about unusable parts of the link or the text: new ones, or else those before, while text and checkpoint
    stay the same (a page may run again before anyone has read them)."""
    notes: list[str] = st.session_state.pop("_notes", []) + st.session_state.pop("_more_notes", [])
    about = (view.text, view.checkpoint)
    kept: tuple[tuple[str, str], list[str]] = st.session_state.get("_said_notes", (("", ""), []))
    if not notes and kept[0] == about:
        return kept[1]
    st.session_state["_said_notes"] = (about, notes)
    return notes
