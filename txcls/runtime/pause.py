"""Pause points, at which a caller can delay or cancel a long computation.

Long computations call `may_pause` at least every quarter of a second. At these points the app lets other visitors' work
go first, and cancels the work of visitors who have left.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_between: ContextVar[Callable[[], None] | None] = ContextVar("txcls_between_pieces", default=None)


def may_pause() -> None:
    """Call the function that `pausing` set in this thread; an exception from it ends the computation."""
    if (between := _between.get()) is not None:
        between()


@contextmanager
def pausing(between: Callable[[], None]) -> Iterator[None]:
    """Inside the block, every `may_pause` in this thread calls `between`."""
    token = _between.set(between)
    try:
        yield
    finally:
        _between.reset(token)
