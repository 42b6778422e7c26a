"""The app served to a real browser: start it, wait for it, open it. The benchmark uses this too."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
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


@contextmanager
def serve(log: Path, *, environment: Mapping[str, str] | None = None, wait: bool = True) -> Iterator[str]:
    """The app's address while the block runs; what the server prints goes to the file `log`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "streamlit_app.py")]
    command += ["--server.headless=true", "--server.address=127.0.0.1", f"--server.port={port}"]
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            if wait:
                wait_until_healthy(address, server, log)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def wait_until_healthy(address: str, server: "subprocess.Popen[bytes]", log: Path, *, seconds: float = 60) -> None:
    """Return as soon as the server answers; RuntimeError with its output where it ends or takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise RuntimeError(f"the app did not start:\n{log.read_text(errors='replace')[-2000:]}")
