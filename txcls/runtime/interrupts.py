"""Ctrl-C and SIGTERM as a flag that long-running work checks between steps."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
