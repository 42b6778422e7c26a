"""Uploaded files in the server's memory: one of a session, and all together within a budget."""

from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from streamlit import config
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from txcls.app.shell import limits, uploads
from txcls.errors import ConfigError


def file(name: str, size: int) -> UploadedFileRec:
    return UploadedFileRec(file_id=name, name=name, type="text/csv", data=b"x" * size)


def test_a_sessions_new_file_replaces_its_last_one_and_all_share_a_budget() -> None:
    manager = MemoryUploadedFileManager("/upload")
    uploads._bound(manager, 1000)
    for n in range(50):
        manager.add_file("one", file(f"f{n}", 300))
    assert [one.name for one in manager.get_files("one", [f"f{n}" for n in range(50)])] == ["f49"]
    manager.add_file("two", file("a", 600))
    with pytest.raises(HTTPException) as refused:
        manager.add_file("three", file("b", 200))
    assert refused.value.status_code == 503
    manager.remove_session_files("two")
    manager.add_file("three", file("b", 200))


def test_streamlit_takes_files_of_the_hosts_size_and_none_where_they_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for values, most in (({}, 20), ({"TXCLS_MAX_UPLOAD_MB": "3"}, 3), ({"TXCLS_UPLOADS": "off"}, 0)):
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        limits.limits.cache_clear()
        uploads.bound_uploads()
        assert config.get_option("server.maxUploadSize") == most
    limits.limits.cache_clear()


def test_a_switch_that_is_neither_on_nor_off_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TXCLS_TRAINING", "perhaps")
    limits.limits.cache_clear()
    with pytest.raises(ConfigError, match="TXCLS_TRAINING='perhaps': wanted on or off"):
        limits.limits()
    limits.limits.cache_clear()


def test_every_setting_is_documented() -> None:
    root = Path(__file__).parents[3]
    for name in (*limits.NAMES.values(), "TXCLS_JOBS"):
        for document in ("docs/hosting.md", "SECURITY.md"):
            assert f"`{name}`" in (root / document).read_text("utf-8"), f"{name} in {document}"
