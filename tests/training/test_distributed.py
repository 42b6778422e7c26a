"""Several processes train as one; torchrun starts real processes on the CPU."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training import worker
from tests.training.test_loop import TRAIN, VALIDATION
from txcls.training import fit

ROOT = Path(__file__).parent.parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),  # three processes import torch, several times
]


def torchrun(*arguments: str, cwd: Path, n: int = 2) -> "subprocess.Popen[str]":
    """Start torchrun with `n` workers in a new session, so that signals to its process group do not reach pytest."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TXCLS_CACHE": str(cwd / "cache"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n), "-m", *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: "subprocess.Popen[str]") -> tuple[str, str]:
    try:
        return process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """The ids of the processes that torchrun started, ordered by rank."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ranks = {}
    for child in map(int, children):
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        if rank := [variable.removeprefix(b"RANK=") for variable in variables if variable.startswith(b"RANK=")]:
            ranks[int(rank[0])] = child
    return [ranks[rank] for rank in sorted(ranks)]


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the results of every case, computed by two processes."""
    folder = tmp_path_factory.mktemp("together")
    process = torchrun("tests.training.worker", str(folder), *worker.CASES, cwd=ROOT)
    _, error = finish(process)
    assert process.returncode == 0, error
    return folder


def history(folder: Path, case: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((folder / f"{case}.json").read_text())
    return rows


CURVE = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "learning_rate")


@pytest.mark.parametrize("case", ["averaged", "weighted", "one row left", "stopped early", "causal"])
def test_two_processes_have_the_loss_curve_of_one(together: Path, case: str) -> None:
    network, settings, objective = worker.make(case)
    expected = fit(network, TRAIN, VALIDATION, settings, objective=objective)
    rows = history(together / "0", case)
    assert [(row["epoch"], row["step"], row["best"]) for row in rows] == [
        (row.epoch, row.step, row.best) for row in expected.history
    ]
    for row, expected_row in zip(rows, expected.history, strict=True):
        assert [row[name] for name in CURVE] == pytest.approx([getattr(expected_row, name) for name in CURVE], abs=1e-4)
    weights = torch.load(together / "0" / f"{case}.pt", weights_only=True)
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(weights[name], tensor, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("case", worker.CASES)
def test_all_processes_end_with_the_same_weights_and_the_first_one_saves_them(together: Path, case: str) -> None:
    assert (together / "0" / f"{case}.state").is_file() and not (together / "1" / f"{case}.state").exists()
    first, second = (torch.load(together / rank / f"{case}.pt", weights_only=True) for rank in "01")
    assert all(torch.equal(first[name], second[name]) for name in first)
    figures = [[[row[name] for name in CURVE] for row in history(together / rank, case)] for rank in "01"]
    assert figures[0] == figures[1]


QUICK = ("model.d_model=16", "model.n_layers=1", "train.precision=float32", "train.save_every_seconds=0.0")


def settings(*more: str) -> list[str]:
    return [part for assignment in (*QUICK, *more) for part in ("--set", assignment)]


def until(file: Path, process: "subprocess.Popen[str]", *, changes: int = 1) -> None:
    """Wait until the file has been written `changes` times."""
    times: set[int] = set()
    deadline = time.monotonic() + 240
    while len(times) < changes and process.poll() is None and time.monotonic() < deadline:
        if file.exists():
            times.add(file.stat().st_mtime_ns)
        time.sleep(0.01)
    assert len(times) >= changes, finish(process)[1]


def train_and_kill(*arguments: str, cwd: Path) -> None:
    """SIGKILL one of two processes; the other ends with the reason and how to continue."""
    process = torchrun(*arguments, "--out", "cut", cwd=cwd)
    until(cwd / "cut.training" / "state.pt", process, changes=3)
    os.kill(workers_of(process)[1], signal.SIGKILL)
    _, error = finish(process)
    messages = [line for line in error.splitlines() if line.startswith("error: ")]
    assert process.returncode != 0 and any(
        "another process of this run was lost" in line and "continue with --resume" in line for line in messages
    ), error
    assert not (cwd / "cut").exists() and (cwd / "cut.training" / "state.pt").exists()


def test_a_killed_run_is_resumed_to_the_same_weights(tmp_path: Path) -> None:
    arguments = ["txcls", "train", "sample", *settings("train.epochs=4")]
    train_and_kill(*arguments, cwd=tmp_path)
    uninterrupted = torchrun(*arguments, "--out", "whole", cwd=tmp_path)
    resumed = torchrun(*arguments, "--out", "cut", "--resume", cwd=tmp_path)
    for process in (resumed, uninterrupted):
        _, error = finish(process)
        assert process.returncode == 0, error
        assert error.count(": validation accuracy") == 1, "one of them reports"
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]
    record = json.loads((tmp_path / "cut" / "metrics.json").read_text(encoding="utf-8"))["training"]
    assert record["command"].startswith("torchrun --nproc-per-node 2 -m txcls train sample")
    assert record["machine"].endswith("2 processes")


def test_a_stopped_pretraining_goes_on_in_one_process(tmp_path: Path) -> None:
    """After Ctrl-C for torchrun, the state is kept and a different number of processes can resume from it."""
    small = settings("data.dataset=sample", "model.n_heads=2", "text.max_vocabulary=400", "text.tokenizer=word")
    process = torchrun("txcls", "pretrain", "lm", *small, "--set", "train.epochs=500", "--out", "lm", cwd=tmp_path)
    until(tmp_path / "lm.training" / "state.pt", process, changes=3)
    process.send_signal(signal.SIGINT)
    _, error = finish(process)
    messages = [line for line in error.splitlines() if line.startswith("error: ")]
    assert len(messages) == 1 and "stopped in epoch" in messages[0] and "continue with --resume" in messages[0], error
    command = [sys.executable, "-m", "txcls", "pretrain", "lm", *small, "--set", "train.epochs=500", "--out", "lm"]
    resumed = subprocess.run(
        [*command, "--resume", "--max-steps", "30"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TXCLS_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert resumed.returncode == 0 and "validation perplexity" in resumed.stderr, resumed.stderr
