"""Bounds on uploaded files while Streamlit holds them in memory: their size, one per session, and all together.

Streamlit takes a file of up to `server.maxUploadSize` from any open session, as many as are sent, and keeps them until
the session ends. Here a session's new file replaces its last one, and all sessions share a budget. Pages move a file to
the visitor's desk at once, so little is in memory at any time.
"""

import threading
from typing import Any

import streamlit as st
from streamlit import config, runtime
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from txcls.app.shell.limits import limits

SHARE = 4
"""All files in memory together may have as many bytes as this number of files of the largest size."""
_lock = threading.Lock()


def bound_uploads() -> None:
    """Apply the host's limits to this process; called at the start of every run, and does something in the first.

    Until then nothing is taken: `.streamlit/config.toml` has a largest size of 0.
    """
    most = limits().upload_megabytes if limits().uploads else 0
    if config.get_option("server.maxUploadSize") != most:
        config.set_option("server.maxUploadSize", most)
    if not runtime.exists():
        return
    manager = runtime.get_instance().uploaded_file_mgr
    with _lock:
        if not hasattr(manager, "txcls_bounded"):
            _bound(manager, SHARE * most << 20)


def _bound(manager: Any, budget: int) -> None:
    """Have the manager refuse files beyond the budget, and drop a session's earlier ones."""
    add = manager.add_file

    def add_bounded(session_id: str, file: UploadedFileRec) -> None:
        from starlette.exceptions import HTTPException

        with _lock:
            manager.remove_session_files(session_id)
            taken = sum(len(one.data) for files in list(manager.file_storage.values()) for one in list(files.values()))
            if taken + len(file.data) > budget:
                raise HTTPException(status_code=503, detail="Too many files are being uploaded; try again in a minute")
            add(session_id, file)

    manager.add_file = add_bounded
    manager.txcls_bounded = True


def take(label: str, *, key: str, types: list[str], help_line: str = "") -> tuple[str, bytes] | None:
    """Draw an uploader; name and contents of a file that has just arrived, once.

    The uploader is drawn anew after that, which has Streamlit let go of the file.
    """
    turn = f"_{key}_turn"
    now = st.session_state.setdefault(turn, 0)
    given = st.file_uploader(label, type=types, key=f"{key}_{now}", max_upload_size=limits().upload_megabytes)
    if help_line:
        st.caption(help_line)
    if given is None:
        return None
    st.session_state[turn] = now + 1
    return given.name, given.getvalue()


def refusal() -> str:
    """Why no file can be uploaded here; "" if one can."""
    return "" if limits().uploads else "Uploads are switched off on this server (TXCLS_UPLOADS=off)."
