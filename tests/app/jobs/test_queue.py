"""Jobs take turns, keep within stated limits, can be stopped and cancelled, and survive a restart of the server."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.app.jobs.conftest import end_of, finish, put, wait_until
from tests.app.jobs.test_sessions import visited_before
from tests.app.pages.test_train import limited
from txcls.app.jobs import queue, sessions, worker
from txcls.app.jobs.json_lines import read_json, write_json
from txcls.app.jobs.queue import Kind
from txcls.app.jobs.sessions import Session
from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import BusyError

TABLE = "text,label\n" + "".join(f"pay me {n},money\nwhere is it {n},parcel\n" for n in range(20))


@pytest.fixture
def occupied() -> Iterator[int]:
    """The "read" queue, in which another visitor's job runs until this lock is closed."""
    name, lock = queue.enter("read", "somebody")
    assert queue.take_turn(name)
    yield lock
    with suppress(OSError):
        os.close(lock)


def processes_of(session: Session, kind: Kind) -> list[int]:
    """The processes of a job, the supervisor first."""
    job = os.fsencode(session.job(kind))
    return sorted(
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if job in _content(path).split(b"\0")
    )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_one_job_of_a_queue_runs_at_a_time_and_a_dead_one_loses_its_place() -> None:
    names, locks = zip(*(queue.enter("train", f"visitor {n}") for n in range(3)), strict=True)
    assert [queue.take_turn(name) for name in names] == [True, False, False]
    assert [queue.ahead(name) for name in names] == [0, 1, 2]
    os.close(locks[1])
    assert [queue.ahead(name) for name in names] == [0, None, 1] and not queue.take_turn(names[2])
    os.close(locks[0])
    assert queue.take_turn(names[2])
    os.close(locks[2])
    assert queue.ahead(names[2]) is None


@pytest.mark.attack
def test_visitors_take_turns_however_many_sessions_one_of_them_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, TXCLS_MAX_QUEUED="10")
    arrivals = [("a1", "10.0.0.1"), ("a2", "10.0.0.1"), ("a3", "10.0.0.1"), ("b", "10.0.0.2"), ("c", None)]
    waiting = {session: queue.enter("batch", session, address) for session, address in arrivals}
    served = []
    while waiting:
        session = next(session for session, (name, _) in waiting.items() if queue.take_turn(name))
        served.append(session)
        os.close(waiting.pop(session)[1])
    assert served == ["a1", "b", "c", "a2", "a3"]


@pytest.mark.attack
def test_one_address_cannot_fill_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, TXCLS_MAX_QUEUED="4")
    locks = [queue.enter("plan", f"s{n}", f"2001:db8::{n}")[1] for n in range(3)]
    with pytest.raises(BusyError, match="2 jobs from your address are already waiting"):
        queue.enter("plan", "another", "2001:db8::ffff")
    locks += [queue.enter("plan", f"t{n}", f"2001:db8:0:{n}::1")[1] for n in range(1, 3)]
    with pytest.raises(BusyError, match="4 jobs are already waiting"):
        queue.enter("plan", "another", "192.0.2.1")
    assert queue.enter("train", "another", "192.0.2.1"), "queues do not wait for each other"
    for lock in locks:
        os.close(lock)


def test_a_job_waits_for_its_turn_and_can_leave_the_queue(session: Session, occupied: int) -> None:
    queue.start(session, "read", put(session, "table.csv", TABLE))
    job = queue.state(session, "read")
    assert job.status == "waiting" and job.ahead == 1
    with pytest.raises(queue.JobError, match="already running"):
        queue.start(session, "read", {})
    queue.cancel(session, "read")
    assert end_of(session, "read").status == "cancelled"


def test_a_job_asked_for_twice_at_once_is_started_once(session: Session, occupied: int) -> None:
    spec = put(session, "table.csv", TABLE)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: queue.start(session, "read", spec), range(4)))
    assert queue.state(session, "read").status == "waiting" and queue.state(session, "read").ahead == 1
    os.close(occupied)
    assert end_of(session, "read").status == "done"


