"""A queue for heavy computations: one runs at a time, in time slices, and a bounded number waits."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from txcls.errors import TxclsError


class BusyError(TxclsError):
    """The queue is full."""


class Turns:
    """Runs one computation at a time, round robin in time slices, so that a long one delays a short one by one slice.

    Args:
        most_waiting: how many computations may wait while one runs.
        slice_seconds: how long a computation runs before the next in the queue gets its turn.
    """

    def __init__(self, *, most_waiting: int, slice_seconds: float = 0.25) -> None:
        self._most_waiting = most_waiting
        self._slice = slice_seconds
        self._changed = threading.Condition()
        self._queue: list[object] = []  # the first one is running

    @property
    def waiting(self) -> int:
        """How many computations are waiting."""
        with self._changed:
            return max(0, len(self._queue) - 1)

    @contextmanager
    def turn(self, wait: Callable[[int], None]) -> Iterator[Callable[[], None]]:
        """Run the block in time slices. It gets a function to call between pieces of its work, which yields the turn.

        Args:
            wait: called several times a second with the number of computations ahead while this one waits, and with 0
                while it runs; an exception cancels the computation.

        Raises:
            BusyError: the queue is full.
        """
        ticket = object()
        with self._changed:
            if len(self._queue) > self._most_waiting:
                n = len(self._queue) - 1
                raise BusyError(f"This server is busy: {n} computations are already waiting. Try again in a moment.")
            self._queue.append(ticket)
        began = 0.0

        def my_turn() -> None:
            nonlocal began
            while (ahead := self._ahead(ticket)) > 0:
                wait(ahead)
            began = time.monotonic()

        def between() -> None:
            wait(0)
            if time.monotonic() - began >= self._slice and self._hand_over(ticket):
                my_turn()

        try:
            my_turn()
            wait(0)
            yield between
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()

    def _ahead(self, ticket: object) -> int:
        """How many are ahead; if any are, after a short wait for that to change."""
        with self._changed:
            if self._queue[0] is not ticket:
                self._changed.wait(0.2)
            return self._queue.index(ticket)

    def _hand_over(self, ticket: object) -> bool:
        """Go to the end of the queue; False if nobody else is in it."""
        with self._changed:
            if len(self._queue) == 1:
                return False
            self._queue.remove(ticket)
            self._queue.append(ticket)
            self._changed.notify_all()
            return True
