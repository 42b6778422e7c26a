"""A separate folder for visitors' files, and helpers that run jobs to completion."""

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
    """Give every test here its own folder for jobs."""


@pytest.fixture
def session() -> Iterator[Session]:
    new_session = Session.new()
    yield new_session
    new_session.remove()


def wait_until(condition: Callable[[], bool], *, seconds: float = 30) -> None:
    """Wait until the condition holds; AssertionError if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def end_of(session: Session, kind: Kind, *, seconds: float = 90) -> JobState:
    """Wait for a job to end, and return its final state."""
    wait_until(lambda: not queue.state(session, kind).is_active, seconds=seconds)
    return queue.state(session, kind)


def finish(session: Session, kind: Kind, spec: Mapping[str, Any]) -> JobState:
    """Start a job and wait for it to end."""
    queue.start(session, kind, spec)
    return end_of(session, kind)


def put(session: Session, name: str, content: str | bytes) -> dict[str, Any]:
    """Save a file in a session; returns the part of a job's spec that names it."""
    session.save_upload(name, content if isinstance(content, bytes) else content.encode())
    return {"file": f"files/{name}", "names": {f"files/{name}": f"my {name}"}}
