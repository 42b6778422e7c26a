"""Uploaders that move a file to the visitor's session immediately and start a job; boxes for how it reads a table."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from txcls.app.jobs.own_table import READ_OPTIONS
from txcls.app.jobs.queue import JobState, Kind
from txcls.app.shell import own_session, view_state, waiting
from txcls.app.shell.limits import limits
from txcls.data.columns import JOINER, text_columns
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


def column_boxes(job: JobState, start: Callable[[dict[str, Any]], object]) -> None:
    """Draw boxes for the sheet and the columns of a table that a job has read; a choice starts it with another spec."""
    table, names = job.result, job.result["columns"]
    options: dict[str, Any] = {"args": (dict(job.spec), start), "width": 320}
    with st.container(horizontal=True):
        if len(table["sheets"]) > 1:
            st.session_state["sheet_box"] = table["sheet"]
            st.selectbox("Sheet", table["sheets"], key="sheet_box", on_change=_read_sheet, **options)
        text, label = (table.get(field) or job.spec.get(field) for field in ("text_column", "label_column"))
        st.session_state["text_column_box"] = list(text_columns(text, names)) if text else []
        st.multiselect(
            "Columns of the texts",
            names,
            key="text_column_box",
            placeholder="Choose a column",
            help="Several columns, such as subject and body, are joined.",
            on_change=_read_columns,
            **options,
        )
        st.session_state["label_column_box"] = label
        st.selectbox(
            "Column of the labels",
            names,
            index=None if label is None else 0,  # a guessed column can be changed, not cleared
            key="label_column_box",
            placeholder="Choose a column",
            on_change=_read_columns,
            **options,
        )


def _read_columns(spec: Mapping[str, Any], start: Callable[[dict[str, Any]], object]) -> None:
    """Read the table again with the chosen columns, without the code book, which might not fit another label column."""
    chosen = {
        "text_column": JOINER.join(st.session_state["text_column_box"]),
        "label_column": st.session_state["label_column_box"],
    }
    start({**spec, "code_book": None, **{field: name for field, name in chosen.items() if name}})


def _read_sheet(spec: Mapping[str, Any], start: Callable[[dict[str, Any]], object]) -> None:
    """Read another sheet, and guess its columns."""
    others = {name: value for name, value in spec.items() if name not in READ_OPTIONS}
    start({**others, "sheet": st.session_state["sheet_box"]})
