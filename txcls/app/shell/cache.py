"""One cache for all sessions, bounded in bytes, that evicts the least recently used entries.

Streamlit's own caches are bounded in number of entries or in time, not in bytes: a hundred attention patterns of long
texts would take more memory than a host with 1 GB has.
"""

import pickle
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from cachetools import TTLCache

from txcls.app.shell.compute_queue import end_if_left, my_turn
from txcls.app.shell.limits import limits, on_idle

Value = TypeVar("Value")
Args = ParamSpec("Args")

PYTHON_OVERHEAD = 3
"""Memory of small Python objects, as a multiple of their pickled size; arrays are counted exactly."""


class Cache:
    """Values by key, at most `budget` bytes in total; each expires `seconds` after its last use.

    Thread-safe. A value that several threads request at once is computed once. Values are shared: do not modify them.
    """

    def __init__(self, budget: int, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: TTLCache[Hashable, tuple[Any, int]] = TTLCache(
            budget, seconds, timer=clock, getsizeof=lambda entry: entry[1]
        )
        self._lock = threading.RLock()
        self._in_progress: dict[Hashable, threading.Event] = {}

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        with self._lock:
            self._entries.expire()
            return int(self._entries.currsize)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._entries

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()

    def get(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        *,
        size: Callable[[Value], int] | None = None,
        wait: Callable[[], None] = lambda: None,
    ) -> Value:
        """The value of a key, computed if it is missing; a value larger than the whole budget is not cached.

        Args:
            key: identifies the value.
            compute: computes the value. An exception propagates, and the next request tries again.
            size: returns the size of the value in bytes; `size_of` if None.
            wait: called ten times a second while another thread computes the value; an exception ends the wait.
        """
        while True:
            with self._lock:
                if key in self._entries:
                    entry = self._entries[key] = self._entries[key]  # restarts its time to live
                    return cast("Value", entry[0])
                done = self._in_progress.get(key)
                if done is None:
                    own_done = self._in_progress[key] = threading.Event()
                    break
            while not done.wait(0.1):
                wait()
        try:
            value = compute()
            n_bytes = (size or size_of)(value)
            with self._lock:
                if n_bytes <= self._entries.maxsize:
                    self._entries[key] = (value, n_bytes)
            return value
        finally:
            with self._lock:
                del self._in_progress[key]
            own_done.set()


def size_of(value: object) -> int:
    """Approximate bytes of a value in memory: exact for arrays and bytes, estimated from the pickle for the rest."""
    if isinstance(value, bytes):
        return len(value)
    arrays = 0

    def count_array(buffer: pickle.PickleBuffer) -> None:
        nonlocal arrays
        with buffer.raw() as raw:
            arrays += raw.nbytes

    pickled = pickle.dumps(value, protocol=5, buffer_callback=count_array)
    return arrays + PYTHON_OVERHEAD * len(pickled)


@dataclass(frozen=True, slots=True)
class Source:
    """A checkpoint's name, a fingerprint of its files, and its folder: part of every cache key."""

    name: str
    state: str
    folder: Path


@cache
def shared_cache() -> Cache:
    """The cache of this process."""
    entries = Cache(1_000_000 * limits().cache_megabytes, seconds=limits().cache_seconds)
    on_idle(entries.clear)
    return entries


def cached(
    *, heavy: bool = False, size: Callable[[Any], int] | None = None
) -> Callable[[Callable[Args, Value]], Callable[Args, Value]]:
    """Cache a function's results for all sessions, keyed by its arguments; a heavy function waits for its turn.

    Args:
        heavy: only a few such computations run at once (`compute_queue`); they must not call one another.
        size: returns the size of a result in bytes; `size_of` if None.
    """

    def decorate(function: Callable[Args, Value]) -> Callable[Args, Value]:
        @wraps(function)
        def cached_function(*args: Args.args, **kwargs: Args.kwargs) -> Value:
            def compute() -> Value:
                if not heavy:
                    return function(*args, **kwargs)
                with my_turn():
                    return function(*args, **kwargs)

            key = _key(function, args, kwargs)
            value: Value = shared_cache().get(key, compute, size=size, wait=end_if_left)
            return value

        return cached_function

    return decorate


def is_cached(function: Callable[..., Any], *args: Any) -> bool:
    """Whether the result of a cached function for these arguments is in the cache."""
    return _key(function, args, {}) in shared_cache()


def _key(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
    return f"{function.__module__}.{function.__qualname__}", tuple(args), tuple(sorted(kwargs.items()))
