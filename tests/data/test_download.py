import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from txcls.data.datasets import cache_folder, fetch, fetched_folder
from txcls.data.types import DatasetInfo, RemoteFile
from txcls.errors import DownloadError

CONTENT = bytes(range(256)) * 4096  # 1 MiB


class Server(ThreadingHTTPServer):
    """Serves `content` for every path; the first `n_broken` transfers stop halfway."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.status, self.n_broken, self.n_requests = CONTENT, 200, 0, 0

    def info(self, *names: str) -> DatasetInfo:
        checksum = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"
        files = tuple(RemoteFile(name, f"http://127.0.0.1:{self.server_port}/{name}", checksum) for name in names)
        return DatasetInfo(name="toy", title="a toy", files=files)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.n_requests += 1
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        body = self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.n_broken:
            self.server.n_broken -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path))
    monkeypatch.setattr("time.sleep", lambda _: None)  # between attempts
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def cached_files() -> list[str]:
    return sorted(file.name for file in cache_folder().rglob("*") if file.is_file())


def test_files_are_downloaded_once(server: Server, tmp_path: Path) -> None:
    info, addresses = server.info("train/label", "test.csv"), []
    assert fetched_folder(info) is None
    for _ in range(2):
        folder = fetch(info, on_file=addresses.append)
    assert folder == tmp_path / "toy" == fetched_folder(info)
    assert cached_files() == ["label", "test.csv"] and server.n_requests == 2
    assert addresses == [file.url for file in info.files]
    assert (folder / "train" / "label").read_bytes() == CONTENT


def test_a_broken_transfer_is_repeated(server: Server) -> None:
    server.n_broken = 1
    assert (fetch(server.info("train.csv")) / "train.csv").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "values, problem",
    [
        ({"n_broken": 100}, "train.csv: "),
        ({"status": 404}, "404"),
        ({"content": CONTENT[:-1] + b"?"}, "not the published file"),
    ],
)
def test_a_failed_download_leaves_no_file(server: Server, values: dict[str, object], problem: str) -> None:
    for name, value in values.items():
        setattr(server, name, value)
    with pytest.raises(DownloadError, match=problem):
        fetch(server.info("train.csv"))
    assert cached_files() == []


def test_no_connection_and_a_cache_that_cannot_be_written_are_errors(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = server.info("train.csv")
    server.server_close()
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:\d+/train\.csv: .* check the connection"):
        fetch(info)
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match="TXCLS_CACHE"):
        fetch(info)
