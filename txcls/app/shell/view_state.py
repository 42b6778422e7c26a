"""The state of a session, the URL that restores it, and the QR code of this link.

Each browser session has one `View` (`txcls.lessons.page_address`). Widgets change it through callbacks, pages read it,
and `write_to_url` writes it to the URL.
"""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import segno
import streamlit as st

from txcls.app.shell.limits import limits
from txcls.lessons.page_address import (
    MAX_LINKED_CHARACTERS,
    RESET_WITH_TEXT,
    SLIDE,
    Anchor,
    View,
    cut_text,
    params_from_view,
    value_in,
    view_from_params,
)

BROWSER_PARAMS = ("training_step", "playground", SLIDE)
"""The URL parameters that the browser writes."""
MAX_IN_CODE = 1800
"""Maximum length of a link in a QR code: the modules of a longer one are too fine for phones in a lecture hall."""
TOO_LONG = "With this text, the link is too long for a QR code that a phone can read."
LOCAL_HOSTS = ("localhost", "127.", "::1")
ONLY_HERE = (
    "A phone cannot open this link, which leads to the phone itself. Open the app by this computer's name or address "
    "in the network instead."
)
"""The warning if the app is open at one of `LOCAL_HOSTS`."""
TEXT_BOX = "text_box"
"""Prefix of the text boxes' keys."""
_OWN_VIEW = "_own_view"
"""The session key for the page that shows a model other than the visitor's, and for the visitor's own view."""


def anchor_to(anchor: Anchor | None) -> None:
    """Make URLs relative to a lesson's step, or absolute again if None."""
    if anchor is None:
        st.session_state.pop("_anchor", None)
    else:
        st.session_state["_anchor"] = anchor


def link_params(view: View) -> dict[str, str]:
    """URL parameters of a view, relative to the lesson if one is open."""
    params = params_from_view(view)
    anchor: Anchor | None = st.session_state.get("_anchor")
    return params if anchor is None else anchor.relative(params)


def default_training_step() -> int:
    """The training step if the URL names none: that of the lesson's step, otherwise the first."""
    anchor: Anchor | None = st.session_state.get("_anchor")
    return 0 if anchor is None else int(value_in(anchor.base, "training_step"))


def _absolute(params: Mapping[str, str]) -> dict[str, str]:
    """A URL's parameters; within a lesson, completed with those of the step."""
    anchor: Anchor | None = st.session_state.get("_anchor")
    return dict(params) if anchor is None or "lesson" not in params else anchor.absolute(params)


def current_view(checkpoints: Sequence[str], *, text_box: str, first_text: Callable[[str], str]) -> View:
    """This session's view, updated from the URL after a link or the browser's back button.

    `first_text` returns the default text for a checkpoint when the URL has none. `text_box` is the key of the page's
    text area. It is set only when the page opens or the URL has a new text: at any other time the visitor may be typing
    in it.
    """
    state, params = st.session_state, st.query_params.to_dict()
    touched = state.pop("_touched", False)  # a widget has just changed the view, so the URL is out of date
    # Absent if the first run was interrupted, for example by answers to a lesson that the browser had stored.
    published = state.get("_published", {})
    if "_view" not in state or (params and _from_server(params) != _from_server(published) and not touched):
        state["_view"], state["_notes"] = view_from_params(
            _absolute(params),
            checkpoints=checkpoints,
            first_text=first_text,
            max_characters=limits().characters,
        )
        state[text_box] = state["_view"].text
    elif text_box not in state:
        state[text_box] = state["_view"].text
    view: View = state["_view"]
    if params:
        from_browser = _absolute(params)
        written = {name: value_in(from_browser, name) for name in ("training_step", "playground")}
        view = replace(view, **written)
    if view.checkpoint not in checkpoints:
        first = checkpoints[0] if checkpoints else ""
        if view.checkpoint and first:
            add_note(f"The checkpoint “{view.checkpoint[:60]}” is no longer here; {first} is shown instead.")
        view = replace(view, checkpoint=first)
        state["_view"] = view
    if view.versus and (view.versus not in checkpoints or view.versus == view.checkpoint):
        view = replace(view, versus="")
        state["_view"] = view
    return view


def _from_server(params: Mapping[str, str]) -> dict[str, str]:
    """The parameters that the server compares: all except the browser's."""
    return {name: value for name, value in params.items() if name not in BROWSER_PARAMS}


def change_view(**changes: Any) -> None:
    """Change fields of this session's view; for callbacks, which run before the page is drawn.

    A new text or model resets choices that were made for the old text, such as the continuation or switched tokens.
    """
    notes: list[str] = []
    for field in ("text", "changed"):
        if field in changes:
            changes[field] = cut_text(changes[field], notes, limit=limits().characters)
    if notes:
        st.session_state["_notes"] = notes
    if "text" in changes or "causal" in changes:
        changes = {"upto": 0, "added": (), **changes}
    view = shown_view()
    if "text" in changes and changes["text"] != view.text:
        switched = tuple(part for part in view.switched if not part.startswith("t"))
        changes = {**RESET_WITH_TEXT, "order": (), "switched": switched, **changes}
    if "checkpoint" in changes and changes["checkpoint"] != view.checkpoint:
        changes = {**RESET_WITH_TEXT, **changes}
    st.session_state["_view"] = replace(view, **changes)
    st.session_state["_touched"] = True


