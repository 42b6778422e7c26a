"""Start a worker process for a job, and read how it is doing from the files that it leaves."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from txcls.app.jobs import files
from txcls.app.jobs.desks import Desk, lane
from txcls.app.jobs.tickets import HAS_LOCKS
from txcls.app.shell.limits import BusyError, limits
from txcls.errors import TxclsError

Kind = Literal["read", "peek", "open", "plan", "train", "batch"]
"""What a worker does: look through a table to train on, read the columns of one to classify, open a model, plan a
training, train, or classify a file."""
LANE_OF: Mapping[Kind, str] = {
    "read": "read",
    "peek": "read",
    "open": "read",
    "plan": "plan",
    "train": "train",
    "batch": "batch",
}
"""The queue that each kind of job waits in."""
Status = Literal["none", "waiting", "running", "done", "failed", "cancelled", "lost"]
STARTING = 5.0
"""Seconds that a worker may take from its start to its first sign of life in its files."""

_children: list["subprocess.Popen[bytes]"] = []
_children_lock = threading.Lock()


class JobError(TxclsError):
    """A job cannot be started."""


@dataclass(frozen=True)
class JobState:
    """How a job is doing.

    Attributes:
        status: "lost" if its process ended without a word: it was killed, or the machine was restarted.
        ahead: how many jobs are ahead of it, while it waits.
        spec: what it was asked to do.
        progress: what the worker has last said of its progress.
        result: what a finished worker found.
        message: why it failed or was lost, in a sentence.
        since: when it was started, in seconds since the epoch.
    """

    status: Status
    ahead: int = 0
    spec: Mapping[str, Any] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    message: str = ""
    since: float = 0.0

    @property
    def is_active(self) -> bool:
        """Whether a worker waits or runs."""
        return self.status in ("waiting", "running")


def start(desk: Desk, kind: Kind, spec: Mapping[str, Any]) -> None:
    """Start a worker for a job, which waits for its turn; an earlier job of its kind that has ended is forgotten.

    Raises:
        JobError: the visitor's job of this kind has not ended, or the system has no locks.
        BusyError: too many wait.
    """
    if not HAS_LOCKS:
        raise JobError("Work on your own files needs file locks, which this server's system (Windows) does not have")
    if state(desk, kind).is_active:
        raise JobError("This is running already; wait for it, or stop it")
    folder = desk.job(kind)
    shutil.rmtree(folder, ignore_errors=True)
    ticket, handle = lane(LANE_OF[kind]).take(most_waiting=limits().queued)
    try:
        folder.mkdir(mode=0o700, parents=True)
        job = {"kind": kind, "lane": LANE_OF[kind], "ticket": ticket, "spec": dict(spec), "since": time.time()}
        files.write(folder / "job.json", job)
        _launch(folder, handle)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise JobError(f"The server cannot start it ({error.strerror}); try again later") from None
    finally:
        os.close(handle)  # the worker holds the ticket from now on


def _launch(folder: Path, ticket: int) -> None:
    """Start the worker of a job folder, independent of this process, with the open ticket."""
    package = Path(__file__).resolve().parents[3]
    paths = [str(package), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "txcls.app.jobs.worker", str(folder)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
            "TXCLS_CACHE": str(folder / "cache"),  # token ids of the visitor's texts: they go with the desk
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(ticket,),
        start_new_session=True,
    )
    with _children_lock:
        _children[:] = [one for one in _children if one.poll() is None]  # collects those that have ended
        _children.append(child)


def state(desk: Desk, kind: Kind) -> JobState:
    """How the visitor's job of a kind is doing."""
    folder = desk.job(kind)
    job = files.read(folder / "job.json")
    if job is None:
        return JobState("none")
    # Who is ahead is asked before the results are read: a worker writes these, and then gives up its ticket.
    ahead = lane(job["lane"]).ahead(job["ticket"])
    known: dict[str, Any] = {
        "spec": job["spec"],
        "progress": files.read(folder / "progress.json") or {},
        "since": job["since"],
    }
    if (result := files.read(folder / "result.json")) is not None:
        return JobState("done", result=result, **known)
    if (error := files.read(folder / "error.json")) is not None:
        status: Status = "cancelled" if error.get("cancelled") else "failed"
        return JobState(status, message=str(error.get("message", "")), **known)
    if ahead is None:
        with _children_lock:
            _children[:] = [one for one in _children if one.poll() is None]
        return JobState("lost", message=LOST, **known)
    return JobState("running" if known["progress"] else "waiting", ahead=ahead, **known)


LOST = (
    "The process that worked on this was ended from outside, or the server was started anew. Nothing of it is left; "
    "start it again."
)


def stop(desk: Desk, kind: Kind) -> None:
    """Ask a worker to end soon and keep what it has: of a training, the weights that did best so far."""
    _ask(desk, kind, "stop")


def cancel(desk: Desk, kind: Kind) -> None:
    """Have a worker end and leave nothing."""
    _ask(desk, kind, "cancel")


def _ask(desk: Desk, kind: Kind, what: str) -> None:
    with suppress(OSError):
        if desk.job(kind).is_dir():
            files.touch(desk.job(kind) / what)


def forget(desk: Desk, kind: Kind) -> None:
    """Forget a job that has ended."""
    if not state(desk, kind).is_active:
        shutil.rmtree(desk.job(kind), ignore_errors=True)


__all__ = ["BusyError", "JobError", "JobState", "Kind", "cancel", "forget", "start", "state", "stop"]
