"""Every test of the app sees two tiny checkpoints and nothing cached by another test."""

import os
from pathlib import Path

import pytest
import streamlit as st

from tests.app.tiny import save_tiny_checkpoints


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkpoints")
    save_tiny_checkpoints(root)
    return root


@pytest.fixture(autouse=True)
def _tiny_checkpoints_only(tiny_checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", os.fspath(tiny_checkpoints))
    st.cache_data.clear()
