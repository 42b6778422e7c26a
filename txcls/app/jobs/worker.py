"""The processes of a job: a supervisor waits for its turn, forks the working process and ends it at a limit."""

import ctypes
import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from txcls.app.jobs import disk_quota
from txcls.app.jobs.json_lines import read_json, write_json
from txcls.app.jobs.queue import POLL_SECONDS, WORK, Kind, max_seconds, take_turn
from txcls.app.shell.limits import limits
from txcls.errors import TxclsError

if sys.platform != "win32":
    import resource

DISK_SECONDS = 2.0
"""Seconds between checks of a job's disk use."""
MEMORY_MESSAGE = (
    "This needed more than the {:,} MB of memory that a job may use here (TXCLS_JOB_MB). Try again with fewer or "
    "shorter texts."
)
DISK_MESSAGE = "The result takes too much disk space: {}. Try again with fewer or shorter texts."
KILLED_MESSAGE = "The process working on this was killed ({}); perhaps the server ran out of memory. Start it again."


@dataclass
class Job:
    """A job in its worker: the request, the deadline, and the reports of progress.

    Attributes:
        folder: the job's folder.
        kind: the kind of job.
        spec: the request of the page.
        started: when its turn came, on the `time.monotonic` clock.
        end: the deadline on the `time.monotonic` clock, at which the job finishes with its results so far.
        every: minimum number of seconds between two writes of the progress.
    """

    folder: Path
    kind: Kind
    spec: Mapping[str, Any]
    started: float = field(default_factory=time.monotonic)
    end: float = float("inf")
    every: float = 0.4
    _reported: float = field(default=0.0, repr=False)

    @property
    def session(self) -> Path:
        """The visitor's folder."""
        return self.folder.parent.parent

    def progress(self, stage: str, *, now: bool = True, **values: Any) -> None:
        """Write the progress; unless `now`, at most once every `every` seconds."""
        if now or time.monotonic() - self._reported >= self.every:
            write_json(self.folder / "progress.json", {"stage": stage, **values})
            self._reported = time.monotonic()

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was cancelled, or its session removed."""
        return (self.folder / "cancel").exists() or not (self.folder / "job.json").exists()

    @property
    def is_stopped(self) -> bool:
        """Whether it should end soon with its results so far: the visitor stopped it or the deadline has passed."""
        return time.monotonic() > self.end or (self.folder / "stop").exists()


def main() -> NoReturn:
    """Wait for the turn of the job whose folder is the only argument, then run it within its limits."""
    os.umask(0o077)
    folder = Path(sys.argv[1])
    stored = read_json(folder / "job.json")
    if stored is None:
        sys.exit(2)
    job = Job(folder, stored["kind"], stored["spec"])
    while not take_turn(stored["id"]):
        if job.is_cancelled:
            _write_error(job, "", cancelled=True)
            sys.exit(0)
        time.sleep(POLL_SECONDS)
    left, limit = disk_quota.room(job.session)
    job.started = time.monotonic()
    job.end = job.started + 60.0 * limits().minutes
    with suppress(OSError):
        job.progress("starting")
    child = os.fork()
    if child == 0:
        _run(job, max_bytes=max(left, 1))
        os._exit(0)
    supervise(job, child, max_bytes=left + disk_quota.size_of(job.session), disk=limit)
    sys.exit(0)


def supervise(job: Job, child: int, *, max_bytes: int, disk: str) -> None:
    """Wait for the process and kill it at a limit; afterwards, the job's folder contains the result or an error."""
    end, last_check = time.monotonic() + max_seconds(job.kind), time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return _report_death(job, status)
        if job.is_cancelled:
            return _kill(job, child, "", cancelled=True)
        if time.monotonic() > end:
            minutes = max_seconds(job.kind) / 60
            return _kill(job, child, f"This took longer than {minutes:.0f} minutes, the limit on this server.")
        if time.monotonic() - last_check > DISK_SECONDS:
            last_check = time.monotonic()
            if disk_quota.size_of(job.session) > max_bytes:
                return _kill(job, child, DISK_MESSAGE.format(disk))
        time.sleep(POLL_SECONDS)


def _kill(job: Job, child: int, message: str, *, cancelled: bool = False) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _write_error(job, message, cancelled=cancelled)


def _report_death(job: Job, status: int) -> None:
    """If a signal ended the process, write an error message that names the limit or the signal."""
    if not os.WIFSIGNALED(status):
        return
    number = os.WTERMSIG(status)
    if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):  # from C libraries that ignore a failed allocation
        _write_error(job, MEMORY_MESSAGE.format(limits().job_megabytes))
    else:
        _write_error(job, KILLED_MESSAGE.format(signal.Signals(number).name))


def _write_error(job: Job, message: str, *, cancelled: bool = False) -> None:
    """Write why there is no result; if a training job has saved a classifier, write a result unless cancelled."""
    checkpoint = job.session / "own" / str(job.spec.get("as", ""))
    with suppress(OSError):  # the session may have been removed
        if job.kind == "train" and checkpoint.is_dir() and not cancelled:
            plan = read_json(job.folder / "plan.json") or {}
            write_json(job.folder / "result.json", {**plan, "name": checkpoint.name, "problem": message})
            return
        for file in job.folder.iterdir():
            if file.name != "job.json":
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        if job.kind in ("train", "open"):
            own, name = checkpoint.parent, checkpoint.name
            for path in (*own.glob(f"{name}.training"), *own.glob(f".{name}.*"), checkpoint):
                shutil.rmtree(path, ignore_errors=True)
        write_json(job.folder / "error.json", {"cancelled": cancelled, "message": message})


def _run(job: Job, *, max_bytes: int) -> None:
    """In the working process: set the limits, run the job, and write result.json or error.json."""
    _limit_resources(job, max_bytes)
    try:
        result = import_module(f"txcls.app.jobs.{WORK[job.kind][0]}").run(job)
        write_json(job.folder / "result.json", result)
    except TxclsError as error:
        _write_error(job, _without_paths(str(error), job))
    except Exception as error:  # noqa: BLE001  # the message omits the error's text, which may contain visitors' data
        if isinstance(error, MemoryError | ImportError) or "memory" in str(error):  # imports fail without memory
            message = MEMORY_MESSAGE.format(limits().job_megabytes)
        elif isinstance(error, OSError) and error.errno in (errno.EFBIG, errno.ENOSPC, errno.EDQUOT):
            message = DISK_MESSAGE.format(disk_quota.room(job.session)[1])
        else:
            message = f"An internal error ended this job ({type(error).__name__}). Perhaps your file is the cause."
        _write_error(job, message)


def _limit_resources(job: Job, max_bytes: int) -> None:
    """Lower the priority, limit memory, file size and CPU time, and be the first to be killed if memory runs out."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the supervisor
    os.nice(4)  # pages have priority; on a busy machine the job still gets a share
    memory = limits().job_megabytes << 20
    seconds = int(max_seconds(job.kind)) * (os.cpu_count() or 1)  # in case the supervisor is killed
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with suppress(OSError, ValueError):  # some systems lack this limit
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def _without_paths(message: str, job: Job) -> str:
    """The message with the visitor's file names in place of paths on this server."""
    for path, name in job.spec.get("names", {}).items():
        message = message.replace(str(job.session / path), Path(path).name).replace(Path(path).name, str(name))
    for path in (job.folder, job.session):
        message = message.replace(f"{path}{os.sep}", "").replace(str(path), "this server")
    return message
