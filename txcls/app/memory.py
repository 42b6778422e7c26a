"""Have the C library give freed memory back to the operating system, where it is glibc."""

import ctypes
import sys
from functools import cache

# From glibc's malloc.h; see mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_BLOCK = 1 << 18


@cache
def give_back_freed_memory() -> bool:
    """Once per process: blocks of 256 kB and more go back as soon as they are freed, and threads share two arenas.

    Each visitor's run is a thread. By default glibc would keep what they free in an arena each, and would raise the
    size from which blocks go back to 32 MB: a few hundred long texts then cost as many megabytes that nobody uses.

    Returns:
        Whether there was a glibc to tell.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    told = [
        mallopt(option, value)
        for option, value in ((_M_ARENA_MAX, 2), (_M_MMAP_THRESHOLD, _BLOCK), (_M_TRIM_THRESHOLD, _BLOCK))
    ]
    return all(told)
