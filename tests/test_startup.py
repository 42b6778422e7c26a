import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SLOW_TO_IMPORT = (
    "torch",
    "streamlit",
    "plotly",
    "pandas",
    "pyarrow",
    "nltk",
    "sklearn",
    "scipy",
    "tokenizers",
    "pooch",
)


def seconds(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - started


@pytest.mark.parametrize("arguments", [["-c", "import txcls"], ["-m", "txcls", "--help"]], ids=["import", "help"])
def test_answers_within_half_a_second(arguments):
    taken: list[float] = []
    while len(taken) < 10 and min(taken, default=1.0) >= 0.5:  # best of ten: a busy machine is not the package's fault
        taken.append(seconds(arguments))
    assert min(taken) < 0.5, taken


def test_a_prediction_imports_torch_and_nothing_else_that_is_slow():
    code = "import sys; from txcls.classifier import Classifier; Classifier.load('ag_news').predict(['Rovers land.']); "
    code += f"print(*sorted(set(sys.modules) & set({SLOW_TO_IMPORT})))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["torch"]


@pytest.mark.parametrize("module", ["txcls", "txcls.cli", "txcls.config"])
def test_importing_leaves_slow_libraries_alone(module):
    code = f"import sys, {module}; print(*sorted(set(sys.modules) & set({SLOW_TO_IMPORT})))"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == ""
