"""A few of the inputs that `python -m benchmarks.fuzz` tries by the thousand: the same ones each time."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.judge import Judge, Outcome
from tests.fuzz.properties import PROPERTIES, Bench, Property, search

ROOT = Path(__file__).resolve().parents[2]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Judge() as judge:
        made = Bench(judge, tmp_path_factory.mktemp("fuzz"))
        made.prepare()
        yield made


@pytest.mark.parametrize("of", PROPERTIES, ids=lambda one: one.name)
def test_whatever_comes_in_there_is_an_answer_or_one_clear_line(bench: Bench, of: Property) -> None:
    search(bench, of, examples=30, derandomize=True)


@pytest.mark.parametrize(
    "code, problem",
    [
        ("1 / 0", "a traceback: ZeroDivisionError"),
        ("import sys; sys.exit(2)", "no clear line"),
        ("import sys; sys.exit(3)", "exit code 3"),
        (
            "import sys; sys.stderr.write('error: of two\\nlines, not one\\n'); sys.exit(2)",
            "2 lines instead of one",
        ),
        ("import sys; sys.stderr.write('error: a class named \\x1b[31mred\\n'); sys.exit(2)", "not printable"),
        ("import sys; sys.stderr.write('error: ' + 'x' * 9999); sys.exit(2)", "a line of 10,006 characters"),
        ("import os; os.abort()", "ended by signal 6"),
        ("import time; end = time.process_time() + 2.2\nwhile time.process_time() < end: pass", "s of processor time"),
        ("kept = b'x' * (600 << 20)", "MB, at most 500"),
    ],
)
def test_the_judge_sees_what_is_wrong(bench: Bench, code: str, problem: str) -> None:
    assert any(problem in one for one in bench.judge.python(code).problems())


def test_the_judge_ends_what_hangs_and_goes_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_JUDGE_PATIENCE", "0.5")
    with Judge() as judge:
        assert "still at work" in judge.python("import time; time.sleep(60)").problems()[0]
        assert judge.python("print('well')").out == "well\n"


def test_an_answer_and_a_clear_line_are_in_order() -> None:
    cheap = {"seconds": 0.1, "wall": 0.1, "mb": 100.0, "more_mb": 1.0}
    assert not Outcome(code=0, out="World", err="", **cheap).problems()
    assert not Outcome(code=2, out="", err="error: no such file; name another\n", **cheap).problems()


def test_the_command_tries_a_kind_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "benchmarks.fuzz", "queries", "--examples", "3"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0 and ran.stdout.splitlines()[-1].startswith("queries"), ran.stderr
    assert ran.stdout.rstrip().endswith("ok")
