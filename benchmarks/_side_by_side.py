"""What the benchmarks share: the machine's name, rounds that alternate, and a table of ratios."""

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from txcls.runtime.device import processor_name


def machine() -> str:
    """The line that goes above every table."""
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    return f"{processor_name()}, {threads} threads, torch {torch.__version__}, load {load:.1f}"


def seconds(work: Callable[[], object], *, clock: Callable[[], float] = time.perf_counter) -> float:
    """How long this takes once, by the wall clock or another."""
    started = clock()
    work()
    return clock() - started


def alternate(measures: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, list[float]]:
    """What each of these measured in each round, one after the other, so that a busy machine slows all alike.

    A round is run first that does not count.
    """
    found: dict[str, list[float]] = {name: [] for name in measures}
    for count in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if count:
                found[name].append(value)
    return found


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))
