"""The limits on uploaded files."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from starlette.types import Message, Receive, Scope, Send
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from tests.app.pages.test_train import limited
from txcls.app.shell import upload_guard

pytestmark = pytest.mark.usefixtures("jobs_folder")

MB = 1 << 20
MAX_REQUEST = MB + upload_guard.FORM_BYTES
"""Maximum size of a request if a file may have 1 MB."""


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """Streamlit's upload manager, which holds uploads in memory."""
    uploads = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(upload_guard.runtime, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=uploads))
    return uploads


def status_of(
    app: upload_guard.BoundedUploads, *, session: str = "one", size: int | str | None = MB, method: str = "PUT"
) -> int:
    """The status code in response to an upload."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [] if size is None else [(b"content-length", str(size).encode())]
    scope = {"type": "http", "method": method, "path": f"{upload_guard.UPLOAD_PATH}{session}/file", "headers": headers}
    asyncio.run(app(scope, receive_nothing, send))
    return int(sent[0]["status"])


async def receive_nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def taking(manager: MemoryUploadedFileManager, *, seconds: float = 0.0) -> upload_guard.BoundedUploads:
    """The middleware in front of a server that stores each file as Streamlit does."""

    async def take(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(seconds)
        if scope["method"] == "PUT":
            data = bytes(int(dict(scope["headers"])[b"content-length"]))
            manager.add_file(scope["path"].split("/")[-2], UploadedFileRec(f"{time.monotonic_ns()}", "a", "b", data))
        await send({"type": "http.response.start", "status": 204, "headers": []})

    return upload_guard.BoundedUploads(take)


@pytest.mark.attack
def test_a_sessions_new_file_replaces_its_last_one_and_all_share_a_budget(
    manager: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, TXCLS_MAX_UPLOAD_MB="1")
    app = taking(manager)
    for _ in range(50):
        assert status_of(app) == 204
    assert sum(len(files) for files in manager.file_storage.values()) == 1
    answers = [status_of(app, session=f"s{n}") for n in range(10)]
    assert answers == [204] * (upload_guard.MAX_UPLOADS - 1) + [503] * (11 - upload_guard.MAX_UPLOADS)
    manager.remove_session_files("one")
    assert status_of(app, session="another") == 204


@pytest.mark.parametrize("size, status", [(MAX_REQUEST, 204), (MAX_REQUEST + 1, 413), (None, 411), ("-1", 411)])
@pytest.mark.attack
def test_a_file_beyond_the_hosts_limit_is_refused_before_it_is_read(
    manager: MemoryUploadedFileManager, size: int | str | None, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, TXCLS_MAX_UPLOAD_MB="1")
    assert status_of(taking(manager), size=size) == status


@pytest.mark.attack
def test_no_file_is_taken_where_uploads_are_off(
    manager: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, TXCLS_UPLOADS="off")
    assert status_of(taking(manager)) == 403 and status_of(taking(manager), method="DELETE") == 204


@pytest.mark.attack
def test_an_upload_that_never_ends_times_out(
    manager: MemoryUploadedFileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_guard, "UPLOAD_SECONDS", 0.1)
    app = taking(manager, seconds=60)
    assert status_of(app) == 408 and app.arriving == 0
