"""The visitor's own desk in this session, and the classifiers on it, which no other session sees.

The token of the desk is in the session's state and in the address (`job=…`), so that a reload and a closed tab find it
again. Whoever has the address has the desk, as with any secret link; nobody else's is ever listed.
"""

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app.jobs import files
from txcls.app.jobs.desks import Desk
from txcls.app.jobs.own_files import KeptRows, read_kept
from txcls.app.jobs.running import JobState
from txcls.app.jobs.running import state as state_of
from txcls.app.shell import state
from txcls.app.shell.limits import limits
from txcls.checkpoint.files import is_hidden, names_in
from txcls.data.examples import Example

PREFIX = "yours · "
"""What the names of a visitor's own classifiers begin with in pickers and addresses."""
GONE = "What this address led to is no longer here: a visitor's files are kept for {} after the last visit."
_DESK, _CHECKED = "_desk", "_desk_checked"
_MINUTES = "minutes.json"


def desk() -> Desk | None:
    """This session's desk; None if it has none, or no longer."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    asked = st.query_params.get(state.JOB, "")
    if asked and asked != st.session_state.get(_CHECKED):
        st.session_state[_CHECKED] = asked
        if (found := Desk.find(asked)) is not None:
            st.session_state[_DESK] = found
            st.session_state[state.JOB_TOKEN] = found.token
        elif st.session_state.get(_DESK) is None:
            state.add_note(GONE.format(_span(limits().keep_seconds)))
    mine: Desk | None = st.session_state.get(_DESK)
    if mine is not None and not mine.exists:
        _leave()
        state.add_note(GONE.format(_span(limits().keep_seconds)))
        return None
    if mine is not None:
        mine.seen()
    return mine


def open_desk() -> Desk:
    """This session's desk, a new one if it has none."""
    mine = desk()
    if mine is None:
        mine = Desk.new()
        st.session_state[_DESK] = mine
        st.session_state[state.JOB_TOKEN] = st.session_state[_CHECKED] = mine.token
    return mine


def forget_desk() -> None:
    """Remove everything of this visitor's, now."""
    mine = desk()
    if mine is not None:
        mine.remove()
    _leave()


def _leave() -> None:
    st.session_state.pop(_DESK, None)
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
    """The folder of this visitor's own classifier of this name; None if there is none."""
    mine = desk()
    if mine is None or not name.startswith(PREFIX):
        return None
    plain = name.removeprefix(PREFIX)
    return mine.own / plain if plain in names_in(mine.own) and not is_hidden(plain) else None


def root() -> Path | None:
    """The folder of this visitor's own classifiers; None without any desk."""
    mine = desk()
    return None if mine is None else mine.own


def free_name(wanted: str) -> str:
    """A plain name made of any that none of the visitor's classifiers has."""
    stem = wanted.lower()
    stem = re.sub(r"\.gz$", "", stem)
    stem = re.sub(r"\.[a-z]{2,8}$", "", stem)
    stem = re.sub(r"[^a-z0-9]+", "_", stem).strip("_")[:30] or "mine"
    taken = names_in(open_desk().own)
    return next(name for name in (stem, *(f"{stem}_{n}" for n in range(2, 10_000))) if name not in taken)


def kept(name: str) -> dict[str, Any]:
    """Test rows, their numbers and examples that were kept with a classifier trained here; empty for others."""
    mine = desk()
    if mine is None or folder_of(name) is None:
        return {}
    return files.read(mine.folder / "kept" / f"{name.removeprefix(PREFIX)}.json") or {}


def kept_rows(name: str) -> KeptRows | None:
    """All rows of a classifier trained here; None for others. The file can be large: read it when asked for rows."""
    mine = desk()
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


def job(kind: Any) -> JobState:
    """How this visitor's job of a kind is doing."""
    mine = desk()
    return JobState("none") if mine is None else state_of(mine, kind)


def keep_minutes(minutes: int) -> None:
    """Note the time budget that this visitor has chosen, for a reload."""
    if (mine := desk()) is not None:
        files.write(mine.folder / _MINUTES, {"minutes": minutes})


def last_minutes() -> int | None:
    """The time budget that this visitor chose last; None before that."""
    mine = desk()
    found = None if mine is None else files.read(mine.folder / _MINUTES)
    return None if found is None else int(found["minutes"])


def save_upload(name: str, data: bytes) -> None:
    """Put an uploaded file on the desk, under a plain name of ours; the visitor's name for it goes nowhere."""
    place = open_desk().folder / "files"
    place.mkdir(mode=0o700, exist_ok=True)
    (place / name).write_bytes(data)


def clock(seconds: float) -> str:
    """A time to go: `40 s`, `3 min 20 s`."""
    whole = max(round(seconds), 0)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"


def ago(since: float) -> float:
    """Seconds since a time in seconds since the epoch."""
    return max(time.time() - since, 0.0)
