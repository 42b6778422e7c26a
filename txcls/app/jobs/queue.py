"""Jobs on visitors' files: each runs in its own processes; jobs take turns and have limits.

A job is a folder in a visitor's session. `start` writes job.json there and starts a supervisor (`worker.py`), which
waits for its turn, forks the working process, and kills it at a limit of time or disk, or when the visitor cancels;
the process limits its own memory. It writes progress.json and result.json, which the pages only read. A supervisor does
not depend on the app's process: training continues while the app is restarted.

In each queue, one job runs at a time on this host. A job holds a lock on a file (flock) as long as its processes live,
however they end, so the locks show which jobs exist without a monitoring process. The next job belongs to the visitor
who was served least recently, by address and then by session.

Why not a library: huey, RQ, Dramatiq and pools such as loky or pebble keep a list of tasks for long-lived workers. They
have no memory or disk limit per task, do not report what killed a task, cannot end a running task at all (huey, RQ on
SQLite) or after a restart (pools), and serve in order of arrival. With any of them we would still need the processes,
limits and messages of `worker.py`; it would replace only the waiting list.
"""

import ipaddress
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from txcls.app.jobs import disk_quota, sessions
from txcls.app.jobs.json_lines import read_json, write_json
from txcls.app.jobs.sessions import Session
from txcls.app.shell.limits import BusyError, limits
from txcls.errors import TxclsError

if sys.platform != "win32":
    import fcntl

Kind = Literal["read", "peek", "open", "report", "doubtful", "correct", "curve", "plan", "train", "batch"]
"""The kinds of jobs: read a table to train on, read the columns of a table to classify, open a model, measure one on a
table, check the labels of a table, correct them, fit the linear baseline to subsets of it, plan a training run, train,
or classify a file."""
WORK: Mapping[Kind, tuple[str, str]] = {
    "read": ("check_table", "read"),
    "peek": ("check_table", "read"),
    "open": ("open_model", "read"),
    "report": ("report_table", "read"),
    "doubtful": ("report_table", "read"),
    "correct": ("report_table", "read"),
    "curve": ("report_table", "read"),
    "plan": ("train_model", "plan"),
    "train": ("train_model", "train"),
    "batch": ("batch_file", "batch"),
}
"""For each kind of job, the module of this package with the `run(job)` that does it, and the queue of the job."""
READ_SECONDS = 300.0
"""Maximum time for reading a table or planning a training run. Training and classifying stop after `limits().minutes`
with their results so far, and get the same time again to finish."""
POLL_SECONDS = 0.2
"""Seconds between checks of the queue and of the visitor's requests."""
SERVED_SECONDS = 3600.0
"""Seconds for which the queue remembers who was served."""

Status = Literal["none", "waiting", "running", "done", "failed", "cancelled", "lost"]


class JobError(TxclsError):
    """A job cannot be started."""


class RunningError(JobError):
    """Another job of this kind has not ended."""


# The queues


@dataclass
class _Queues:
    """The waiting and running jobs on this host, in order of arrival, and when visitors were last served."""

    jobs: list[dict[str, Any]]
    served: dict[str, float]

    def of(self, queue: str) -> list[dict[str, Any]]:
        """The jobs of a queue, in the order of their turns."""
        jobs = [job for job in self.jobs if job["queue"] == queue]
        return sorted(
            jobs, key=lambda job: (not job["runs"], *(self.served.get(visitor, 0.0) for visitor in _visitor_keys(job)))
        )


def _visitor_keys(job: Mapping[str, Any]) -> tuple[str, str]:
    """The keys of a visitor in `_Queues.served`: address and session."""
    return f"{job['queue']} {job['address']}", f"{job['queue']} {job['session']}"


@contextmanager
def _queues() -> Iterator[_Queues]:
    """Lock and yield the queues of this host, without the jobs whose processes have ended."""
    folder = _locks()
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        stored = read_json(folder / "jobs.json") or {"jobs": [], "served": {}}
        now = time.monotonic()
        served = {visitor: at for visitor, at in stored["served"].items() if now - SERVED_SECONDS < at <= now}
        queues = _Queues([job for job in stored["jobs"] if _is_held(folder / job["id"])], served)
        yield queues
        changed = {"jobs": queues.jobs, "served": queues.served}
        if changed != stored:
            write_json(folder / "jobs.json", changed)
    finally:
        os.close(handle)


