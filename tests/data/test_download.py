import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from txcls.data import download
from txcls.data.cache import cache_folder, fetched_folder
from txcls.data.download import fetch, fetch_files
from txcls.data.types import DatasetInfo, RemoteFile
from txcls.errors import DataError, DownloadError

CONTENT = bytes(range(256)) * 4096  # 1 MiB


class Server(ThreadingHTTPServer):
    """Serves CONTENT under every name; `breaks` transfers stop half-way, `ranges` says whether parts can be had."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.breaks = 0
        self.ranges = True
        self.content = CONTENT
        self.status = 200
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header(
                "Content-Range", f"bytes {start}-{len(self.server.content) - 1}/{len(self.server.content)}"
            )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.breaks:
            self.server.breaks -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def described(url: str, *, content: bytes = CONTENT, names: tuple[str, ...] = ("train.csv",)) -> DatasetInfo:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    files = tuple(RemoteFile(name, f"{url}/{name}", md5, len(content)) for name in names)
    return DatasetInfo(name="toy", title="a toy", files=files)


def left_behind(cache: Path) -> list[str]:
    return sorted(file.name for file in cache.rglob("*") if file.is_file())


def test_files_are_fetched_once_and_progress_is_told(server: Server, tmp_path: Path) -> None:
    info = described(server.url, names=("train.csv", "test.csv"))
    told: list[tuple[str, int, int | None]] = []
    assert fetched_folder(info, cache=tmp_path) is None
    for _ in range(2):
        folder = fetch_files(info, cache=tmp_path, progress=lambda *seen: told.append(seen))
    assert folder == tmp_path / "toy" == fetched_folder(info, cache=tmp_path)
    assert left_behind(tmp_path) == ["test.csv", "train.csv"] and len(server.asked) == 2
    assert (folder / "train.csv").read_bytes() == CONTENT
    assert [name for name, done, total in told if done == total == len(CONTENT)] == ["train.csv", "test.csv"]


def test_broken_transfer_is_taken_up_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.breaks = 2
    folder = fetch_files(described(server.url), cache=tmp_path)
    assert (folder / "train.csv").read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={len(CONTENT) // 2}-", f"bytes={len(CONTENT) * 3 // 4}-"]


def test_broken_transfer_begins_again_where_the_server_has_no_parts(server: Server, tmp_path: Path) -> None:
    server.breaks, server.ranges = 2, False
    folder = fetch_files(described(server.url), cache=tmp_path)
    assert (folder / "train.csv").read_bytes() == CONTENT and len(server.asked) == 3


def test_transfer_that_keeps_breaking_is_given_up_and_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.breaks = 100
    with pytest.raises(DownloadError, match=r"train\.csv: the connection broke after [\d,]+ bytes; nothing was kept"):
        fetch_files(described(server.url), cache=tmp_path)
    assert left_behind(tmp_path) == [] and len(server.asked) == download.ATTEMPTS


def test_wrong_checksum_is_refused_and_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(DownloadError, match="not the published file"):
        fetch_files(described(server.url), cache=tmp_path)
    assert left_behind(tmp_path) == []


def test_files_in_folders_are_fetched_and_checked_by_sha_256(server: Server, tmp_path: Path) -> None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    files = tuple(RemoteFile(name, f"{server.url}/{name}", sha256=digest) for name in ("train/label", "train/seq.in"))
    info = DatasetInfo(name="toy", title="a toy", files=files)
    folder = fetch_files(info, cache=tmp_path)
    assert fetched_folder(info, cache=tmp_path) == folder and (folder / "train" / "seq.in").read_bytes() == CONTENT
    (folder / "train" / "label").unlink()
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(DownloadError, match=f"its checksum is not sha256:{digest}"):
        fetch_files(info, cache=tmp_path)
    assert left_behind(tmp_path) == ["seq.in"]


def test_both_checksums_known_the_stronger_one_counts() -> None:
    assert RemoteFile("a", "https://example.org/a", md5="1", sha256="2").checksum == "sha256:2"
    assert RemoteFile("a", "https://example.org/a", "1", 3).checksum == "md5:1"


def test_set_behind_a_login_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"login\. Get News_Category_Dataset_v3\.json from https://.*--data PATH"):
        fetch("huffpost", cache=tmp_path)
    assert left_behind(tmp_path) == []


def test_damaged_file_in_the_cache_is_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.csv").write_bytes(b"half")
    folder = fetch_files(described(server.url), cache=tmp_path)
    assert (folder / "train.csv").read_bytes() == CONTENT


@pytest.mark.parametrize("status, attempts", [(404, 1), (403, 1), (503, download.ATTEMPTS)])
def test_refusing_server_is_quoted_and_asked_again_only_where_that_may_help(
    server: Server, tmp_path: Path, status: int, attempts: int
) -> None:
    server.status = status
    with pytest.raises(DownloadError, match=f"the server answered {status}"):
        fetch_files(described(server.url), cache=tmp_path)
    assert left_behind(tmp_path) == [] and len(server.asked) == attempts


def test_no_connection_is_an_error_that_names_the_address(server: Server, tmp_path: Path) -> None:
    info = described(server.url)
    server.server_close()
    with pytest.raises(DownloadError, match=r"http://127\.0\.0\.1:\d+/train\.csv: no connection"):
        fetch_files(info, cache=tmp_path)
    assert left_behind(tmp_path) == []


def test_interrupted_download_leaves_nothing(server: Server, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_files(described(server.url), cache=tmp_path, progress=interrupt)
    assert left_behind(tmp_path) == []


def test_cache_that_cannot_be_written_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DownloadError, match=r"cannot write to .*TXCLS_CACHE"):
        fetch_files(described(server.url), cache=tmp_path / "file")


def test_mirror_is_asked_instead_of_the_publisher(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(DownloadError, match=rf"{server.url}/pub/train\.csv: the server answered 404"):
        fetch("ag_news", cache=tmp_path, base_url=f"{server.url}/pub/")


def test_names_without_download_and_unknown_names_and_schemes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="sample has nothing to download"):
        fetch("sample", cache=tmp_path)
    with pytest.raises(DataError, match="no data set named 'mnist'"):
        fetch("mnist", cache=tmp_path)
    with pytest.raises(DownloadError, match="https://"):
        fetch("ag_news", cache=tmp_path, base_url="file:///etc")


def test_cache_folder_is_the_one_named_or_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TXCLS_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("TXCLS_CACHE")
    assert cache_folder().name == "txcls"
