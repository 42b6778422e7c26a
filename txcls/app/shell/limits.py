"""The process's memory: limits that a host sets with environment variables, and the return of freed memory."""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from txcls.errors import ConfigError, TxclsError

# From glibc's malloc.h; see mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_BLOCK = 1 << 18


class BusyError(TxclsError):
    """The queue of this server is full."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The app's limits.

    Attributes:
        cache_megabytes: memory for everything that sessions share, including loaded checkpoints. The default suits a
            host with 1 GB.
        cache_seconds: time after its last use at which an entry of the cache expires.
        characters: maximum number of characters of a text that are read.
        waiting: maximum number of computations waiting in the queue; further ones are refused.
    """

    cache_megabytes: int = 160
    cache_seconds: int = 3600
    characters: int = 20_000
    waiting: int = 40


VARIABLES = {
    "cache_megabytes": "TXCLS_CACHE_MB",
    "cache_seconds": "TXCLS_CACHE_SECONDS",
    "characters": "TXCLS_MAX_CHARACTERS",
    "waiting": "TXCLS_MAX_WAITING",
}
"""The environment variable of each limit."""


@cache
def limits() -> Limits:
    """The limits of this process.

    Raises:
        ConfigError: a variable is not a whole number of at least 1.
    """
    return Limits(**{name: _read(variable) for name, variable in VARIABLES.items() if os.environ.get(variable)})


def _read(variable: str) -> int:
    raw = os.environ[variable]
    if raw.isascii() and raw.isdigit() and len(raw) <= 9 and int(raw):
        return int(raw)
    raise ConfigError(f"{variable}={raw[:40]!r}: expected a whole number from 1 to 999999999; correct it, or unset it")


@cache
def return_freed_memory() -> bool:
    """Make glibc return blocks of 256 kB and more as soon as they are freed; False if that is not possible.

    Each run of a page is a thread. By default, glibc keeps freed memory in one arena per thread, and raises the size
    above which blocks are returned to up to 32 MB; after a few hundred long texts, hundreds of megabytes are unused.
    Here, all threads share two arenas.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    settings = ((_M_ARENA_MAX, 2), (_M_MMAP_THRESHOLD, _BLOCK), (_M_TRIM_THRESHOLD, _BLOCK))
    accepted = [mallopt(option, value) for option, value in settings]
    return all(accepted)


_idle_callbacks: list[Callable[[], None]] = []


def on_idle(callback: Callable[[], None]) -> None:
    """Register a function to call whenever nobody has been connected for a while."""
    _idle_callbacks.append(callback)


def free_when_idle() -> None:
    """Call the registered functions, which empty caches, and return freed memory to the system."""
    for callback in _idle_callbacks:
        callback()
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
