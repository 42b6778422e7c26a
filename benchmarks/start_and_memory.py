"""Time to the first prediction, compared with importing torch; memory of the app, compared with the app without torch.

    python -m benchmarks.start_and_memory [--rounds 7]

The memory of a process that has drawn the app's first page with its prediction is compared with the memory of a process
that has imported the same modules except torch and modules that need it. Linux only, since memory is read from /proc.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks._measure import alternate, machine, median_ratio, seconds

ROOT = Path(__file__).resolve().parent.parent
GOAL_START, GOAL_MEGABYTES = 1.5, 400
PRINT_MEMORY = """
import re
print(int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024)
"""
DRAW_PAGE = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("txcls/app/shell/main.py", default_timeout=120).run()
assert not app.exception and "torch" in sys.modules
print(*(name for name in sys.modules if name.partition(".")[0] not in ("torch", "__main__")))
"""
# The imports of modules that need torch fail and are skipped.
IMPORT_WITHOUT_TORCH = """
import importlib, sys, warnings
warnings.simplefilter("ignore")
sys.modules["torch"] = None
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name)
    except (ImportError, AttributeError):
        pass
"""


def run_seconds(*arguments: str) -> float:
    """The seconds that a Python process with these arguments takes."""
    command = [sys.executable, *arguments]
    return seconds(lambda: subprocess.run(command, cwd=ROOT, check=True, capture_output=True, stdin=subprocess.DEVNULL))


def output_and_memory(code: str, standard_input: str = "") -> list[str]:
    """The lines that `code` prints in a new process, followed by the memory of the process in MB."""
    command = [sys.executable, "-c", code + PRINT_MEMORY]
    return subprocess.run(
        command, cwd=ROOT, check=True, input=standard_input, capture_output=True, text=True
    ).stdout.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(machine())
    times = alternate(
        {
            "predict": lambda: run_seconds("-m", "txcls", "predict", "ag_news", "Rovers land on a comet"),
            "torch": lambda: run_seconds("-c", "import torch"),
        },
        rounds=options.rounds,
    )
    predict, torch = (statistics.median(times[name]) for name in ("predict", "torch"))
    ratio = median_ratio(times["predict"], times["torch"])
    print(f"\n{'time to the first prediction, seconds':<50}{'txcls':>8}{'torch':>8}{'ratio':>7}{'goal':>6}")
    row = "txcls predict ag_news TEXT, against import torch"
    print(f"{row:<50}{predict:>8.2f}{torch:>8.2f}{ratio:>7.2f}{GOAL_START:>6g}")
    if not Path("/proc/self/status").exists():
        print("memory is not measured on this system: it is read from /proc")
        return 0
    module_names, memory = output_and_memory(DRAW_PAGE)
    app, without_torch = float(memory), float(output_and_memory(IMPORT_WITHOUT_TORCH, module_names)[-1])
    more = app - without_torch
    print(f"\n{'memory of the app, MB':<50}{'app':>8}{'no torch':>9}{'more':>7}{'goal':>6}")
    print(f"{'first page drawn, against no torch':<50}{app:>8.0f}{without_torch:>9.0f}{more:>7.0f}{GOAL_MEGABYTES:>6g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
