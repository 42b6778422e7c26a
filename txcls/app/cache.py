"""One cache for all sessions, bounded in bytes: what was used least recently goes first."""

import pickle
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from cachetools import TTLCache

Value = TypeVar("Value")

PYTHON_OVERHEAD = 3
"""Small Python objects take about so many times the bytes of their pickle; arrays are counted as they are."""


class Cache:
    """Values by key, together at most `budget` bytes, each for `seconds` after it was last asked for.

    Threads share it. A value that is asked for while another thread makes it is made once. Values are shared: nothing
    may change them.
    """

    def __init__(self, budget: int, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[Hashable, tuple[Any, int]] = TTLCache(
            budget, seconds, timer=clock, getsizeof=lambda value: value[1]
        )
        self._lock = threading.RLock()
        self._making: dict[Hashable, threading.Event] = {}

    @property
    def size(self) -> int:
        """Bytes of everything that is kept."""
        with self._lock:
            self._kept.expire()
            return int(self._kept.currsize)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._kept

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def get(
        self,
        key: Hashable,
        make: Callable[[], Value],
        *,
        size: Callable[[Value], int] | None = None,
        wait: Callable[[], None] = lambda: None,
    ) -> Value:
        """The value of a key, made where it is not there; one larger than the whole budget is not kept.

        Args:
            key: what the value depends on.
            make: makes it; what it raises is raised here, and the next one to ask makes it again.
            size: bytes of the value, `size_of` if None.
            wait: called ten times a second while another thread makes it; whatever it raises ends the wait.
        """
        while True:
            with self._lock:
                if key in self._kept:
                    entry = self._kept[key] = self._kept[key]  # its time begins anew
                    return cast("Value", entry[0])
                made = self._making.get(key)
                if made is None:
                    mine = self._making[key] = threading.Event()
                    break
            while not made.wait(0.1):
                wait()
        try:
            value = make()
            n_bytes = (size or size_of)(value)
            with self._lock:
                if n_bytes <= self._kept.maxsize:
                    self._kept[key] = (value, n_bytes)
            return value
        finally:
            with self._lock:
                del self._making[key]
            mine.set()


class _Counter:
    """A file that only counts what is written."""

    def __init__(self) -> None:
        self.n = 0

    def write(self, data: "bytes | memoryview") -> int:
        self.n += len(data)
        return len(data)


def size_of(value: object) -> int:
    """About how many bytes of memory a value takes: arrays exactly, other objects by their pickle."""
    counter, arrays = _Counter(), 0

    def out_of_band(buffer: pickle.PickleBuffer) -> None:
        nonlocal arrays
        with buffer.raw() as raw:
            arrays += raw.nbytes

    pickle.Pickler(counter, protocol=5, buffer_callback=out_of_band).dump(value)
    return arrays + PYTHON_OVERHEAD * counter.n
