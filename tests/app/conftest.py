"""Every test of the app sees two tiny checkpoints and nothing cached by another test."""

import os
from pathlib import Path

import pytest

from tests.app.tiny import save_tiny_checkpoints
from txcls.app import compute


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkpoints")
    save_tiny_checkpoints(root)
    return root


@pytest.fixture(autouse=True)
def _tiny_checkpoints_only(tiny_checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", os.fspath(tiny_checkpoints))
    compute.kept().clear()
