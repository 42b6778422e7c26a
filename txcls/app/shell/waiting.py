"""Start and stop a visitor's jobs, and show their progress without redrawing the whole page."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from txcls.app.jobs import queue
from txcls.app.jobs.queue import JobState, Kind
from txcls.app.shell import own_session, view_state
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError


def start(kind: Kind, spec: Mapping[str, Any]) -> bool:
    """Start a job; if it cannot be started, queue a notice with the reason."""
    try:
        queue.start(own_session.open_session(), kind, spec, address=st.context.ip_address)
    except TxclsError as error:
        view_state.add_note(str(error))
        return False
    return True


def watch(
    kind: Kind,
    draw: Callable[[JobState], None] | None = None,
    *,
    task: str = "",
    on_done: Callable[[JobState], None] = lambda job: None,
) -> None:
    """Redraw an active job every second; once it has ended, call `on_done` if it succeeded and redraw the whole page.

    Without `draw`, a line shows the task and its current stage, or its place in the queue.
    """

    @st.fragment(run_every=1.0, key=f"watch_{kind}")
    def poll() -> None:
        job = own_session.job(kind)
        if job.is_active and draw is not None:
            draw(job)
        elif job.is_active:
            stage = f"{task} … {plain(str(job.progress.get('stage', 'starting')))}"
            st.info(in_queue(job.ahead) if job.status == "waiting" and job.ahead else stage)
        else:
            if job.status == "done":
                on_done(job)
            st.rerun(scope="app")

    poll()


def result_of(
    kind: Kind, spec: Mapping[str, Any], *, task: str, button: str, key: str, about: str = ""
) -> JobState | None:
    """The job of this request if it is done; otherwise draw its progress, or its failure and a button that starts it.

    `about` is a text above the button.
    """
    job = own_session.job(kind)
    if job.is_active:
        watch(kind, task=task)
        return None
    if job.spec == spec:
        if job.status == "done":
            return job
        failure(job)
    if about:
        st.markdown(about)
    if st.button(button, key=key):
        start(kind, spec)
        st.rerun()
    return None


def in_queue(ahead: int) -> str:
    """The place in the queue, in words."""
    jobs = "1 job, yours or another visitor's, is" if ahead == 1 else f"{ahead} jobs, yours or other visitors', are"
    return f"In the queue: {jobs} ahead of this one on this server. It starts by itself."


def time_left(job: JobState) -> str:
    """The time left according to the job's last report, as the end of a line; "" if it is unknown or over."""
    seconds = round(float(job.progress.get("end", 0.0)) - time.monotonic())
    return f" · {own_session.duration(seconds)} left" if seconds > 0 else ""


def cancel(kind: Kind) -> None:
    """Cancel a job and discard its results; for callbacks."""
    if (session := own_session.session()) is not None:
        queue.cancel(session, kind)


def stop(kind: Kind) -> None:
    """Ask a job to end soon with its results so far; for callbacks."""
    if (session := own_session.session()) is not None:
        queue.stop(session, kind)


def forget(kind: Kind) -> None:
    """Forget a job that has ended; for callbacks."""
    if (session := own_session.session()) is not None:
        queue.forget(session, kind)


def failure(job: JobState) -> None:
    """Show why a job failed, or that it was cancelled."""
    if job.status in ("failed", "lost"):
        st.error(plain(job.message))
    elif job.status == "cancelled":
        st.info("Cancelled; nothing was saved.")
