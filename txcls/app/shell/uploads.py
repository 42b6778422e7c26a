"""Uploaders that move a file to the visitor's session immediately and start a job."""

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.app.jobs.queue import JobState, Kind
from txcls.app.shell import own_session, view_state, waiting
from txcls.app.shell.limits import limits
from txcls.data.tables.table import SUFFIXES, UNREADABLE, table_suffix
from txcls.errors import DataError

TABLES = (*(suffix[1:] for suffix in (*SUFFIXES, *UNREADABLE)), "gz")
"""File extensions of tables; those that cannot be read are refused with advice."""


def start_job(
    kind: Kind,
    label: str,
    *,
    task: str,
    complete: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    on_start: Callable[[dict[str, Any]], object] = lambda spec: None,
    on_done: Callable[[JobState], None] = lambda job: None,
    types: Sequence[str] = TABLES,
    limits_line: str = "",
) -> None:
    """Draw an uploader that starts a job for its file, or the progress of this job.

    Args:
        task: what the job does, shown while it runs.
        complete: makes the job's spec from the part that names the file.
        on_start: called with that part when the job has been queued.
        on_done: called when the job is done.
        limits_line: shown below the uploader, instead of the host's limits.
    """
    job = own_session.job(kind)
    if job.is_active:
        waiting.watch(kind, task=task, on_done=on_done)
        return
    waiting.failure(job)
    if (spec := _take(label, key=f"{kind}_file", types=types, limits_line=limits_line)) is not None:
        if waiting.start(kind, complete(spec)):
            on_start(spec)
        st.rerun()


def _take(label: str, *, key: str, types: Sequence[str], limits_line: str) -> dict[str, Any] | None:
    """Draw an uploader, or the reason why there is none; return the spec of a newly arrived file, once.

    The file is saved under a random name; its original name appears only in messages. Then the uploader gets a new key,
    so that Streamlit releases the file.
    """
    if not limits().uploads:
        st.info("Uploads are switched off on this server (TXCLS_UPLOADS=off).")
        return None
    counter = f"_{key}_turn"
    n = st.session_state.setdefault(counter, 0)
    upload = st.file_uploader(label, type=list(types), key=f"{key}_{n}", max_upload_size=limits().upload_megabytes)
    st.caption(limits_line or f"At most {limits().rows:,} rows.")
    if upload is None:
        return None
    st.session_state[counter] = n + 1
    spec = save(upload.getbuffer(), name=upload.name, types=types)
    if spec is None:
        st.rerun()
    return spec


def save(data: bytes | memoryview, *, name: str, types: Sequence[str] = TABLES) -> dict[str, Any] | None:
    """Save a file in the visitor's session under a random name; return the part of a job's spec that names it.

    If there is no room for it, or a spreadsheet of its format cannot be read, queue a notice with the reason and return
    None.
    """
    file = f"{secrets.token_hex(8)}{_suffix(name, types)}"
    try:
        if Path(file).suffix in UNREADABLE:
            table_suffix(Path(name))
        own_session.open_session().save_upload(file, data)
    except DataError as error:
        view_state.add_note(str(error))
        return None
    return {"file": f"files/{file}", "names": {f"files/{file}": name[-100:]}}


def _suffix(name: str, types: Sequence[str]) -> str:
    """The extension of a file name if it is one of `types`, with `.gz` if compressed; otherwise `.csv`."""
    lower = name.lower()
    gz = ".gz" if lower.endswith(".gz") and "gz" in types else ""
    ending = lower.removesuffix(".gz").rpartition(".")[2]
    return f".{ending}{gz}" if ending in types else ".csv"
