"""Attack the app and the command line on loopback, and print a table: what was tried, the limit, what came of it.

    python -m benchmarks.attack [NAME …] [--long] [--list]

Without names all attacks run, in under 15 minutes on two idle cores. Exit code 1 if any failed. Some of them need Linux
(memory is read from /proc), one a Chromium.
"""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from benchmarks._side_by_side import machine
from benchmarks.attack import commands, folders, served, training  # noqa: F401  # each enters its attacks
from benchmarks.attack._row import ATTACKS, Row, Scene


def run(name: str, *, long: bool) -> list[Row]:
    """The rows of one attack; one that breaks off has failed."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="txcls-attack-", ignore_cleanup_errors=True) as folder:
        try:
            rows.extend(ATTACKS[name](Scene(Path(folder), long)))
        except Exception as error:  # noqa: BLE001  # the table goes on
            traceback.print_exc()
            rows.append(Row("the whole attack", "runs to its end", f"{type(error).__name__}: {error}"[:120], False))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which attacks to run; all unless given")
    parser.add_argument("--long", action="store_true", help="10,000 different texts on every page instead of 20")
    parser.add_argument("--list", action="store_true", help="list the attacks and what they try")
    options = parser.parse_args()
    if options.list:
        for name, function in ATTACKS.items():
            print(f"{name:<22}{(function.__doc__ or '').splitlines()[0]}")
        return 0
    if unknown := [name for name in options.names if name not in ATTACKS]:
        print(f"no attack {', '.join(unknown)}; there are {', '.join(ATTACKS)}", file=sys.stderr)
        return 2
    print(machine())
    started, table = time.perf_counter(), []
    for name in options.names or ATTACKS:
        began = time.perf_counter()
        rows = run(name, long=options.long)
        table += [(name, row) for row in rows]
        failed = sum(not row.ok for row in rows)
        spent = time.perf_counter() - began
        print(f"{name}: {len(rows) - failed} of {len(rows)} ok, {spent:.0f} s", file=sys.stderr, flush=True)
        for row in rows:
            if not row.ok:
                print(f"  FAILED: {row.tried}: {row.measured}", file=sys.stderr, flush=True)
    print("\n| attack | what was tried | limit | measured | |\n|---|---|---|---|---|")
    for name, row in table:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in (row.tried, row.limit, row.measured)]
        print(f"| {name} | {' | '.join(cells)} | {'ok' if row.ok else '**FAILED**'} |")
    failed = sum(not row.ok for _, row in table)
    print(f"\n{len(table) - failed} of {len(table)} held, {(time.perf_counter() - started) / 60:.1f} minutes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
