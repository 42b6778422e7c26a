"""The server around the pages: check its settings, sweep sessions, serve files."""

import asyncio
import gzip
import hashlib
import inspect
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
import weakref
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from streamlit.runtime import RuntimeState
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from tests.browser.server import BASE_PATH, ROOT, serve
from txcls.app.jobs.sessions import Session
from txcls.app.shell import downloads, encoder_file, server
from txcls.web.encoder import packed_encoder

pytestmark = pytest.mark.usefixtures("jobs_folder")


@pytest.mark.parametrize("setting, value", [("TXCLS_CACHE_MB", "lots"), ("TXCLS_JOBS", "/dev/null/x")])
@pytest.mark.attack
def test_a_wrong_setting_keeps_the_server_from_starting_and_is_named(setting: str, value: str) -> None:
    command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.headless=true"]
    ran = subprocess.run(
        ["env", f"{setting}={value}", *command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1 and f"The app does not start. {setting}=" in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.attack
def test_old_sessions_are_gone_once_the_server_answers_and_links_lead_nowhere_else(tmp_path: Path) -> None:
    old, new = Session.new(), Session.new()
    last_visit = old.folder.with_name(f"{old.folder.name}.seen")
    last_visit.write_text(json.dumps({"at": time.monotonic() - 4000}))
    with serve(tmp_path / "log") as address:
        assert not old.folder.exists() and new.exists
        for link in ("x", "..%2f..%2fetc%2fpasswd", new.token, new.folder.name):
            with pytest.raises(urllib.error.HTTPError, match=r"40[04]"):
                urllib.request.urlopen(f"{address}/{downloads.ADDRESS}/{link}", timeout=10)


def test_the_encoder_is_a_file_of_the_app_that_browsers_keep(tmp_path: Path) -> None:
    known = encoder_file.encoder_address()
    assert known == f"{encoder_file.ADDRESS}/{hashlib.sha256(packed_encoder()).hexdigest()[:20]}"

    def answer(address: str, method: str = "GET", accept: str = "identity") -> tuple[int, bytes, Message]:
        request = urllib.request.Request(address, method=method, headers={"Accept-Encoding": accept})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read(), response.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers

    with serve(tmp_path / "log", environment={BASE_PATH: "demo"}) as address:
        status, content, headers = answer(f"{address}/{known}")
        assert status == 200 and content == packed_encoder()
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert headers["Content-Type"] == "application/octet-stream" and headers["X-Content-Type-Options"] == "nosniff"
        _, compressed, headers = answer(f"{address}/{known}", accept="gzip, br")
        assert headers["Content-Encoding"] == "gzip" and gzip.decompress(compressed) == content
        for other in ("x", "..%2fconfig.json", "encoder"):
            status, text, _ = answer(f"{address}/{encoder_file.ADDRESS}/{other}")
            assert status in (400, 404) and len(text) < 200, other
        for method in ("POST", "PUT", "DELETE"):
            assert answer(f"{address}/{known}", method)[0] == 405


def test_sessions_of_visitors_who_did_not_come_back_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemorySessionStorage(ttl_seconds=0)
    stored = SessionInfo(client=None, session=cast(Any, SimpleNamespace(id="x")))
    storage.save(stored)
    is_stored = weakref.ref(stored)
    del stored
    assert is_stored() is not None, "expired, but not yet removed"
    manager = WebsocketSessionManager(storage, *[cast(Any, None)] * 3)
    monkeypatch.setattr(server.runtime, "get_instance", lambda: SimpleNamespace(_session_mgr=manager))
    server._forget_sessions()
    assert is_stored() is None
    assert "self._session_mgr" in inspect.getsource(server.runtime.Runtime.__init__)


def test_memory_is_returned_once_after_the_last_visitor_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    visited = SimpleNamespace(state=RuntimeState.ONE_OR_MORE_SESSIONS_CONNECTED)
    calls: list[float] = []
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.06)
    monkeypatch.setattr(server.runtime, "exists", lambda: True)
    monkeypatch.setattr(server.runtime, "get_instance", lambda: visited)
    monkeypatch.setattr(server.memory, "free_when_idle", lambda: calls.append(time.monotonic()))

    async def visit() -> float:
        freeing = asyncio.create_task(server._free_memory_when_idle())
        await asyncio.sleep(0.3)
        assert not calls
        visited.state, left_at = RuntimeState.NO_SESSIONS_CONNECTED, time.monotonic()
        await asyncio.sleep(0.6)
        freeing.cancel()
        return left_at

    left_at = asyncio.run(visit())
    assert len(calls) == 1 and calls[0] - left_at > 0.03
