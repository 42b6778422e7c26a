"""Start to first prediction against importing torch, and memory of the served app against the same without torch.

    python -m benchmarks.start_and_memory [--rounds 7]

The memory of a process that has drawn the app's first page with its prediction is compared with that of one that has
imported the same modules except torch and modules that need it. Linux only, since memory is read from /proc.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks._measure import alternate, machine, median_ratio, seconds

ROOT = Path(__file__).resolve().parent.parent
AIM_START, AIM_MEGABYTES = 1.5, 400
RESIDENT = """
import re
print(int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""
SERVED = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("txcls/app/shell/main.py", default_timeout=120).run()
assert not app.exception and "torch" in sys.modules
print(*(name for name in sys.modules if name.partition(".")[0] not in ("torch", "__main__")))
"""
# The imports of modules that need torch fail and are skipped.
WITHOUT = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
sys.modules["torch"] = None
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name)
    except (ImportError, AttributeError):
        pass
"""


def start(*arguments: str) -> float:
    command = [sys.executable, *arguments]
    return seconds(lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True, stdin=subprocess.DEVNULL))


def run(code: str, given: str = "") -> list[str]:
    command = [sys.executable, "-c", code + RESIDENT]
    return subprocess.run(
        command, cwd=ROOT, check=True, input=given, capture_output=True, text=True
    ).stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(machine())
    times = alternate(
        {
            "predict": lambda: start("-m", "txcls", "predict", "ag_news", "Rovers land on a comet"),
            "torch": lambda: start("-c", "import torch"),
        },
        rounds=options.rounds,
    )
    first, torch = (statistics.median(times[name]) for name in ("predict", "torch"))
    ratio = median_ratio(times["predict"], times["torch"])
    print(f"\n{'start to first prediction, seconds':<50}{'txcls':>8}{'torch':>8}{'ratio':>7}{'aim':>6}")
    row = "txcls predict ag_news TEXT, against import torch"
    print(f"{row:<50}{first:>8.2f}{torch:>8.2f}{ratio:>7.2f}{AIM_START:>6g}")
    if not Path("/proc/self/status").exists():
        print("memory is not measured here: it is read from /proc")
        return 0
    names, served = run(SERVED)
    without = run(WITHOUT, names)[-1]
    whole, rest = float(served), float(without)
    print(f"\n{'memory of the served app, MB':<50}{'whole':>8}{'without':>8}{'more':>7}{'aim':>6}")
    print(f"{'first page drawn, against no torch':<50}{whole:>8.0f}{rest:>8.0f}{whole - rest:>7.0f}{AIM_MEGABYTES:>6g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
