"""Show how a job is doing while it does, without drawing the whole page anew, and start and stop it."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from txcls.app.jobs import running
from txcls.app.jobs.running import JobError, JobState, Kind
from txcls.app.shell import own, state
from txcls.app.shell.limits import BusyError
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError

EVERY = 1.0
"""Seconds between two looks at a job."""


def start(kind: Kind, spec: Mapping[str, Any]) -> bool:
    """Start a job; a note says why if it cannot be started."""
    try:
        running.start(own.open_desk(), kind, spec)
    except (BusyError, JobError, TxclsError) as error:
        state.add_note(str(error))
        return False
    return True


def watch(
    kind: Kind,
    draw: Callable[[JobState], None],
    *,
    key: str,
    on_done: Callable[[JobState], None] = lambda now: None,
) -> None:
    """Draw an active job again and again, and the whole page once it has ended; before that, where it has come to its
    end, call `on_done`."""

    @st.fragment(run_every=EVERY, key=key)
    def look() -> None:
        now = own.job(kind)
        if now.is_active:
            draw(now)
        else:
            if now.status == "done":
                on_done(now)
            st.rerun(scope="app")

    look()


def line(now: JobState, what: str) -> None:
    """A line that says where a short job is: in the queue, or at which stage."""
    if now.status == "waiting" and now.ahead:
        st.info(in_queue(now.ahead))
    else:
        st.info(f"{what} … {plain(str(now.progress.get('stage', 'starting')))}")


def in_queue(ahead: int) -> str:
    """The place in the queue, in words."""
    before = "1 other is" if ahead == 1 else f"{ahead} others are"
    return f"In the queue: {before} ahead of yours on this server. It starts by itself."


def cancel(kind: Kind) -> None:
    """Have a job end and leave nothing; for callbacks."""
    desk = own.desk()
    if desk is not None:
        running.cancel(desk, kind)


def stop(kind: Kind) -> None:
    """Have a job end soon with what it has; for callbacks."""
    desk = own.desk()
    if desk is not None:
        running.stop(desk, kind)


def forget(kind: Kind) -> None:
    """Forget a job that has ended; for callbacks."""
    desk = own.desk()
    if desk is not None:
        running.forget(desk, kind)


def failure(now: JobState) -> None:
    """Why a job did not come to its end, if it did not."""
    if now.status in ("failed", "lost"):
        st.error(plain(now.message))
    elif now.status == "cancelled":
        st.info("Cancelled; nothing of it was kept.")
