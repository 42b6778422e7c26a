"""One cache for all sessions, bounded in bytes, that evicts the least recently used entries."""

import pickle
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from cachetools import TTLCache

Value = TypeVar("Value")

PYTHON_OVERHEAD = 3
"""Memory of small Python objects, as a multiple of their pickled size; arrays are counted exactly."""


class Cache:
    """Values by key, at most `budget` bytes in total, each kept for `seconds` after its last use.

    Safe for threads. A value that several threads request at once is computed once. Values are shared and must not be
    changed.
    """

    def __init__(self, budget: int, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[Hashable, tuple[Any, int]] = TTLCache(
            budget, seconds, timer=clock, getsizeof=lambda value: value[1]
        )
        self._lock = threading.RLock()
        self._making: dict[Hashable, threading.Event] = {}

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        with self._lock:
            self._kept.expire()
            return int(self._kept.currsize)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._kept

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._kept.clear()

    def drop(self, unwanted: Callable[[Hashable], bool]) -> None:
        """Remove the entries with unwanted keys."""
        with self._lock:
            for key in [key for key in self._kept if unwanted(key)]:
                self._kept.pop(key, None)

    def get(
        self,
        key: Hashable,
        make: Callable[[], Value],
        *,
        size: Callable[[Value], int] | None = None,
        wait: Callable[[], None] = lambda: None,
    ) -> Value:
        """The value of a key, computed if it is missing; a value larger than the whole budget is not kept.

        Args:
            key: what the value depends on.
            make: computes the value. An exception propagates, and the next request computes it again.
            size: returns the value's bytes; `size_of` if None.
            wait: called ten times a second while another thread computes the value; an exception ends the wait.
        """
        while True:
            with self._lock:
                if key in self._kept:
                    entry = self._kept[key] = self._kept[key]  # restarts its time to live
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
    """A file that only counts the bytes written to it."""

    def __init__(self) -> None:
        self.n = 0

    def write(self, data: "bytes | memoryview") -> int:
        self.n += len(data)
        return len(data)


def size_of(value: object) -> int:
    """Approximate bytes of memory of a value: exact for arrays, estimated from the pickle for other objects."""
    counter, arrays = _Counter(), 0

    def out_of_band(buffer: pickle.PickleBuffer) -> None:
        nonlocal arrays
        with buffer.raw() as raw:
            arrays += raw.nbytes

    pickle.Pickler(counter, protocol=5, buffer_callback=out_of_band).dump(value)
    return arrays + PYTHON_OVERHEAD * counter.n
