"""Cancel or stop a long computation: pause points, and Ctrl-C and SIGTERM as a flag.

Long computations call `may_pause` at least every quarter of a second. This lets the app cancel the work of visitors
who have left.
"""

import signal
import threading
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


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a flag; a second one takes effect at once.

    Outside the main thread, where signal handlers cannot be installed, the flag is never set.
    """
    stop_requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop_requested.is_set
        return
    previous_handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: object) -> None:
        stop_requested.set()
        signal.signal(number, previous_handlers[signal.Signals(number)])

    try:
        for number in previous_handlers:
            signal.signal(number, handle)
        yield stop_requested.is_set
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)
