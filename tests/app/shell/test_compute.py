"""Data that the pages load and compute is shared by all sessions and never modified."""

from pathlib import Path

import pytest

from tests.app.drawn import chart, go_to, open_page
from tests.app.tiny import PLAIN
from txcls.app.shell import checkpoints
from txcls.checkpoint.listing import Summary


def test_summary_of_damaged_files_is_blank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_CHECKPOINTS", str(tmp_path))
    for name, config, metrics in (("a", "{", "{}"), ("b", "[1]", "[]"), ("c", '{"data": 3}', '{"test": []}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(config)
        (tmp_path / name / "metrics.json").write_text(metrics)
        (tmp_path / name / "labels.json").write_text("{}")
        assert checkpoints.summary(name) == Summary(name, "", "", 0, None)
    assert checkpoints.summary("gone") == Summary("gone", "", "", 0, None)


def test_repeated_questions_never_change_the_shared_classifier() -> None:
    app = open_page("classify", text="banks signed a deal")
    first = chart(app, "chart_bars").figure["data"]
    for page in ("attention", "positions", "classify"):
        go_to(app, page)
    assert chart(app, "chart_bars").figure["data"] == first
    assert checkpoints.is_loaded(checkpoints.source(PLAIN))
