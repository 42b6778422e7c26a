"""The queue of heavy computations of all sessions: a few run at once, and a bounded number waits.

A computation is cancelled when its visitor leaves or continues typing (`txcls.inference.interrupts`).
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app.shell.limits import BusyError, limits
from txcls.inference.interrupts import pausing

_HELD = threading.local()
MAX_RUNNING = 4
"""Maximum number of computations that run at once and share the cores; each holds its memory until it ends."""


class ComputeQueue:
    """Runs a few computations at once, so that a long one does not delay a short one, and lets others wait.

    Args:
        max_waiting: how many computations may wait while `MAX_RUNNING` run.
    """

    def __init__(self, *, max_waiting: int) -> None:
        self._max_waiting = max_waiting
        self._running = threading.Semaphore(MAX_RUNNING)
        self._places = threading.Semaphore(MAX_RUNNING + max_waiting)

    @contextmanager
    def turn(self, wait: Callable[[], None]) -> Iterator[None]:
        """Run the block when it is its turn; turns cannot be nested.

        Args:
            wait: called several times a second until then; if it raises, the computation leaves the queue.

        Raises:
            BusyError: the queue is full.
        """
        assert not getattr(_HELD, "turn", False), "turns that wait for one another's results could wait forever"
        if not self._places.acquire(blocking=False):
            raise BusyError(
                f"This server is busy: {self._max_waiting} computations are already waiting. Try again in a moment."
            )
        try:
            while not self._running.acquire(timeout=0.2):
                wait()
            _HELD.turn = True
            try:
                yield
            finally:
                _HELD.turn = False
                self._running.release()
        finally:
            self._places.release()


@cache
def shared_queue() -> ComputeQueue:
    """This process's queue for heavy computations."""
    return ComputeQueue(max_waiting=limits().waiting)


@contextmanager
def my_turn() -> Iterator[None]:
    """Run the block when it is this session's turn, and tell the visitor until then that it is queued.

    Raises:
        BusyError: the queue is full.
    """
    line: Any = None
    began = time.monotonic()

    def wait() -> None:
        nonlocal line
        end_if_left()
        if line is None and time.monotonic() - began > 1 and get_script_run_ctx(suppress_warning=True) is not None:
            line = st.info("In the queue: computations of other visitors are ahead of this one.")

    with shared_queue().turn(wait), pausing(end_if_left):
        if line is not None:
            line.empty()
        yield


def end_if_left() -> None:
    """End this run if its visitor has left or continued typing: Streamlit raises when the session state is read."""
    if get_script_run_ctx(suppress_warning=True) is not None:
        st.session_state.get("_anything")
