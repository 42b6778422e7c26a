"""Heavy computations of many visitors: one at a time, a slice for each in turn, a bounded number waiting."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from txcls.errors import TxclsError


class BusyError(TxclsError):
    """Too many computations are waiting already."""


class Turns:
    """Lets one computation run at a time, in slices (round robin): a long one delays a short one by a slice only.

    Args:
        most_waiting: computations that may wait beside the one that runs.
        slice_seconds: how long one runs before the next gets its turn, if any waits.
    """

    def __init__(self, *, most_waiting: int, slice_seconds: float = 0.25) -> None:
        self._most_waiting = most_waiting
        self._slice = slice_seconds
        self._changed = threading.Condition()
        self._queue: list[object] = []  # the first one runs

    @property
    def waiting(self) -> int:
        """How many computations wait for their turn."""
        with self._changed:
            return max(0, len(self._queue) - 1)

    @contextmanager
    def turn(self, wait: Callable[[int], None]) -> Iterator[Callable[[], None]]:
        """Run the block in slices. What it is given must be called between pieces of its work, and hands the turn over.

        Args:
            wait: called with the number of computations ahead, several times a second while one waits, and with 0 when
                the block runs; whatever it raises gives the computation up.

        Raises:
            BusyError: too many are waiting.
        """
        ticket = object()
        with self._changed:
            if len(self._queue) > self._most_waiting:
                n = len(self._queue) - 1
                raise BusyError(f"This server is busy: {n} computations are waiting already. Try again in a moment.")
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
        """How many are ahead, after a short wait for it to change where there is any."""
        with self._changed:
            if self._queue[0] is not ticket:
                self._changed.wait(0.2)
            return self._queue.index(ticket)

    def _hand_over(self, ticket: object) -> bool:
        """Go to the end of the queue; False where nobody else is in it."""
        with self._changed:
            if len(self._queue) == 1:
                return False
            self._queue.remove(ticket)
            self._queue.append(ticket)
            self._changed.notify_all()
            return True
