"""Helpers for the benchmarks: description of the machine, times of alternating rounds, memory of a process."""

import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import torch

from txcls.runtime.device import processor_name

HOSTED = {"MALLOC_ARENA_MAX": "2"}
"""Environment variables that the Dockerfile and deploy/txcls.env set for the app."""


def machine() -> str:
    """One line that describes the machine, to print above every table."""
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    return f"{processor_name()}, {threads} threads, torch {torch.__version__}, load {load:.1f}"


def seconds(work: Callable[[], object]) -> float:
    """The wall-clock time of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def alternate(measures: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, list[float]]:
    """The results of each measure, run in alternation so that other load on the machine slows all of them equally.

    The first round is a warm-up and is not counted.
    """
    values: dict[str, list[float]] = {name: [] for name in measures}
    for count in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if count:
                values[name].append(value)
    return values


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the per-round ratios."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """The value at the fraction `share` (0 to 1) of the sorted values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def resident_mb(pid: int | str) -> float | None:
    """Resident memory of a process in MB, from /proc (Linux); None if the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), None)


class Memory:
    """Resident memory of a process in MB, sampled five times a second while the block runs.

    Attributes:
        peak: the maximum so far.
    """

    def __init__(self, pid: int) -> None:
        self.pid, self.peak = pid, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def now(self) -> float:
        """The current memory; 0 if the process has ended."""
        current = resident_mb(self.pid) or 0.0
        self.peak = max(self.peak, current)
        return current

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self.now()

    def __enter__(self) -> Self:
        self.now()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
