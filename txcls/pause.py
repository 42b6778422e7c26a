"""Points at which a long computation may be held up, or given up, by whoever asked for it.

Computations call `may_pause` between pieces of at most about a quarter of a second. Whoever starts one decides what
happens there: the app lets other visitors go first, and ends the work when its visitor has left. Without that, the
call does nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_between: ContextVar[Callable[[], None] | None] = ContextVar("txcls_between_pieces", default=None)


def may_pause() -> None:
    """Call what `pausing` named, in this thread; whatever it raises ends the computation."""
    if (between := _between.get()) is not None:
        between()


@contextmanager
def pausing(between: Callable[[], None]) -> Iterator[None]:
    """Have every `may_pause` inside the block, in this thread, call `between`."""
    token = _between.set(between)
    try:
        yield
    finally:
        _between.reset(token)
