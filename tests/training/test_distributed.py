import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.training import worker

ROOT = Path(__file__).parents[2]
CURVE = ("epoch", "step", "train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "learning_rate")
SMALL = ("model.d_model=16", "model.n_heads=2", "model.n_layers=1", "train.epochs=1")
DATA = ("data.dataset=sample", "data.sources=[]")


def torchrun(*arguments: str, cwd: Path) -> str:
    """Run a module in two processes; return what they print to standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TXCLS_CACHE": str(cwd / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", *arguments]
    run = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=170)
    assert run.returncode == 0, run.stderr
    return run.stderr


@pytest.mark.slow
def test_two_processes_have_the_loss_curve_of_one_and_the_first_one_writes(tmp_path: Path) -> None:
    torchrun("tests.training.worker", str(tmp_path), cwd=ROOT)
    expected, model = worker.train(None)
    curves, weights = [], []
    for number in "01":
        rows = json.loads((tmp_path / number / "history.json").read_text())
        curves.append([[row[name] for name in CURVE] for row in rows])
        weights.append(torch.load(tmp_path / number / "weights.pt", weights_only=True))
    assert curves[0] == curves[1], "all processes take the same decisions"
    for row, expected_row in zip(curves[0], expected.history, strict=True):
        assert row == pytest.approx([getattr(expected_row, name) for name in CURVE], abs=1e-4)
    for name, tensor in model.state_dict().items():
        assert torch.equal(weights[0][name], weights[1][name])
        torch.testing.assert_close(weights[0][name], tensor, atol=1e-3, rtol=1e-3)
    assert (tmp_path / "0" / "state.pt").is_file() and not (tmp_path / "1" / "state.pt").exists()


@pytest.mark.slow
def test_two_processes_pre_train_one_checkpoint(tmp_path: Path) -> None:
    changes = [word for setting in (*SMALL, *DATA) for word in ("--set", setting)]
    printed = torchrun("txcls", "pretrain", "encoder", *changes, "--out", "made", cwd=tmp_path)
    assert printed.count("saved made: validation perplexity") == 1, "one of them prints"
    facts = json.loads((tmp_path / "made" / "metrics.json").read_text(encoding="utf-8"))["training"]
    assert facts["machine"].endswith("2 processes") and not (tmp_path / "made.training").exists()
