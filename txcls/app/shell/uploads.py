"""A box for a file to upload, which moves to the visitor's session at once."""

import secrets
from collections.abc import Sequence
from typing import Any

import streamlit as st

from txcls.app.shell import own, state
from txcls.app.shell.limits import limits
from txcls.errors import DataError

TABLES = ("csv", "tsv", "txt", "jsonl", "json", "parquet", "xlsx", "gz")
"""The endings of tables that are read."""


def take(label: str, *, key: str, types: Sequence[str] = TABLES, help_line: str = "") -> dict[str, Any] | None:
    """Draw an uploader, or say why there is none; of a file that has just arrived the start of a job's spec, once.

    The file lies in the session under a name of ours: the visitor's goes into messages alone. The uploader is drawn
    anew after that, which has Streamlit let go of the file.
    """
    if not limits().uploads:
        st.info("Uploads are switched off on this server (TXCLS_UPLOADS=off).")
        return None
    turn = f"_{key}_turn"
    now = st.session_state.setdefault(turn, 0)
    given = st.file_uploader(label, type=list(types), key=f"{key}_{now}", max_upload_size=limits().upload_megabytes)
    st.caption(help_line or f"At most {limits().upload_megabytes} MB and {limits().rows:,} rows.")
    if given is None:
        return None
    st.session_state[turn] = now + 1
    file = f"{secrets.token_hex(8)}{_suffix(given.name, types)}"
    try:
        own.open_session().save_upload(file, given.getbuffer())
    except DataError as error:
        state.add_note(str(error))
        st.rerun()
    return {"file": f"files/{file}", "names": {f"files/{file}": given.name[-100:]}}


def _suffix(name: str, types: Sequence[str]) -> str:
    """The ending of a name that says its format, if it is one that is read."""
    lower = name.lower()
    gz = ".gz" if lower.endswith(".gz") and "gz" in types else ""
    ending = lower.removesuffix(".gz").rpartition(".")[2]
    return f".{ending}{gz}" if ending in types else ".csv"
