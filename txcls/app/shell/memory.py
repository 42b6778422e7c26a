"""Make glibc return freed memory to the operating system."""

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache

# From glibc's malloc.h; see mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_BLOCK = 1 << 18


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
