"""The visitor's own session folder and the classifiers in it, which no other session sees.

The folder's token is in Streamlit's session state and in the URL (`job=…`), so that the visitor can return after a
reload or a closed tab, and in a cookie, so that the same browser finds the folder without that URL. Anyone with the URL
has access to the folder; folders are never listed.
"""

from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app.jobs import queue
from txcls.app.jobs.json_lines import read_json, write_json
from txcls.app.jobs.own_table import StoredRows, read_rows, stored_examples
from txcls.app.jobs.queue import JobState, Kind
from txcls.app.jobs.sessions import Session
from txcls.app.shell import view_state
from txcls.app.shell.limits import limits
from txcls.checkpoint.folders import checkpoint_name, names_in
from txcls.data.examples import Example

PREFIX = "yours · "
"""Prefix of the names of a visitor's own classifiers in pickers and URLs."""
SESSION_GONE_MESSAGE = "The files behind this link are no longer here: they are deleted {} after the last visit."
TEXT_IN_ADDRESS = "The address also contains the text that Classify shows, which may be one of your table's."
"""Said on pages that show a visitor's own table or classifier."""
COOKIE = "txcls_job"
"""Name of the cookie with the token of the session that this browser has created."""
_SESSION, _CHECKED, _COOKIE_TOKEN = "_own_session", "_own_session_checked", "_own_cookie_token"
_MINUTES = "minutes.json"


def session() -> Session | None:
    """This visitor's session; None if there is none or it has been removed."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    token = st.query_params.get(view_state.JOB, "")
    if token and token != st.session_state.get(_CHECKED):
        st.session_state[_CHECKED] = token
        if (opened := Session.find(token)) is not None:
            _enter(opened)
        elif st.session_state.get(_SESSION) is None:
            view_state.add_note(SESSION_GONE_MESSAGE.format(retention()))
    own_session: Session | None = st.session_state.get(_SESSION)
    if own_session is None and (own_session := Session.find(_cookie())) is not None:
        _enter(own_session)
    if own_session is not None and not own_session.exists:
        _leave()
        view_state.add_note(SESSION_GONE_MESSAGE.format(retention()))
        return None
    if own_session is not None:
        own_session.visit()
    return own_session


def open_session() -> Session:
    """This visitor's session; a new one if there is none.

    Raises:
        DataError: this server cannot store files.
    """
    own_session = session()
    if own_session is None:
        own_session = Session.new()
        _enter(own_session)
        st.session_state[_COOKIE_TOKEN] = own_session.token
    return own_session


def cookie_token() -> str:
    """The token that the cookie should contain: of a session that this browser has created; "" for others.

    A link that somebody else has sent does not change the cookie.
    """
    own_session = session()
    of_browser = (st.session_state.get(_COOKIE_TOKEN), _cookie())
    return own_session.token if own_session is not None and own_session.token in of_browser else ""


def _cookie() -> str:
    return str(st.context.cookies.get(COOKIE, ""))  # not a string in Streamlit's AppTest


def forget_session() -> None:
    """Remove all of this visitor's files immediately."""
    own_session = session()
    if own_session is not None:
        own_session.remove()
    _leave()


def _enter(own_session: Session) -> None:
    st.session_state[_SESSION] = own_session
    st.session_state[view_state.JOB_TOKEN] = st.session_state[_CHECKED] = own_session.token


def _leave() -> None:
    st.session_state.pop(_SESSION, None)
    st.session_state.pop(view_state.JOB_TOKEN, None)


def retention() -> str:
    """How long a visitor's files are stored after the last visit, in words."""
    seconds = limits().keep_seconds
    if seconds >= 7200:
        return f"{seconds / 3600:.3g} hours"
    return "an hour" if seconds == 3600 else f"{max(seconds // 60, 1)} minutes"


# Classifiers


def folder_of(name: str) -> Path | None:
    """The folder of this visitor's own classifier with this name; None if there is none."""
    own_session = session()
    if own_session is None or not name.startswith(PREFIX):
        return None
    folder = name.removeprefix(PREFIX)
    exists = folder in names_in(own_session.own) and not folder.startswith(".")
    return own_session.own / folder if exists else None


def free_name(requested: str, labels: str = "") -> str:
    """A name for a classifier, made from a file's name and unused by the visitor's other classifiers.

    A second classifier of the file is named after its label column `labels` too, further ones are numbered.
    """
    stem = checkpoint_name(requested)
    with_labels = [checkpoint_name(f"{stem}_{labels}")] if labels else []
    numbered = (f"{stem}_{n}" for n in range(2, 10_000))
    used_names = {name.lower() for name in names_in(open_session().own)}
    return next(name for name in (stem, *with_labels, *numbered) if name.lower() not in used_names)


def stored_data(name: str) -> dict[str, Any]:
    """The test rows, their row numbers and the examples of a classifier trained here; empty for others."""
    own_session = session()
    if own_session is None or folder_of(name) is None:
        return {}
    return read_json(own_session.folder / "kept" / f"{name.removeprefix(PREFIX)}.json") or {}


def stored_rows(name: str) -> StoredRows | None:
    """All rows of a classifier trained here; None for others. The file can be large: read it only when needed."""
    own_session = session()
    if own_session is None or folder_of(name) is None:
        return None
    return read_rows(own_session.folder / "kept", name.removeprefix(PREFIX))


def examples(name: str) -> tuple[Example, ...]:
    """Texts to try with a classifier trained here: some of its test rows."""
    own_session = session()
    if own_session is None or folder_of(name) is None:
        return ()
    return stored_examples(own_session.folder / "kept", name.removeprefix(PREFIX))


# Jobs


def job(kind: Kind) -> JobState:
    """The state of this visitor's job of a kind."""
    own_session = session()
    return JobState("none") if own_session is None else queue.state(own_session, kind)


def remember_minutes(minutes: int) -> None:
    """Store the time budget that this visitor has chosen, so that it survives a reload."""
    if (own_session := session()) is not None:
        write_json(own_session.folder / _MINUTES, {"minutes": minutes})


def last_minutes() -> int | None:
    """The time budget that this visitor chose last; None if none was chosen."""
    own_session = session()
    stored = None if own_session is None else read_json(own_session.folder / _MINUTES)
    return None if stored is None else int(stored["minutes"])


def download(name: str, suffix: str) -> Path | None:
    """This visitor's classifier packed as `.zip` or `.html`; None if there is no such file."""
    own_session = session()
    file = None if own_session is None else own_session.folder / "downloads" / f"{name.removeprefix(PREFIX)}{suffix}"
    return file if file is not None and file.is_file() else None


def duration(seconds: float) -> str:
    """A duration as text: `40 s`, `3 min 20 s`."""
    whole = max(round(seconds), 0)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"
