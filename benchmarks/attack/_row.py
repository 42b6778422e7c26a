"""What attacks share: their register, the row each puts into the table, and the memory of a process while it is hit."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks.scoring_memory import resident_mb


@dataclass(frozen=True)
class Row:
    """A line of the table: what was tried, what it may come to, what it came to."""

    tried: str
    limit: str
    measured: str
    ok: bool


@dataclass(frozen=True)
class Scene:
    """Where an attack takes place.

    Attributes:
        folder: an empty folder of its own.
        long: whether the long form was asked for.
    """

    folder: Path
    long: bool


HOSTED = {"MALLOC_ARENA_MAX": "2"}
"""What the Dockerfile and deploy/txcls.env set for the app, where memory is measured."""

Attack = Callable[[Scene], Iterable[Row]]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Enter a function under its name, with `-` for `_`."""
    ATTACKS[function.__name__.replace("_", "-")] = function
    return function


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share of them do not exceed; infinite where there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


@dataclass
class Memory:
    """Resident memory of a process, in MB, looked at five times a second while the block runs."""

    pid: int
    peak: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def now(self) -> float:
        """Its memory at this moment; 0 where it has ended."""
        found = resident_mb(self.pid) or 0.0
        self.peak = max(self.peak, found)
        return found

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self.now()

    def __enter__(self) -> Self:
        self.now()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self.now()
