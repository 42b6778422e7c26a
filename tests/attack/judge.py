"""Run txcls on hostile input, each time in a separate process, and report how it ended and what it cost.

A `Judge` starts one process that imports everything (`python -m tests.attack.judge`) and forks a child for each task. A
task then costs milliseconds, and a crash, a hang or gigabytes of memory affect only the child. Linux or macOS.
"""

import importlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

ROOT = Path(__file__).resolve().parents[2]
MAX_SECONDS, MAX_MB = 2.0, 500.0
"""Limits for one command, successful or refused: CPU time, and peak resident memory."""
LONGEST_LINE = 2000
PATIENCE_SECONDS = 20.0
MEMORY_LIMIT = 8 << 30
"""In bytes; a child that asks for more gets a MemoryError, so that the machine keeps running."""
LIBRARIES = (
    *("nltk.tokenize", "openpyxl", "pandas", "pyarrow.parquet", "scipy.sparse", "tokenizers"),
    *("sklearn.feature_extraction.text", "sklearn.naive_bayes"),
)
"""Modules that commands import late."""
PROGRESS_PREFIX, PROGRESS_BAR = "reading ", "━"
"""A line on standard error that begins with the first or contains the second is progress, not part of the error."""


@dataclass(frozen=True)
class Outcome:
    """How a task ended: its exit status or minus the signal, CPU time, peak memory, the first 200,000 bytes of its
    output, and whether it was killed for running too long."""

    code: int
    seconds: float
    mb: float
    out: str
    err: str
    hung: bool = False

    def problems(self) -> list[str]:
        """What is wrong: neither success nor one clear line and exit code 2, or too expensive."""
        problems = []
        if self.hung:
            problems.append("did not end")
        elif self.code < 0:
            problems.append(f"ended by signal {-self.code}")
        elif "Traceback (most recent call last)" in self.err:
            problems.append("a traceback: " + self.err.strip().splitlines()[-1][:200])
        elif self.code == 2:
            problems += self._line_problems()
        elif self.code:
            problems.append(f"exit code {self.code}, expected 0 or 2: {self.err.strip()[-200:]!r}")
        if self.seconds > MAX_SECONDS:
            problems.append(f"{self.seconds:.1f} s of CPU time, at most {MAX_SECONDS:g}")
        if self.mb > MAX_MB:
            problems.append(f"{self.mb:.0f} MB, at most {MAX_MB:g}")
        return problems

    def _line_problems(self) -> list[str]:
        is_progress = re.compile(f"{PROGRESS_PREFIX}|.*{PROGRESS_BAR}")
        lines = [line for line in self.err.split("\n") if line and not is_progress.match(line)]
        if lines[1:] and lines[-1].startswith("→ python -m txcls "):  # the command that follows the error's advice
            lines.pop()
        if len(lines) != 1 or not lines[0].startswith("error: ") or len(lines[0]) < 15:
            return [f"not one line that begins with 'error: ': {lines!r:.200}"]
        if len(lines[0]) > LONGEST_LINE:
            return [f"a line of {len(lines[0]):,} characters"]
        # Joiners of Persian words and emoji, and wide spaces, stay in messages (txcls.errors).
        odd = {c for c in lines[0] if not c.isprintable() and unicodedata.category(c) != "Zs"} - {*"\u200c\u200d"}
        return [f"characters that are not printable: {sorted(odd)}"] if odd else []


class Judge:
    """A context manager for the process that forks."""

    def __init__(self, *, patience: float = PATIENCE_SECONDS) -> None:
        environment = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "200"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.attack.judge", str(patience)],
            cwd=ROOT,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *argv: str, env: Mapping[str, str] | None = None) -> Outcome:
        """Run `txcls` with these arguments."""
        return self._ask({"argv": argv, "env": dict(env or {})})

    def python(self, code: str, **names: str) -> Outcome:
        """Run Python code in which these names are defined."""
        return self._ask({"code": code, "names": names})

    def _ask(self, task: Mapping[str, Any]) -> Outcome:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the judge has ended")
        return Outcome(**json.loads(answer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)


def serve(patience: float) -> None:
    """Run the tasks that arrive on standard input, one per line, and write each `Outcome` as a line."""
    import torch  # noqa: F401  # first: other libraries that bring their own OpenMP must come after it

    from txcls.cli import COMMANDS

    for name in (*LIBRARIES, *(f"txcls.cli.{module}" for module, _ in COMMANDS.values())):
        importlib.import_module(name)  # so that children need not
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may write to the stream of outcomes
    for line in sys.stdin:
        answers.write(json.dumps(asdict(outcome_of(json.loads(line), patience))) + "\n")
        answers.flush()


def outcome_of(task: Mapping[str, Any], patience: float) -> Outcome:
    """Run a task in a child, and kill the child when it exceeds its time limit."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            run_and_exit(task, out.fileno(), err.fileno())
        deadline, hung = time.monotonic() + patience, False
        while not (ended := os.wait4(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline and not hung:
                os.kill(child, signal.SIGKILL)
                hung = True
            time.sleep(0.002)
        _, status, used = ended
        for file in (out, err):
            file.seek(0)
        texts = [file.read(200_000).decode("utf-8", "replace") for file in (out, err)]
    code = os.waitstatus_to_exitcode(status)
    mb = used.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    return Outcome(code, used.ru_utime + used.ru_stime, mb, *texts, hung and code == -signal.SIGKILL)


def run_and_exit(task: Mapping[str, Any], out: int, err: int) -> NoReturn:
    """In the child: run the task with its output redirected."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        if "argv" in task:
            from txcls import cli

            os.environ |= task["env"]
            sys.argv = ["txcls", *task["argv"]]
            cli.main()
        else:
            exec(task["code"], {"__name__": "task", **task["names"]})
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # what a user would see
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(float(sys.argv[1]))