def _locks() -> Path:
    """The folder of the list of jobs and of the locks, one for each job."""
    folder = sessions.root() / "queue"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _is_held(lock: Path) -> bool:
    """Whether a process holds the lock; a lock that no process holds is removed."""
    try:
        handle = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def enter(queue: str, session: str, address: str | None = None) -> tuple[str, int]:
    """Join a queue; return the job's id and the open lock that holds its place, which its processes inherit.

    Raises:
        BusyError: the maximum number of jobs, of all visitors or from this address, is already waiting.
    """
    visitor = _group(address) if address else session
    with _queues() as queues:
        jobs = queues.of(queue)
        if len(jobs) > limits().queued:
            raise BusyError(
                f"{len(jobs) - 1} jobs are already waiting, the maximum here (TXCLS_MAX_QUEUED). Try again later."
            )
        if (n := sum(job["address"] == visitor for job in jobs)) > max(limits().queued // 2, 1):
            raise BusyError(
                f"{n - 1} jobs from your address are already waiting. Try again when one of them has ended."
            )
        job_id = secrets.token_hex(8)
        handle = os.open(_locks() / job_id, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        queues.jobs.append({"id": job_id, "queue": queue, "session": session, "address": visitor, "runs": False})
    return job_id, handle


def _group(address: str) -> str:
    """The part of an address that identifies a household: the whole address for IPv4, the network for IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network(f"{address}/64", strict=False))


def ahead(job_id: str) -> int | None:
    """How many jobs are ahead of this one; None if its processes have ended."""
    with _queues() as queues:
        job = next((job for job in queues.jobs if job["id"] == job_id), None)
        return None if job is None else queues.of(job["queue"]).index(job)


def take_turn(job_id: str) -> bool:
    """Whether it is this job's turn; if so, the job has the turn until its processes end."""
    with _queues() as queues:
        job = next((job for job in queues.jobs if job["id"] == job_id), None)
        if job is None or queues.of(job["queue"])[0] is not job:
            return False
        job["runs"] = True
        queues.served |= dict.fromkeys(_visitor_keys(job), time.monotonic())
        return True


# For the pages


@dataclass(frozen=True)
class JobState:
    """The state of a job.

    Attributes:
        status: "lost" if its processes ended without a result: they were killed, or the machine was restarted.
        ahead: how many jobs are ahead of it, while it waits.
        spec: the request of the page.
        progress: the worker's last report.
        result: the return value of a finished worker.
        message: why it failed or was lost, in a sentence.
        since: when it was started, on the `time.monotonic` clock.
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
        """Whether it is waiting or running."""
        return self.status in ("waiting", "running")


_children: list["subprocess.Popen[bytes]"] = []
_children_lock = threading.Lock()
_starting = threading.Lock()


def start(session: Session, kind: Kind, spec: Mapping[str, Any], *, address: str | None = None) -> None:
    """Start a job, which waits for its turn; an earlier job of its kind that has ended is deleted.

    Nothing happens if the same job has not ended: Streamlit may run a click's callback, or a page, twice in two threads
    if another message from the browser interrupts the first.

    Raises:
        RunningError: another job of this kind has not ended.
        JobError: the disk is full, or the system has no file locks.
        BusyError: too many jobs are waiting.
    """
    if sys.platform == "win32":
        raise JobError("Jobs on your own files need file locks, which this server's system (Windows) does not have")
    with _starting:
        last = state(session, kind)
        if last.is_active and last.spec == dict(spec):
            return
        if last.is_active:
            raise RunningError("This is already running; wait for it, or stop it")
        folder = session.job(kind)
        shutil.rmtree(folder, ignore_errors=True)
        left, limit = disk_quota.room(session.folder)
        if left <= 0:
            raise JobError(
                f"There is no disk space for the result: {limit}. Remove some of your files, or try again later."
            )
        job_id, lock = enter(WORK[kind][1], session.folder.name, address)
        try:
            folder.mkdir(mode=0o700, parents=True)
            write_json(folder / "job.json", {"kind": kind, "id": job_id, "spec": dict(spec), "since": time.monotonic()})
            _launch(folder, lock)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise JobError(f"The server cannot start this job ({error.strerror}); try again later") from None
        finally:
            os.close(lock)  # the job's processes hold it now


def _launch(folder: Path, lock: int) -> None:
    """Start the supervisor of a job folder, independent of this process."""
    package = Path(__file__).resolve().parents[3]
    paths = [str(package), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", "from txcls.app.jobs.worker import main; main()", str(folder)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
            "TXCLS_CACHE": str(folder / "cache"),  # with token ids of the visitor's texts, removed with the session
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock,),
        start_new_session=True,
    )
    with _children_lock:
        _children[:] = [other for other in _children if other.poll() is None]  # reap those that have ended
        _children.append(child)


def state(session: Session, kind: Kind) -> JobState:
    """The state of the visitor's job of a kind."""
    folder = session.job(kind)
    job = read_json(folder / "job.json")
    if job is None:
        return JobState("none")
    # Before reading the results, since a worker writes its result before it releases its lock.
    n_ahead = ahead(job["id"])
    progress = read_json(folder / "progress.json") or {}
    in_any_state: dict[str, Any] = {"spec": job["spec"], "progress": progress, "since": job["since"]}
    if (result := read_json(folder / "result.json")) is not None:
        return JobState("done", result=result, **in_any_state)
    if (error := read_json(folder / "error.json")) is not None:
        status: Status = "cancelled" if error.get("cancelled") else "failed"
        return JobState(status, message=str(error.get("message", "")), **in_any_state)
    if n_ahead is None:
        return JobState("lost", message=LOST_MESSAGE, **in_any_state)
    return JobState("running" if progress else "waiting", ahead=n_ahead, **in_any_state)


LOST_MESSAGE = "The process working on this was killed, or the server was restarted. Nothing was saved; start it again."


def stop(session: Session, kind: Kind) -> None:
    """Ask a job to end soon with its results so far; a training run keeps its best weights so far."""
    _request(session, kind, "stop")


def cancel(session: Session, kind: Kind) -> None:
    """End a job and discard its results."""
    _request(session, kind, "cancel")


def _request(session: Session, kind: Kind, request: str) -> None:
    with suppress(OSError):
        (session.job(kind) / request).touch(mode=0o600)


def forget(session: Session, kind: Kind) -> None:
    """Delete a job that has ended."""
    if not state(session, kind).is_active:
        shutil.rmtree(session.job(kind), ignore_errors=True)


def busy_seconds(folder: Path) -> float:
    """Seconds for which a session's active jobs protect its folder from removal: the maximum time of any of them."""
    jobs = filter(None, map(read_json, (folder / "jobs").glob("*/job.json")))
    return max((max_seconds(job["kind"]) for job in jobs if ahead(job["id"]) is not None), default=0.0)


def max_seconds(kind: Kind) -> float:
    """Maximum time of a job, from its turn to its end."""
    return 2 * 60.0 * limits().minutes + READ_SECONDS if kind in ("train", "batch") else READ_SECONDS
