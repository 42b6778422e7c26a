"""A folder of its own for what visitors bring, and helpers to run jobs to their end."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from txcls.app.jobs import running
from txcls.app.jobs.desks import Desk
from txcls.app.jobs.running import JobState, Kind

Finish = Callable[[Desk, Kind, Mapping[str, Any]], JobState]


@pytest.fixture(autouse=True)
def _own_folder(jobs_folder: Path) -> None:
    """Every test here has one."""


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk.new()
    yield made
    made.remove()


def wait_for(desk: Desk, kind: Kind, *, until: Callable[[JobState], bool], seconds: float = 90) -> JobState:
    """The state of a job once it is as wanted."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = running.state(desk, kind)
        if until(now):
            return now
        time.sleep(0.05)
    raise AssertionError(f"{kind} is {running.state(desk, kind)}")


def finish(desk: Desk, kind: Kind, spec: Mapping[str, Any]) -> JobState:
    """Start a job and wait for its end."""
    running.start(desk, kind, spec)
    return wait_for(desk, kind, until=lambda now: not now.is_active)


def put(desk: Desk, name: str, text: str | bytes) -> dict[str, Any]:
    """A file on a desk, and the start of a job's spec that names it."""
    (desk.folder / "files").mkdir(exist_ok=True)
    file = desk.folder / "files" / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {"file": f"files/{name}", "names": {f"files/{name}": f"my {name}"}}
