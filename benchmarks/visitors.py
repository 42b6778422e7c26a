"""Waiting times of many visitors: thirty who open the same page at the same time, and forty who type at human speed.

    python -m benchmarks.visitors [--visitors 30]
    python -m benchmarks.visitors --minutes 30 [--visitors 40] [--leavers 200]

Visitors speak the app's protocol without browsers, which would use more CPU time than the app. The times from a
request to the first chart and to the complete page are measured. Checkpoints are loaded beforehand.

With `--minutes`, one visitor first types alone on every page. Then each visitor opens random pages with the shipped
checkpoints, types a sentence from the examples, two to four words at a time with pauses, reads, and continues; now and
then, a visitor leaves and comes back. Meanwhile, other visitors open a page and leave before it is drawn. Memory is the
memory of the app's process (Linux).
"""

import argparse
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks._measure import HOSTED, Memory, machine, quantile
from tests.browser.server import serve, serving
from tests.browser.visitors import PAGES, Visit, Visitor, visit_together
from txcls.data.datasets import EXAMPLES

GOAL_SECONDS = 10.0
GOAL_BARS, GOAL_PAGE, GOAL_MB, GOAL_GROWTH_MB = 2.0, 5.0, 900.0, 30.0
CHECKPOINTS = ("ag_news", "ag_news", "huffpost", "clinc150", "imdb")
"""Checkpoints that visitors choose at random; the default one is listed twice, so that it is chosen more often."""


@dataclass
class Log:
    """The times and problems of all visitors; shared by their threads."""

    bars: list[float] = field(default_factory=list)
    pages: dict[str, list[float]] = field(default_factory=lambda: {page: [] for page in PAGES})
    problems: list[str] = field(default_factory=list)
    left: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def rows(self) -> list[list[float]]:
        """Seconds to the bars, to each whole page in the order of PAGES, and to all pages."""
        return [self.bars, *self.pages.values(), [seconds for page in self.pages.values() for seconds in page]]

    def note(self, page: str, visit: Visit) -> None:
        """Record that a page was drawn."""
        with self._lock:
            self.pages[page].append(visit.seconds)
            if page == "" and visit.answered is not None:
                self.bars.append(visit.answered)
            self.problems += visit.exceptions
            if not visit.finished:
                self.problems.append(f"{page or 'classify'}: not drawn completely")

    def note_problem(self, problem: str) -> None:
        """Record a problem."""
        with self._lock:
            self.problems.append(problem)

    def note_leaver(self) -> None:
        """Count a visitor who left before the page was drawn."""
        with self._lock:
            self.left += 1


def visit_at_human_speed(address: str, seed: int, end: float, log: Log) -> None:
    """Until `end`, simulate a visitor who opens pages, types, reads, and sometimes reconnects."""
    chance = random.Random(seed)
    time.sleep(chance.uniform(0, 10))
    while time.monotonic() < end:
        try:
            with Visitor(address) as visitor:
                for _ in range(chance.randint(3, 8)):
                    if time.monotonic() > end:
                        return
                    _one_page(visitor, chance, end, log)
        except (OSError, TimeoutError) as error:
            log.note_problem(f"{type(error).__name__}: {error}")
        _pause(chance.uniform(2, 10), end)


def _one_page(visitor: Visitor, chance: random.Random, end: float, log: Log) -> None:
    page = chance.choice(("", "", *PAGES))  # Classify, the first page, more often than the others
    words = f"{chance.choice(EXAMPLES).text} {chance.choice(EXAMPLES).text}".split()[: chance.randint(6, 16)]
    checkpoint = chance.choice(CHECKPOINTS)
    log.note(page, visitor.open(page, checkpoint=checkpoint, text=chance.choice(EXAMPLES).text))
    _pause(chance.uniform(3, 12), end)
    typed = 0
    while visitor.has_text_box and typed < len(words) and time.monotonic() < end:
        more = chance.randint(2, 4)
        _pause(more * chance.uniform(0.8, 1.8), end)  # about 45 words a minute
        typed += more
        log.note(page, visitor.type(" ".join(words[:typed])))
    _pause(chance.uniform(10, 40), end)


def _pause(seconds: float, end: float) -> None:
    time.sleep(max(0.0, min(seconds, end - time.monotonic())))


def open_and_leave(address: str, n: int, seconds: float, end: float, log: Log) -> None:
    """Open `n` sessions, evenly spread over `seconds`, that request a page and leave before it is drawn."""
    chance = random.Random(-1)
    for number in range(n):
        _pause(seconds / n, end)
        try:
            with Visitor(address) as visitor:
                visitor.ask(chance.choice(PAGES), text=f"{chance.choice(EXAMPLES).text} Leaver {number}.")
                time.sleep(chance.uniform(0, 0.5))
        except (OSError, TimeoutError) as error:
            log.note_problem(f"{type(error).__name__}: {error}")
        log.note_leaver()


def visit_alone(address: str, log: Log) -> None:
    """Open every page with every checkpoint, and type on it, without anybody else."""
    with Visitor(address) as visitor:
        for page in PAGES:
            for number, checkpoint in enumerate(dict.fromkeys(CHECKPOINTS)):
                log.note(page, visitor.open(page, checkpoint=checkpoint, text=EXAMPLES[number].text))
                for n_words in (3, 6, 9, 12) if visitor.has_text_box else ():
                    log.note(page, visitor.type(" ".join(EXAMPLES[number + 4].text.split()[:n_words])))


