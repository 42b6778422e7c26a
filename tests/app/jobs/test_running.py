"""Workers: they take turns, are stopped and cancelled, and their crash is told in a sentence."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.app.jobs.conftest import finish, put, wait_for
from txcls.app.jobs import desks, files, running
from txcls.app.jobs.desks import Desk
from txcls.app.shell import limits
from txcls.app.shell.limits import BusyError

TABLE = "text,label\n" + "".join(f"pay me {n},money\nwhere is it {n},parcel\n" for n in range(20))


def worker_of(desk: Desk, kind: str) -> int:
    """The process that works on a job."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if str(desk.job(kind)).encode() in path.read_bytes():  # type: ignore[arg-type]
            return int(path.parent.name)
    raise AssertionError("no worker")


def test_one_worker_of_a_lane_runs_at_a_time_in_the_order_of_arrival() -> None:
    lane = desks.lane("train")
    first, one = lane.take(most_waiting=2)
    second, two = lane.take(most_waiting=2)
    third, three = lane.take(most_waiting=2)
    assert [lane.ahead(name) for name in (first, second, third)] == [0, 1, 2]
    with pytest.raises(BusyError, match="2 others are waiting already"):
        lane.take(most_waiting=2)
    os.close(two)  # the second worker has died
    assert [lane.ahead(name) for name in (first, second, third)] == [0, None, 1]
    os.close(one)
    assert lane.ahead(third) == 0
    os.close(three)
    assert lane.ahead(third) is None


def test_lanes_do_not_wait_for_each_other() -> None:
    handles = [desks.lane(name).take(most_waiting=0)[1] for name in desks.LANES]
    assert len(handles) == len(desks.LANES) == 4
    for handle in handles:
        os.close(handle)


def test_a_job_waits_for_its_turn_says_so_and_can_leave_the_queue(desk: Desk) -> None:
    name, handle = desks.lane("read").take(most_waiting=5)
    running.start(desk, "read", put(desk, "table.csv", TABLE))
    now = running.state(desk, "read")
    assert now.status == "waiting" and now.ahead == 1
    with pytest.raises(running.JobError, match="running already"):
        running.start(desk, "read", {})
    running.cancel(desk, "read")
    assert wait_for(desk, "read", until=lambda now: not now.is_active).status == "cancelled"
    os.close(handle)
    assert desks.lane("read").ahead(name) is None


@pytest.mark.skipif(sys.platform != "linux", reason="finds the process in /proc")
def test_a_killed_worker_is_told_in_a_sentence_and_the_next_one_runs(desk: Desk) -> None:
    _, handle = desks.lane("read").take(most_waiting=5)
    running.start(desk, "read", put(desk, "table.csv", TABLE))
    os.kill(worker_of(desk, "read"), signal.SIGKILL)
    now = wait_for(desk, "read", until=lambda now: not now.is_active)
    assert now.status == "lost" and "ended from outside, or the server was started anew" in now.message
    os.close(handle)
    assert finish(desk, "read", put(desk, "table.csv", TABLE)).status == "done"


@pytest.mark.skipif(sys.platform != "linux", reason="finds the process in /proc")
def test_a_worker_outlives_the_server_that_started_it_and_is_found_again(desk: Desk) -> None:
    put(desk, "table.csv", TABLE)
    code = (
        "import sys; from txcls.app.jobs import running; from txcls.app.jobs.desks import Desk;"
        "running.start(Desk.find(sys.argv[1]), 'read', {'file': 'files/table.csv', 'names': {'files/table.csv': 'x'}})"
    )
    subprocess.run([sys.executable, "-c", code, desk.token], check=True, timeout=60)
    assert wait_for(desk, "read", until=lambda now: not now.is_active).status == "done"


def test_a_removed_desk_ends_its_worker(desk: Desk) -> None:
    name, handle = desks.lane("read").take(most_waiting=5)
    running.start(desk, "read", put(desk, "table.csv", TABLE))
    ticket = files.read(desk.job("read") / "job.json") or {}
    desk.remove()
    end = time.monotonic() + 30
    while desks.lane("read").ahead(ticket["ticket"]) is not None and time.monotonic() < end:
        time.sleep(0.05)
    assert desks.lane("read").ahead(ticket["ticket"]) is None
    assert desks.lane("read").ahead(name) == 0
    os.close(handle)


def test_more_memory_than_a_job_may_have_is_refused_by_the_name_of_the_limit(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TXCLS_JOB_MB", "40")
    limits.limits.cache_clear()
    now = finish(desk, "read", put(desk, "table.csv", TABLE))
    assert now.status in ("failed", "lost")
    assert "40 MB" in now.message or "inside the program" in now.message or now.status == "lost"


def test_a_job_in_progress_keeps_its_desk(desk: Desk) -> None:
    _, handle = desks.lane("read").take(most_waiting=5)
    running.start(desk, "read", put(desk, "table.csv", TABLE))
    os.utime(desk.folder / "seen", (0, 0))
    assert desks.sweep() == 0 and desk.exists
    running.cancel(desk, "read")
    end = time.monotonic() + 30
    while not desks.sweep() and time.monotonic() < end:
        time.sleep(0.05)
    assert not desk.folder.exists()
    os.close(handle)


def test_half_written_files_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1')
    assert files.read(tmp_path / "a.json") is None and files.read(tmp_path / "none") is None
    (tmp_path / "b.jsonl").write_text('{"x": 1}\n[]\n{"x": 2}\n{"x"')
    assert files.read_lines(tmp_path / "b.jsonl") == [{"x": 1}, {"x": 2}]
    values: dict[str, Any] = {"x": [1, 2]}
    files.write(tmp_path / "a.json", values)
    assert files.read(tmp_path / "a.json") == values
    assert {path.name for path in tmp_path.iterdir()} >= {"a.json", "b.jsonl"}
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
