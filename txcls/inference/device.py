"""Where to compute: the device, the precision, and threads for batches.

Torch splits each operation among the processors, which wait for each other at the end of the operation: with two
processors, a small model is only a third faster. Two parallel batches, with one processor each, are nearly twice as
fast (`map_in_threads`).
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

from txcls.config import ModelConfig
from txcls.errors import TrainingError

Item = TypeVar("Item")
Result = TypeVar("Result")

MIN_ITEMS = 2
"""Threads are used only if each gets at least this many items; otherwise they would mostly wait for the last item."""


def choose_device(name: str | None) -> torch.device:
    """The device with this name ("cpu", "cuda", …), checked by allocating a tensor on it; CUDA is preferred if the name
    is None.

    Raises:
        TrainingError: the device cannot be used here.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise TrainingError(f"device {name!r} cannot be used here ({reason}); try --device cpu") from None
    return device


def autocast_dtype(precision: str, *, device: torch.device, model: ModelConfig) -> torch.dtype | None:
    """The dtype for autocast, or None for float32 throughout.

    "auto" is bfloat16 where it is faster: on CUDA devices that support it, and on processors with bfloat16 instructions
    if d_model is at least 128 (the overhead of smaller models dominates, and casting adds to it).
    """
    if precision == "float32":
        return None
    if precision == "bfloat16":
        return torch.bfloat16
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else None
    has_bfloat16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if device.type == "cpu" and has_bfloat16 and model.d_model >= 128 else None


def map_in_threads(compute: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results of `compute` for all items in order, computed in parallel if there are enough items.

    If an item raises an exception, it is raised here, and items that have not started are cancelled.
    """
    n = torch.get_num_threads()
    if n == 1 or len(items) < MIN_ITEMS * n:
        yield from map(compute, items)
        return
    futures = [_pool(n).submit(compute, item) for item in items]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


@cache
def _pool(n: int) -> ThreadPoolExecutor:
    """A pool of `n` threads, in each of which torch uses one processor; created once.

    torch gives each thread its own count, which on first read takes the value last set in the process. So each worker
    reads its count, then sets it to one; afterwards, the calling thread restores the previous count.
    """
    all_started = threading.Barrier(n + 1)

    def use_one_processor() -> None:
        torch.get_num_threads()
        torch.set_num_threads(1)

    pool = ThreadPoolExecutor(n, thread_name_prefix="txcls", initializer=use_one_processor)
    futures = [pool.submit(all_started.wait) for _ in range(n)]  # forces the pool to start all n threads
    all_started.wait()
    torch.set_num_threads(n)
    for future in futures:
        future.result()
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
