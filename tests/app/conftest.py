"""Tests of the app use tiny checkpoints, and start with an empty cache."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.media_file_manager import MediaFileManager

from tests.app.tiny import save_tiny_checkpoints
from tests.conftest import TEXTS, make_checkpoint
from txcls.app.shell.cache import shared_cache
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.data.batches import TokenisedTexts
from txcls.data.types import LabelledTexts
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import measure_means
from txcls.inspection.attribution import measure_explanations
from txcls.inspection.heads.measure import measure
from txcls.inspection.heads.tables import fit_tables


@pytest.fixture(scope="session")
def tiny_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("checkpoints")
    save_tiny_checkpoints(root)
    return root


@pytest.fixture(scope="session", autouse=True)
def _installed_packages_are_scanned_once() -> Iterator[None]:
    """Scan the installed packages for components only once: each AppTest would scan them again, which takes longer than
    drawing a page."""
    with pytest.MonkeyPatch.context() as patch:
        once = cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", once)
        yield


@pytest.fixture(autouse=True)
def _tiny_checkpoints_only(tiny_checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", os.fspath(tiny_checkpoints))
    shared_cache().clear()


@pytest.fixture(autouse=True)
def _downloads_are_there_before_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid deferred downloads: Streamlit drops them when the page reruns, and then a click on them does nothing."""

    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("a download button was given a function; give it the bytes")

    monkeypatch.setattr(MediaFileManager, "add_deferred", refuse)


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Predictor:
    """A checkpoint with the measurements that `measure` stores."""
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    classifier = Predictor(make_checkpoint(tmp_path / "mine"))
    rows = LabelledTexts(TEXTS, [0, 1, 2, 3] * 2, classifier.classes)
    means = measure_means(classifier, TEXTS, split="validation")
    texts = TokenisedTexts.encode(classifier.tokenizer, rows)
    heads = measure(classifier, texts, fit_tables(classifier, texts), means)
    averages = measure_explanations(classifier, TEXTS[:3])
    save_checkpoint(
        classifier.checkpoint.with_metrics(
            heads=heads.to_dict(), means=means.to_dict(), explanations=averages.to_dict()
        )
    )
    return Predictor.load("mine")
