"""Pause points, at which a caller can delay or cancel a long computation.

Long computations call `may_pause` at least every quarter of a second. In the app, other visitors' work can then go
first, and the work of visitors who have left is cancelled.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_on_pause: ContextVar[Callable[[], None] | None] = ContextVar("txcls_on_pause", default=None)


def may_pause() -> None:
    """Call the function that `pausing` set in this thread; an exception from it ends the computation."""
    if (on_pause := _on_pause.get()) is not None:
        on_pause()


@contextmanager
def pausing(on_pause: Callable[[], None]) -> Iterator[None]:
    """Inside the block, every `may_pause` in this thread calls `on_pause`."""
    token = _on_pause.set(on_pause)
    try:
        yield
    finally:
        _on_pause.reset(token)
