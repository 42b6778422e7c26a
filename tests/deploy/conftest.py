"""Two app processes behind HAProxy with the shipped configuration."""

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.app.tiny import save_tiny_checkpoints
from tests.browser.server import ROOT, Served, end, free_port, serving
from tests.deploy.proxy import find_haproxy

CONFIG = ROOT / "deploy" / "haproxy.cfg"
SETTINGS = ROOT / "deploy" / "txcls.env"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.proxy)
            item.add_marker(pytest.mark.slow)


def shipped_settings() -> dict[str, str]:
    """The settings in deploy/txcls.env."""
    # Quotes are parsed as the shell and systemd parse them.
    words = shlex.split(SETTINGS.read_text("utf-8"), comments=True)
    return dict(word.split("=", 1) for word in words)


@contextmanager
def proxy(apps: list[Served], log: Path, **changed: str) -> Iterator[str]:
    """Run the proxy with the given settings overridden; yields its address."""
    executable = find_haproxy()
    if executable is None:
        pytest.fail("no HAProxy here: run `python tests/deploy/proxy.py`, or `make test-all PROXY=0`", pytrace=False)
    port = free_port()
    addresses = {f"TXCLS_APP{n}": app.address.removeprefix("http://") for n, app in enumerate(apps, 1)}
    environment = {**os.environ, **shipped_settings(), **addresses, "TXCLS_LISTEN": f"127.0.0.1:{port}", **changed}
    command = [executable, "-f", str(CONFIG)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_until_open(port, process, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        end(process)


def wait_until_open(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Wait until the port is open; RuntimeError with the output if the process ends or takes too long."""
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the proxy did not start:\n{log.read_text(errors='replace')[-2000:]}")


@dataclass
class Deployed:
    """The proxy's address, and the processes behind it, keyed by their name in the cookie."""

    address: str
    apps: dict[str, Served]

    def kill(self, name: str) -> None:
        """Kill one of the processes, as in a crash."""
        os.kill(self.apps[name].pid, signal.SIGKILL)


@contextmanager
def deployed(folder: Path, **changed: str) -> Iterator[Deployed]:
    """Run two app processes and the proxy."""
    save_tiny_checkpoints(folder / "checkpoints")
    environment = {"TXCLS_CHECKPOINTS": str(folder / "checkpoints")}
    with ExitStack() as stack:
        apps = [stack.enter_context(serving(folder / f"app{n}.log", environment=environment)) for n in (1, 2)]
        address = stack.enter_context(proxy(apps, folder / "proxy.log", **changed))
        yield Deployed(address, {"app1": apps[0], "app2": apps[1]})


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("deployed")) as running:
        yield running
