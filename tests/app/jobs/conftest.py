"""A folder of its own for what visitors bring, and helpers to run jobs to their end."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from txcls.app.jobs import queue
from txcls.app.jobs.queue import JobState, Kind
from txcls.app.jobs.sessions import Session


@pytest.fixture(autouse=True)
def _own_folder(jobs_folder: Path) -> None:
    """Every test here has one."""


@pytest.fixture
def session() -> Iterator[Session]:
    made = Session.new()
    yield made
    made.remove()


def wait_until(is_so: Callable[[], bool], *, seconds: float = 30) -> None:
    """Return once it is so; AssertionError where it does not come to be."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def end_of(session: Session, kind: Kind, *, seconds: float = 90) -> JobState:
    """The state of a job once it has ended."""
    wait_until(lambda: not queue.state(session, kind).is_active, seconds=seconds)
    return queue.state(session, kind)


def finish(session: Session, kind: Kind, spec: Mapping[str, Any]) -> JobState:
    """Start a job and wait for its end."""
    queue.start(session, kind, spec)
    return end_of(session, kind)


def put(session: Session, name: str, content: str | bytes) -> dict[str, Any]:
    """A file in a session, and the start of a job's spec that names it."""
    session.save_upload(name, content if isinstance(content, bytes) else content.encode())
    return {"file": f"files/{name}", "names": {f"files/{name}": f"my {name}"}}
