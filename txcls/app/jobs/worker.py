"""The process that does one job: `python -m txcls.app.jobs.worker FOLDER`, started by `running.start`.

It waits for its turn, works with bounded memory and low priority, and says in files how it goes. What it was given is
hostile: whatever happens here, the app goes on. Nothing is printed, and no message holds a path of this machine.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from txcls.app.jobs import files
from txcls.app.jobs.desks import lane
from txcls.app.shell.limits import limits
from txcls.errors import TxclsError

if sys.platform != "win32":
    import resource

BODIES = {
    "read": "txcls.app.jobs.read_table",
    "peek": "txcls.app.jobs.read_table",
    "plan": "txcls.app.jobs.train_model",
    "open": "txcls.app.jobs.open_model",
    "train": "txcls.app.jobs.train_model",
    "batch": "txcls.app.jobs.batch_file",
}
"""The module whose `run(job)` does each kind of job and returns its result."""
POLL = 0.2
"""Seconds between looks at the queue and at what the visitor asks."""
LARGEST_FILE = 2 << 30
SECONDS = {"read": 300, "peek": 300, "open": 120, "plan": 300}
"""Most processor time of the jobs that only read; the others are limited by what they do."""


class CancelledError(Exception):
    """The visitor wants nothing of this any more."""


@dataclass
class Job:
    """What a worker is asked to do, and how it tells about it.

    Attributes:
        folder: of the job.
        spec: what the page asked for.
        every: least seconds between two writings of the progress.
    """

    folder: Path
    spec: Mapping[str, Any]
    every: float = 0.4
    _told: float = field(default=0.0, repr=False)

    @property
    def desk(self) -> Path:
        """The visitor's folder."""
        return self.folder.parent.parent

    def tell(self, stage: str, *, now: bool = True, **values: Any) -> None:
        """Write the progress; unless `now`, not more often than every `every` seconds.

        Raises:
            CancelledError: the visitor has cancelled the job.
        """
        self.check()
        if now or time.monotonic() - self._told >= self.every:
            files.write(self.folder / "progress.json", {"stage": stage, "at": time.time(), **values})
            self._told = time.monotonic()

    def check(self) -> None:
        """Go on only if the visitor has not cancelled the job.

        Raises:
            CancelledError: they have.
        """
        if self.is_cancelled:
            raise CancelledError

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was cancelled, or its desk removed."""
        return (self.folder / "cancel").exists() or not (self.folder / "job.json").exists()

    @property
    def is_stopped(self) -> bool:
        """Whether the visitor asks to end soon, with what there is."""
        return self.is_cancelled or (self.folder / "stop").exists()


def main(folder: Path) -> int:
    """Wait for the turn of the job in this folder, do it, and leave result.json or error.json; returns an exit code."""
    found = files.read(folder / "job.json")
    if found is None:
        return 2
    _be_modest(found["kind"])
    job = Job(folder, found["spec"])
    try:
        _wait(job, found["lane"], found["ticket"])
        _watch_over(job)
        result = import_module(BODIES[found["kind"]]).run(job)
        job.check()
        files.write(folder / "result.json", result)
    except CancelledError:
        _leave(job, {"cancelled": True, "message": ""})
    except TxclsError as error:
        _leave(job, {"cancelled": job.is_cancelled, "message": _without_paths(str(error), job)})
    except (MemoryError, RuntimeError) as error:
        wanted_more = isinstance(error, MemoryError) or "memory" in str(error)
        _leave(job, {"message": TOO_MUCH.format(limits().job_megabytes) if wanted_more else _internal(error)})
    except Exception as error:  # noqa: BLE001  # the visitor learns that it ended; the text could hold their data
        _leave(job, {"message": _internal(error)})
    return 0


TOO_MUCH = (
    "This needed more than the {:,} MB of memory that one job may have here (TXCLS_JOB_MB). Try again with fewer or "
    "shorter texts."
)


def _internal(error: Exception) -> str:
    return f"An error inside the program ended this ({type(error).__name__}). Your file may be the cause; try another."


def _leave(job: Job, error: Mapping[str, Any]) -> None:
    with suppress(OSError):  # the desk may have been removed
        files.write(job.folder / "error.json", error)


def _without_paths(message: str, job: Job) -> str:
    """The message with the visitor's name of a file in place of where it lies here."""
    for path, name in job.spec.get("names", {}).items():
        message = message.replace(str(job.desk / path), Path(path).name).replace(Path(path).name, str(name))
    for path in (job.folder, job.desk):
        message = message.replace(f"{path}{os.sep}", "").replace(str(path), "this server")
    return message


def _be_modest(kind: str) -> None:
    """Low priority, bounded memory and files, no dump of the memory, and the first to go if the machine runs out."""
    os.umask(0o077)
    os.nice(4)  # pages come first; on a busy machine it still gets its share
    most = limits().job_megabytes << 20
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    with suppress(OSError, ValueError):  # some systems know no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    if seconds := SECONDS.get(kind):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800", encoding="ascii")


def _wait(job: Job, queue: str, ticket: str) -> None:
    """Return when it is this job's turn."""
    while lane(queue).ahead(ticket):
        job.check()
        time.sleep(POLL)
    job.tell("starting")


def _watch_over(job: Job) -> None:
    """From now on, a cancelled job's process gets SIGTERM, which long-running work answers, and soon after its end."""

    def run() -> None:
        while not job.is_cancelled:
            time.sleep(POLL)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
        _leave(job, {"cancelled": True, "message": ""})
        os._exit(1)

    signal.signal(signal.SIGTERM, _cancelled)
    threading.Thread(target=run, name="txcls-watch", daemon=True).start()


def _cancelled(number: int, frame: object) -> None:
    raise CancelledError


Body = Callable[[Job], Mapping[str, Any]]

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
