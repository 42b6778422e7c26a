"""The visitor's own session folder, and the classifiers in it, which no other session sees.

The folder's token is in Streamlit's session state and in the URL (`job=…`), so that the folder is found again after a
reload or a closed tab. Whoever has the URL has access to the folder, as with any secret link; no folder is ever listed.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app.jobs import queue
from txcls.app.jobs.own_files import KeptRows, read_kept
from txcls.app.jobs.queue import JobState, Kind
from txcls.app.jobs.sessions import Session, read_json, write_json
from txcls.app.shell import state
from txcls.app.shell.limits import limits
from txcls.checkpoint.folders import names_in
from txcls.data.examples import Example

PREFIX = "yours · "
"""Prefix of the names of a visitor's own classifiers in pickers and URLs."""
SESSION_GONE_MESSAGE = (
    "What this address led to is no longer here: a visitor's files are kept for {} after the last visit."
)
_SESSION, _CHECKED = "_own_session", "_own_session_checked"
_MINUTES = "minutes.json"


def session() -> Session | None:
    """This visitor's session; None if there is none or it has been removed."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    token = st.query_params.get(state.JOB, "")
    if token and token != st.session_state.get(_CHECKED):
        st.session_state[_CHECKED] = token
        if (opened := Session.find(token)) is not None:
            st.session_state[_SESSION] = opened
            st.session_state[state.JOB_TOKEN] = opened.token
        elif st.session_state.get(_SESSION) is None:
            state.add_note(SESSION_GONE_MESSAGE.format(_span(limits().keep_seconds)))
    mine: Session | None = st.session_state.get(_SESSION)
    if mine is not None and not mine.exists:
        _leave()
        state.add_note(SESSION_GONE_MESSAGE.format(_span(limits().keep_seconds)))
        return None
    if mine is not None:
        mine.visit()
    return mine


def open_session() -> Session:
    """This visitor's session; a new one if there is none.

    Raises:
        DataError: this server cannot store files.
    """
    mine = session()
    if mine is None:
        mine = Session.new()
        st.session_state[_SESSION] = mine
        st.session_state[state.JOB_TOKEN] = st.session_state[_CHECKED] = mine.token
    return mine


def forget_session() -> None:
    """Remove all of this visitor's files immediately."""
    mine = session()
    if mine is not None:
        mine.remove()
    _leave()


def _leave() -> None:
    st.session_state.pop(_SESSION, None)
    st.session_state.pop(state.JOB_TOKEN, None)


def _span(seconds: int) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.3g} hours"
    return "an hour" if seconds == 3600 else f"{max(seconds // 60, 1)} minutes"


def kept_for() -> str:
    """How long a visitor's files are kept after the last visit, in words."""
    return _span(limits().keep_seconds)


# Classifiers


def folder_of(name: str) -> Path | None:
    """The folder of this visitor's own classifier with this name; None if there is none."""
    mine = session()
    if mine is None or not name.startswith(PREFIX):
        return None
    plain = name.removeprefix(PREFIX)
    return mine.own / plain if plain in names_in(mine.own) and not plain.startswith(".") else None


def free_name(requested: str) -> str:
    """A classifier name made from a file's name, different from those of the visitor's other classifiers."""
    stem = re.sub(r"(\.[a-z]{2,8})?(\.gz)?$", "", requested.lower(), count=1)
    stem = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")[:30] or "mine"
    taken = names_in(open_session().own)
    return next(name for name in (stem, *(f"{stem}_{n}" for n in range(2, 10_000))) if name not in taken)


def kept(name: str) -> dict[str, Any]:
    """The test rows, their numbers and the examples stored with a classifier trained here; empty for others."""
    mine = session()
    if mine is None or folder_of(name) is None:
        return {}
    return read_json(mine.folder / "kept" / f"{name.removeprefix(PREFIX)}.json") or {}


def kept_rows(name: str) -> KeptRows | None:
    """All rows of a classifier trained here; None for others. The file can be large: read it only when needed."""
    mine = session()
    if mine is None or folder_of(name) is None:
        return None
    return read_kept(mine.folder / "kept", name.removeprefix(PREFIX))


def examples(name: str) -> tuple[Example, ...]:
    """Texts to try with a classifier trained here: some of its test rows."""
    texts: Sequence[str] = kept(name).get("examples", ())
    titles: dict[str, str] = {}
    for text in texts:
        words = " ".join(text.split())
        titles.setdefault(words if len(words) <= 24 else f"{words[:23].rstrip()}…", text)
    return tuple(Example(title, text) for title, text in titles.items())


# Jobs


def job(kind: Kind) -> JobState:
    """The state of this visitor's job of a kind."""
    mine = session()
    return JobState("none") if mine is None else queue.state(mine, kind)


def keep_minutes(minutes: int) -> None:
    """Remember the time budget that this visitor has chosen, for a reload."""
    if (mine := session()) is not None:
        write_json(mine.folder / _MINUTES, {"minutes": minutes})


def last_minutes() -> int | None:
    """The time budget that this visitor chose last; None if none was chosen."""
    mine = session()
    stored = None if mine is None else read_json(mine.folder / _MINUTES)
    return None if stored is None else int(stored["minutes"])


def download(name: str, suffix: str) -> Path | None:
    """The file in which a worker packed this visitor's classifier, `.zip` or `.html`; None if there is none."""
    mine = session()
    file = None if mine is None else mine.folder / "downloads" / f"{name.removeprefix(PREFIX)}{suffix}"
    return file if file is not None and file.is_file() else None


def clock(seconds: float) -> str:
    """Remaining time as text: `40 s`, `3 min 20 s`."""
    whole = max(round(seconds), 0)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"


def ago(since: float) -> float:
    """Seconds since a time on the `time.monotonic` clock."""
    return max(time.monotonic() - since, 0.0)
