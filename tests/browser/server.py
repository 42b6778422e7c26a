"""Start the app's server and wait for it; also used by benchmarks."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

ROOT = Path(__file__).parents[2]
BASE_PATH = "STREAMLIT_SERVER_BASE_URL_PATH"
CHROMIUM_ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Served:
    """A running app: its address and its process."""

    address: str
    pid: int


@contextmanager
def serve_folder(folder: Path) -> Iterator[int]:
    """Serve the files of a folder for the duration of the block, and yield the port."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def free_port() -> int:
    """A free local port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serve(log: Path, *, environment: Mapping[str, str] | None = None, wait: bool = True) -> Iterator[str]:
    """Run the app for the duration of the block and yield its address; its output goes to the file `log`."""
    with serving(log, environment=environment, wait=wait) as served:
        yield served.address


@contextmanager
def serving(
    log: Path, *, environment: Mapping[str, str] | None = None, wait: bool = True, port: int | None = None
) -> Iterator[Served]:
    """Like `serve`, but yields the process too; uses the given port, or a free one."""
    port = port or free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "streamlit_app.py")]
    command += ["--server.headless=true", "--server.address=127.0.0.1", f"--server.port={port}"]
    with running(command, log, dict(environment or {}), cwd=ROOT) as server:
        address = f"http://127.0.0.1:{port}/{(environment or {}).get(BASE_PATH, '')}".rstrip("/")
        if wait:
            wait_until_healthy(address, server, log)
        yield Served(address, server.pid)


@contextmanager
def running(
    command: list[str], log: Path, environment: dict[str, str], **options: Any
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a process for the duration of the block; its output goes to the end of the file `log`."""
    settings = {"env": os.environ | environment, "stdin": subprocess.DEVNULL, **options}
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, **settings)
        try:
            yield process
        finally:
            end(process)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Terminate a process, and kill it if it has not ended after ten seconds."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_until_healthy(address: str, server: "subprocess.Popen[bytes]", log: Path, *, seconds: float = 60) -> None:
    """Wait until the server responds; raises RuntimeError with its output if it ends or takes too long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the app did not start:\n{log.read_text(errors='replace')[-2000:]}")