@pytest.mark.skipif(sys.platform != "linux", reason="finds the process in /proc")
@pytest.mark.attack
def test_a_killed_supervisor_is_reported_and_the_next_job_runs(session: Session, occupied: int) -> None:
    queue.start(session, "read", put(session, "table.csv", TABLE))
    wait_until(lambda: bool(processes_of(session, "read")))
    os.kill(processes_of(session, "read")[0], signal.SIGKILL)
    job = end_of(session, "read")
    assert job.status == "lost" and "killed, or the server was restarted" in job.message
    os.close(occupied)
    assert finish(session, "read", put(session, "table.csv", TABLE)).status == "done"


def test_a_job_outlives_the_server_that_started_it(session: Session) -> None:
    put(session, "table.csv", TABLE)
    code = (
        "import sys; from txcls.app.jobs import queue; from txcls.app.jobs.sessions import Session;"
        "queue.start(Session.find(sys.argv[1]), 'read', {'file': 'files/table.csv', 'names': {'files/table.csv': 'x'}})"
    )
    subprocess.run([sys.executable, "-c", code, session.token], check=True, timeout=60)
    assert end_of(session, "read").status == "done"


@pytest.mark.attack
def test_a_session_is_swept_though_a_job_of_it_waits_and_the_job_ends(session: Session, occupied: int) -> None:
    queue.start(session, "read", put(session, "table.csv", TABLE))
    name = (read_json(session.job("read") / "job.json") or {})["id"]
    visited_before(session, 3600 + queue.READ_SECONDS - 60)
    assert sessions.sweep(queue.busy_seconds) == 0 and session.exists
    visited_before(session, 3600 + queue.READ_SECONDS + 1)
    assert sessions.sweep(queue.busy_seconds) == 1 and not session.exists
    wait_until(lambda: queue.ahead(name) is None)


# Limits: the working process is a child of the test


def ended(session: Session, kind: Kind, code: str, *, max_bytes: int = 1 << 30) -> queue.JobState:
    """The state in which a job ends whose process runs this Python code."""
    folder = session.job(kind)
    folder.mkdir()
    write_json(folder / "job.json", {"kind": kind, "id": "x", "spec": {"as": "mine"}, "since": 0.0})
    job = Job(folder, kind, {"as": "mine"})
    child = subprocess.Popen([sys.executable, "-c", code], cwd=folder)
    worker.supervise(job, child.pid, max_bytes=max_bytes, disk="no more than that (TXCLS_SESSION_MB)")
    child.wait()
    return queue.state(session, kind)


ALWAYS = "import time\nwhile True: time.sleep(0.1)"


@pytest.mark.parametrize(
    "code, limit",
    [
        ("import os; os.kill(os.getpid(), 11)", "more than the 2,500 MB of memory that a job may use"),
        ("import os; os.kill(os.getpid(), 9)", r"killed (SIGKILL)"),
        (f"open('part', 'wb').write(bytes(5_000_000))\n{ALWAYS}", "no more than that (TXCLS_SESSION_MB)"),
        (ALWAYS, "longer than 0 minutes"),
    ],
)
@pytest.mark.attack
def test_a_job_ended_by_a_limit_names_the_limit_and_leaves_no_files(
    session: Session, code: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "DISK_SECONDS", 0.2)
    monkeypatch.setattr(queue, "READ_SECONDS", 1.0 if "minutes" in limit else 30.0)
    job = ended(session, "read", code, max_bytes=1_000_000)
    assert job.status == "failed" and limit in job.message
    assert sorted(path.name for path in session.job("read").iterdir()) == ["error.json", "job.json"]


@pytest.mark.attack
def test_a_classifier_that_was_saved_outlives_its_comparison(session: Session) -> None:
    (session.own / "mine").mkdir()
    job = ended(session, "train", "import os; os.kill(os.getpid(), 11)")
    assert job.status == "done" and job.result["name"] == "mine" and "TXCLS_JOB_MB" in job.result["problem"]
    assert (session.own / "mine").is_dir()


def test_a_cancelled_training_leaves_nothing(session: Session) -> None:
    (session.own / "mine").mkdir()
    (session.own / "mine.training").mkdir()
    code = f"open('cancel', 'w').close()\n{ALWAYS}"
    assert ended(session, "train", code).status == "cancelled" and not list(session.own.iterdir())


@pytest.mark.attack
def test_exceeding_a_jobs_memory_names_the_limit(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, TXCLS_JOB_MB="60")
    job = finish(session, "read", put(session, "table.csv", TABLE))
    assert job.status == "failed" and "60 MB of memory that a job may use here (TXCLS_JOB_MB)" in job.message
