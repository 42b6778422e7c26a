"""Try inputs by the thousand: texts, tables, archives, checkpoint files, addresses. Each is answered, or refused.

    python -m benchmarks.fuzz [KIND …] [--examples 10000]

Each is tried in a process of its own, by every core one; at most 2 s of processor time and 500 MB. What goes wrong is
made small and printed; exit code 1 then.
"""

import argparse
import multiprocessing
import os
import sys
from functools import partial

from benchmarks._side_by_side import machine
from benchmarks.fuzz.one_kind import tried
from tests.fuzz.properties import PROPERTIES

NAMES = tuple(one.name for one in PROPERTIES)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"any of {', '.join(NAMES)}; all unless given")
    parser.add_argument("--examples", type=int, default=1000, help="how many of each kind")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(NAMES):
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    print(machine())
    kinds = options.kinds or NAMES
    problems = []
    print(f"\n{f'{options.examples:,} inputs of each kind':<30}{'seconds':>9}{'dearest s':>11}{'dearest MB':>12}")
    # Fresh processes, not forks: torch is loaded here.
    with multiprocessing.get_context("spawn").Pool(min(len(kinds), os.cpu_count() or 1), maxtasksperchild=1) as pool:
        for name, seconds, most_seconds, most_mb, problem in pool.imap(
            partial(tried, examples=options.examples), kinds, chunksize=1
        ):
            cost = f"{most_seconds:>11.2f}{most_mb:>12.0f}" if most_mb else f"{'':>23}"
            print(f"{name:<30}{seconds:>9.0f}{cost}  {'FAILED' if problem else 'ok'}")
            problems += [problem] if problem else []
    for problem in problems:
        print(f"\n{problem[:3000]}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
