"""The queues of computations of all sessions: one runs at a time, in time slices, and a bounded number waits.

A computation is cancelled when its visitor leaves or continues typing (`txcls.inference.interrupts`).
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from txcls.app.shell.limits import BusyError, limits
from txcls.inference.interrupts import pausing

MAX_RUNNING = 4
"""Number of computations that take turns; each holds its memory until it ends."""


class ComputeQueue:
    """Runs one computation at a time, round robin in time slices: a long one delays a short one by only one slice.

    Args:
        max_waiting: how many computations may wait while one runs.
        slice_seconds: how long a computation runs before the next of `MAX_RUNNING` gets its turn.
    """

    def __init__(self, *, max_waiting: int, slice_seconds: float = 0.25) -> None:
        self._max_waiting = max_waiting
        self._slice = slice_seconds
        self._changed = threading.Condition()
        self._queue: list[object] = []  # the first one is running

    @property
    def waiting(self) -> int:
        """How many computations are waiting."""
        with self._changed:
            return max(0, len(self._queue) - 1)

    @contextmanager
    def turn(self, wait: Callable[[int], None]) -> Iterator[Callable[..., None]]:
        """Run the block in time slices; yields a function for the block to call between pieces of its work, which lets
        the next computation run or, with `for_all`, all others in the queue.

        Args:
            wait: called several times a second with the number of computations ahead while this one waits, and with 0
                while it runs; an exception cancels the computation.

        Raises:
            BusyError: the queue is full.
        """
        computation = object()
        with self._changed:
            if len(self._queue) > self._max_waiting:
                n = len(self._queue) - 1
                raise BusyError(f"This server is busy: {n} computations are already waiting. Try again in a moment.")
            self._queue.append(computation)
        began = 0.0

        def wait_for_turn() -> None:
            nonlocal began
            while (ahead := self._ahead(computation)) > 0:
                wait(ahead)
            began = time.monotonic()

        def pause_point(*, for_all: bool = False) -> None:
            wait(0)
            is_slice_over = for_all or time.monotonic() - began >= self._slice
            if is_slice_over and self._hand_over(computation, len(self._queue) if for_all else MAX_RUNNING - 1):
                wait_for_turn()

        try:
            wait_for_turn()
            wait(0)
            yield pause_point
        finally:
            with self._changed:
                self._queue.remove(computation)
                self._changed.notify_all()

    def _ahead(self, computation: object) -> int:
        """How many computations are ahead; if there are any, wait briefly for a change first."""
        with self._changed:
            if self._queue[0] is not computation:
                self._changed.wait(0.2)
            return self._queue.index(computation)

    def _hand_over(self, computation: object, position: int) -> bool:
        """Move this computation to `position`, so that the next one runs; False if it is the only one."""
        with self._changed:
            if len(self._queue) == 1:
                return False
            self._queue.remove(computation)
            self._queue.insert(position, computation)
            self._changed.notify_all()
            return True


@cache
def shared_queue() -> ComputeQueue:
    """This process's queue for heavy computations."""
    return ComputeQueue(max_waiting=limits().waiting)


_turn: ContextVar[Callable[..., None] | None] = ContextVar("txcls_turn", default=None)


@contextmanager
def my_turn() -> Iterator[None]:
    """Run the block when it is this session's turn, and show the place in the queue until then.

    Raises:
        BusyError: the queue is full.
    """
    if _turn.get() is not None:
        yield
        return
    line = _QueueLine()
    try:
        with shared_queue().turn(line.update) as pause_point, pausing(pause_point):
            token = _turn.set(pause_point)
            try:
                yield
            finally:
                _turn.reset(token)
    finally:
        line.clear()


def give_way() -> None:
    """Let all others run first while this computation waits for a result of another, anywhere in the queue."""
    if (pause_point := _turn.get()) is not None:
        pause_point(for_all=True)


def end_if_left() -> None:
    """End this run if its visitor has left or continued typing: Streamlit raises when the session state is read."""
    if get_script_run_ctx(suppress_warning=True) is not None:
        st.session_state.get("_anything")


class _QueueLine:
    """A line on the page with the number of computations ahead, shown after a second of waiting."""

    def __init__(self) -> None:
        self._placeholder: Any = None
        self._ahead = 0
        self._since = time.monotonic()

    def update(self, ahead: int) -> None:
        """Show how many are ahead; end the run if its visitor has left."""
        if get_script_run_ctx(suppress_warning=True) is None:
            return
        end_if_left()
        if ahead and ahead != self._ahead and (self._placeholder or time.monotonic() - self._since > 1):
            self._placeholder = self._placeholder or st.empty()
            others = "1 computation of another visitor" if ahead == 1 else f"{ahead} computations of other visitors"
            self._placeholder.info(f"In the queue: {others} ahead of this one.")
            self._ahead = ahead

    def clear(self) -> None:
        """Remove the line."""
        if self._placeholder is not None:
            self._placeholder.empty()
