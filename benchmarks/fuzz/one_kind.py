"""Inputs of one kind, as many as asked for. A module of its own, since spawned processes do not import `__main__`."""

import tempfile
import time
from pathlib import Path

from tests.fuzz.judge import Judge
from tests.fuzz.properties import PROPERTIES, Bench, search


def tried(name: str, examples: int) -> tuple[str, float, float, float, str]:
    """The kind, seconds it took, processor seconds and MB of the dearest example, and what went wrong, if anything."""
    [of] = [one for one in PROPERTIES if one.name == name]
    started = time.perf_counter()
    with Judge() as judge, tempfile.TemporaryDirectory() as folder:
        bench = Bench(judge, Path(folder))
        bench.prepare()
        problem = ""
        try:
            search(bench, of, examples=examples, derandomize=False)
        except AssertionError as error:
            problem = str(error)
        return name, time.perf_counter() - started, judge.most_seconds, judge.most_mb, problem
