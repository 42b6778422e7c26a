"""Helpers for the benchmarks: the machine's description, times of alternating rounds, memory of a process."""

import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import torch

from txcls.data.types import LabelledTexts
from txcls.evaluation.report import sample_indices
from txcls.training.loop import processor_name

HOSTED = {"MALLOC_ARENA_MAX": "2"}
"""Environment variables that the Dockerfile and deploy/txcls.env set for the app."""


def machine() -> str:
    """A one-line description of the machine, to print above every table."""
    threads, load = torch.get_num_threads(), os.getloadavg()[0]
    return f"{processor_name()}, {threads} threads, torch {torch.__version__}, load {load:.1f}"


def sample_rows(rows: LabelledTexts, *, limit: int) -> LabelledTexts:
    """The rows, or a random sample of `limit` of them, in their original order."""
    return rows.subset(sample_indices(len(rows), limit=limit))


def seconds(work: Callable[[], object]) -> float:
    """The wall-clock time of a call, in seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def alternate(measures: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, list[float]]:
    """The results of each measure, run in turn so that other load on the machine slows all of them equally.

    The first round is a warm-up and is not counted.
    """
    values: dict[str, list[float]] = {name: [] for name in measures}
    for n in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if n:
                values[name].append(value)
    return values


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def quantile(values: Sequence[float], q: float) -> float:
    """The value at the position `q` (0 to 1) in the sorted values."""
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


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
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def now(self) -> float:
        """The current memory; 0 if the process has ended."""
        current = resident_mb(self.pid) or 0.0
        self.peak = max(self.peak, current)
        return current

    def _watch(self) -> None:
        while not self._is_over.wait(0.2):
            self.now()

    def __enter__(self) -> Self:
        self.now()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
