"""How long thirty visitors wait who open the same page at the same moment, each with a text of its own.

    python -m benchmarks.visitors [--visitors 30]

They speak the app's protocol, without browsers, which would keep the machine busier than the app does; measured is the
time from asking to the end of the page. The checkpoint is loaded before.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks._side_by_side import machine
from tests.browser.server import serve
from tests.browser.visitors import visit_together
from txcls.app.examples import EXAMPLES

AIM_SECONDS = 10.0
PAGES = (
    "",
    "tokens",
    "steps",
    "attention",
    "switchboard",
    "explanation",
    "lens",
    "positions",
    "whatif",
    "neighbourhood",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--visitors", type=int, default=30, help="how many at once")
    options = parser.parse_args()
    print(machine())
    print(
        f"\n{f'{options.visitors} visitors at once, seconds to the whole page':<50}{'median':>8}{'worst':>8}{'aim':>8}"
    )
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder) / "server.log") as address:
        for page in PAGES:
            visit_together(address, page, ["the first visitor loads the checkpoint"])
            texts = [f"{EXAMPLES[n % len(EXAMPLES)].text} Visitor {n}, {page}." for n in range(options.visitors)]
            visits = visit_together(address, page, texts)
            if not all(visit.finished for visit in visits):
                print(f"{page or 'classify'}: not every page was drawn to its end")
                return 1
            seconds = [visit.seconds for visit in visits]
            print(f"{page or 'classify':<50}{statistics.median(seconds):>8.2f}{max(seconds):>8.2f}{AIM_SECONDS:>8g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
