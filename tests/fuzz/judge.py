"""Runs txcls on what may be hostile, each time in a process of its own, and says what came of it at what cost.

A `Judge` starts one process that has imported everything (`python -m tests.fuzz.judge`); that one forks a child for
each task, so that a task costs milliseconds, and a crash, a hang or gigabytes stay with the child. Linux or macOS.
"""

import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

ROOT = Path(__file__).resolve().parents[2]
MOST_SECONDS, MOST_MB = 2.0, 500.0
"""What one answer or refusal may cost: processor time, and resident memory at its peak."""
LONGEST_LINE = 2000
PROGRESS = "reading "
"""So begins what training says before it has an answer."""
BAR = "━"
"""Progress bars are drawn of this; what is left of one may stand above the line."""
PATIENCE = float(os.environ.get("TXCLS_JUDGE_PATIENCE", "20"))
"""Seconds after which a task is ended that has not ended by itself."""


def _is_harmless(character: str) -> bool:
    """Joiners of Persian words and of emoji, and spaces of other widths, which messages keep (txcls.errors)."""
    return character in "\u200c\u200d" or unicodedata.category(character) == "Zs"


@dataclass(frozen=True)
class Outcome:
    """How a task ended.

    Attributes:
        code: exit status; negative the signal that ended it.
        seconds: processor time, of the task alone.
        wall: seconds until it ended.
        mb: resident memory at its peak.
        more_mb: what of it came on top of a process that has imported everything.
        out: the beginning of its standard output.
        err: the beginning of its standard error.
        hung: whether it had to be ended.
    """

    code: int
    seconds: float
    wall: float
    mb: float
    more_mb: float
    out: str
    err: str
    hung: bool = False

    def problems(self, *, most_seconds: float = MOST_SECONDS, most_mb: float = MOST_MB) -> list[str]:
        """What is wrong with it: neither an answer nor one clear line with exit code 2, or too dear."""
        found = []
        if self.hung:
            found.append(f"still at work after {self.wall:.0f} s")
        elif self.code < 0:
            found.append(f"ended by signal {-self.code}")
        elif "Traceback (most recent call last)" in self.err:
            found.append("a traceback: " + self.err.strip().splitlines()[-1][:200])
        elif self.code == 2:
            found += self._line_problems()
        elif self.code:
            found.append(f"exit code {self.code}, wanted 0 or 2: {self.err.strip()[-200:]!r}")
        if self.seconds > most_seconds:
            found.append(f"{self.seconds:.1f} s of processor time, at most {most_seconds:g}")
        if self.mb > most_mb:
            found.append(f"{self.mb:.0f} MB, at most {most_mb:g}")
        return found

    def _line_problems(self) -> list[str]:
        said = [line for line in self.err.split("\n") if BAR not in line and not line.startswith(PROGRESS)]
        line = "\n".join(said).strip("\n")
        if not line.startswith("error: ") or len(line) < 15:
            return [f"no clear line: {line[:200]!r}"]
        if "\n" in line:
            return [f"{line.count(chr(10)) + 1} lines instead of one: {line[:200]!r}"]
        if len(line) > LONGEST_LINE:
            return [f"a line of {len(line):,} characters"]
        if strange := [one for one in line if not one.isprintable() and not _is_harmless(one)]:
            return [f"characters that are not printable, {strange[:5]}"]
        return []


IMPORTED = """
import contextlib, io, sys
import numpy, pandas, pyarrow.parquet, txcls.scoring
from txcls import cli
sys.argv = ["txcls", *argv]
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    cli.main()
print(*(name for name in sys.modules if name.isprintable() and not name.startswith("__")))
"""


class Judge:
    """The process that forks; use as a context manager, or `close` it.

    Attributes:
        most_seconds, most_mb: what the dearest tasks so far took.
    """

    def __init__(self) -> None:
        self.most_seconds = self.most_mb = 0.0
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "200"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.judge"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *argv: str, env: Mapping[str, str] | None = None) -> Outcome:
        """`txcls` with these arguments."""
        return self._ask({"argv": argv, "env": dict(env or {})})

    def read(self, checkpoint: Path, text: str) -> Outcome:
        """`Predictor.predict` and a trace of the text."""
        return self._ask({"checkpoint": str(checkpoint), "text": text})

    def python(self, code: str, **given: str) -> Outcome:
        """Python code, with these names defined."""
        return self._ask({"code": code, "given": given})

    def _ask(self, task: Mapping[str, Any]) -> Outcome:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the judge has ended")
        outcome = Outcome(**json.loads(answer))
        self.most_seconds, self.most_mb = max(self.most_seconds, outcome.seconds), max(self.most_mb, outcome.mb)
        return outcome

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve() -> None:
    import torch  # noqa: F401  # first: other libraries that bring their own OpenMP must come after it

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing else may write where the answers go
    # What these import later is imported now, so that no task has to.
    for argv in (["predict", "ag_news", "a text"], ["predict", "--help"], ["data", "show", "sample"]):
        for name in _ran({"code": IMPORTED, "given": {"argv": argv}}).out.split():
            with suppress(ImportError, AttributeError):
                importlib.import_module(name)
    before = _ran({"code": "", "given": {}}).mb
    for line in sys.stdin:
        outcome = _ran(json.loads(line))
        answers.write(json.dumps(vars(outcome) | {"more_mb": outcome.mb - before}) + "\n")
        answers.flush()


def _ran(task: Mapping[str, Any]) -> Outcome:
    """What came of a task, done in a child."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        child = os.fork()
        if not child:
            _run(task, out.fileno(), err.fileno())
        code, used, hung = _wait(child)
        wall = time.perf_counter() - started
        texts = [_beginning(file) for file in (out, err)]
    mb = used.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    return Outcome(code, used.ru_utime + used.ru_stime, wall, mb, 0.0, *texts, hung)


def _beginning(file: Any) -> str:
    file.seek(0)
    beginning: bytes = file.read(200_000)
    return beginning.decode("utf-8", "replace")


def _wait(child: int) -> tuple[int, resource.struct_rusage, bool]:
    """Exit status and cost of the child, and whether it hung: it is killed when its time is up."""
    if hasattr(os, "pidfd_open"):
        descriptor = os.pidfd_open(child)
        ended, _, _ = select.select([descriptor], [], [], PATIENCE)
        os.close(descriptor)
    else:
        end = time.monotonic() + PATIENCE
        while not (ended := bool(os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG))):
            if time.monotonic() > end:
                break
            time.sleep(0.005)
    if not ended:
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used, not ended


def _run(task: Mapping[str, Any], out: int, err: int) -> NoReturn:
    """In the child: do it and end."""
    code = 1
    try:
        # Beyond this something is wrong; better its own MemoryError than a machine without memory.
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        if "argv" in task:
            from txcls import cli

            os.environ |= task["env"]
            sys.argv = ["txcls", *task["argv"]]
            cli.main()
        elif "code" in task:
            exec(task["code"], {"__name__": "task", **task["given"]})
        else:
            _read(task["checkpoint"], task["text"])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  # what a user would see
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def _read(checkpoint: str, text: str) -> None:
    from txcls.errors import TxclsError
    from txcls.predictor import Predictor
    from txcls.tap import trace

    classifier = Predictor.load(checkpoint)
    try:
        [prediction] = classifier.predict([text])
        total = sum(one.probability for one in prediction.ranked)
        assert prediction.label is None or abs(total - 1) < 1e-4, f"probabilities sum to {total}"
        with trace():
            classifier.predict([text])
    except TxclsError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None


if __name__ == "__main__":
    _serve()