def follow_url() -> None:
    """Make the next page use its URL, even if widgets have changed the view in this run."""
    st.session_state.pop("_touched", None)


def put_text(text: str, text_box: str) -> None:
    """Set the text of the session and of the page's box; for callbacks."""
    change_view(text=text)
    st.session_state[text_box] = text


def store_value_of(field: str, key: str) -> Callable[[], None]:
    """A callback for `on_change` that copies a widget's value into a field of the view."""

    def copy() -> None:
        value = "" if st.session_state[key] is None else st.session_state[key]
        change_view(**{field: value})
        stored = getattr(shown_view(), field)
        if stored != value and isinstance(value, str):
            st.session_state[key] = stored  # the text was cut to the maximum length

    return copy


def shown_view() -> View:
    """This session's current view."""
    view: View = st.session_state.get("_view", View())
    return view


def keep_own_view(page: str, view: View) -> None:
    """Keep the visitor's view while `page` shows another model; `return_to_own_view` restores it."""
    st.session_state[_OWN_VIEW] = (page, view)


def forget_own_view() -> None:
    """Do not restore a kept view, because the visitor has chosen a model."""
    st.session_state.pop(_OWN_VIEW, None)


def own_view(view: View) -> View:
    """The view that other pages show: the kept one, or else `view`."""
    if _OWN_VIEW not in st.session_state:
        return view
    kept: View = st.session_state[_OWN_VIEW][1]
    return replace(kept, mode=view.mode)


def return_to_own_view(page: str) -> None:
    """Restore the kept view on any page but the one that shows another model, unless the URL names a checkpoint."""
    if st.session_state.get(_OWN_VIEW, (page,))[0] == page:
        return
    if "checkpoint" not in st.query_params and "_view" in st.session_state:
        st.session_state["_view"] = own_view(shown_view())
    forget_own_view()


def write_to_url(view: View) -> None:
    """Write the view to the URL."""
    params = link_params(view)
    st.session_state["_view"] = view
    st.session_state["_published"] = params
    if view.mode and SLIDE in st.query_params:
        params = {**params, SLIDE: st.query_params[SLIDE]}
    if st.query_params.to_dict() != params:
        st.query_params.from_dict(params)


def add_note(note: str) -> None:
    """Queue a one-time notice."""
    notes = st.session_state.setdefault("_more_notes", [])
    if note not in notes:
        notes.append(note)


def notes_on(view: View, page: str) -> list[str]:
    """Notices about the link, the text or the checkpoint.

    The last run's notes are repeated while page, text and checkpoint stay the same: the page may rerun before the
    visitor has read them.
    """
    notes: list[str] = st.session_state.pop("_notes", []) + st.session_state.pop("_more_notes", [])
    subject = (page, view.text, view.checkpoint)
    last: tuple[tuple[str, ...], list[str]] = st.session_state.get("_last_notes", ((), []))
    last_subject, last_notes = last
    if not notes and last_subject == subject:
        return last_notes
    st.session_state["_last_notes"] = (subject, notes)
    return notes


def share_view(view: View) -> None:
    """Draw a button that shows a link to the view and its QR code."""
    with st.popover("Share", key="share", on_change="rerun", help="Link and QR code to this view") as popover:
        if not popover.open:
            return
        shared = link_and_code(view)
        st.markdown("**A link to exactly this view**")
        st.code(shared["link"], language=None, wrap_lines=True)
        if shared["code"]:
            st.html(f'<div class="txcls-qr"><img alt="QR code of the link above" src="{shared["code"]}"></div>')
        if shared["warning"]:
            st.warning(shared["warning"])
        if len(view.text) > MAX_LINKED_CHARACTERS:
            st.caption(f"The text is longer than {MAX_LINKED_CHARACTERS:,} characters, so it is not in the link.")


def link_and_code(view: View) -> dict[str, str]:
    """The link to a view, its QR code ("" if it would be too fine), and what keeps a phone from opening it, or ""."""
    link = url_of(view)
    code, host = qr_code(link) or "", urlsplit(link).hostname or ""
    warning = "" if code else TOO_LONG
    return {"link": link, "code": code, "warning": ONLY_HERE if host.startswith(LOCAL_HOSTS) else warning}


def url_of(view: View) -> str:
    """The URL of the view on the server that this browser has open."""
    shown = urlsplit(st.context.url or "")
    params = link_params(view)
    if view.mode:
        params.pop("mode", None)
    return urlunsplit((shown.scheme, shown.netloc, shown.path or "/", urlencode(params), ""))


@lru_cache(maxsize=64)
def qr_code(text: str) -> str | None:
    """The QR code of a text as a data URL of an SVG, black on white with a margin; None if it would be too fine."""
    if len(text) > MAX_IN_CODE:
        return None
    svg = io.BytesIO()
    segno.make(text, error="l", micro=False).save(svg, kind="svg", scale=4, border=4, dark="#000", light="#fff")
    return "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode("ascii")