def many_at_once(visitors: int) -> int:
    """All visitors open the same page at the same time, one page after another."""
    print(f"\n{f'{visitors} visitors at once, seconds to the whole page':<50}{'median':>8}{'worst':>8}{'goal':>8}")
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "server.log") as address:
        for page in PAGES:
            visit_together(address, page, ["the first visitor loads the checkpoint"])
            texts = [f"{EXAMPLES[n % len(EXAMPLES)].text} Visitor {n}, {page}." for n in range(visitors)]
            visits = visit_together(address, page, texts)
            if not all(visit.finished for visit in visits):
                print(f"{page or 'classify'}: not every page was drawn completely")
                return 1
            seconds = [visit.seconds for visit in visits]
            print(f"{page or 'classify':<50}{statistics.median(seconds):>8.2f}{max(seconds):>8.2f}{GOAL_SECONDS:>8g}")
    return 0


def long_session(visitors: int, minutes: float, leavers: int) -> int:
    """Simulate visitors at human speed and others who leave; print the table and return 1 if a goal is missed."""
    alone, log, memory_mb = Log(), Log(), [0.0]
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "server.log", environment=HOSTED) as app:
        with Visitor(app.address) as first:
            for checkpoint in dict.fromkeys(CHECKPOINTS):
                for page in PAGES:
                    first.open(page, checkpoint=checkpoint, text="the first visitor loads what the pages need")
        visit_alone(app.address, alone)
        with Memory(app.pid) as memory:
            memory_mb = [memory.now()]
            end = time.monotonic() + 60 * minutes
            with ThreadPoolExecutor(visitors + 1) as crowd:
                for seed in range(visitors):
                    crowd.submit(visit_at_human_speed, app.address, seed, end, log)
                crowd.submit(open_and_leave, app.address, leavers, 54 * minutes, end, log)
                while time.monotonic() < end:
                    time.sleep(min(60 * minutes / 40, 30.0))
                    memory_mb.append(memory.now())
        tracebacks = (Path(folder) / "server.log").read_text(encoding="utf-8", errors="replace").count("Traceback")
    return _report(visitors, minutes, alone, log, memory_mb, memory.peak, tracebacks)


def _report(
    visitors: int, minutes: float, alone: Log, log: Log, memory_mb: Sequence[float], peak: float, tracebacks: int
) -> int:
    print(f"\n{visitors} visitors at human speed for {minutes:g} minutes, {log.left} others opened a page and left")
    print(f"\n{'':<44}{'one visitor':>24}{f'{visitors} visitors':>32}")
    heads = ("requests", "median", "95 %") * 2
    print(f"{'seconds from the request to':<44}{''.join(f'{head:>8}' for head in heads)}{'worst':>8}{'goal':>8}")
    names = ["the bars (Classify)", *(f"the whole page: {page or 'classify'}" for page in PAGES), "the whole page: all"]
    missed = 0
    for name, of_one, of_all in zip(names, alone.rows, log.rows, strict=True):
        goal = GOAL_BARS if name == names[0] else GOAL_PAGE
        cells = [
            f"{len(some):>8,}{quantile(some, 0.5):>8.2f}{quantile(some, 0.95):>8.2f}"
            for some in (of_one, of_all)
            if some
        ]
        if len(cells) == 2:
            missed += quantile(of_all, 0.95) > goal
            print(f"{name:<44}{''.join(cells)}{max(of_all):>8.2f}{goal:>8g}")
    problems = [*alone.problems, *log.problems]
    second_half = memory_mb[len(memory_mb) // 2 :]
    n = max(1, len(second_half) // 2)
    growth = statistics.mean(second_half[-n:]) - statistics.mean(second_half[:n])
    print(f"\n{'memory of the app, MB':<44}{'start':>8}{'half':>8}{'end':>8}{'peak':>8}{'goal':>8}")
    print(f"{'resident':<44}{memory_mb[0]:>8.0f}{second_half[0]:>8.0f}{memory_mb[-1]:>8.0f}{peak:>8.0f}{GOAL_MB:>8g}")
    print(f"{'growth over the second half':<44}{'':>24}{growth:>+8.0f}{GOAL_GROWTH_MB:>8g}")
    print(f"\nexceptions and unfinished pages: {len(problems)}; tracebacks in the server's log: {tracebacks}")
    for problem in list(dict.fromkeys(problems))[:5]:
        print(f"  {problem[:160]}")
    return int(bool(missed or problems or tracebacks or peak > GOAL_MB or growth > GOAL_GROWTH_MB))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--visitors", type=int, help="number of simultaneous visitors [default: 30, or 40 with --minutes]"
    )
    parser.add_argument("--minutes", type=float, help="duration of a simulation at human speed, on random pages")
    parser.add_argument("--leavers", type=int, default=200, help="sessions that leave before a page is drawn")
    options = parser.parse_args()
    print(machine())
    if options.minutes is None:
        return many_at_once(options.visitors or 30)
    return long_session(options.visitors or 40, options.minutes, options.leavers)


if __name__ == "__main__":
    sys.exit(main())
