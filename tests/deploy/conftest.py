"""Two app processes behind HAProxy with the shipped configuration."""

import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.app.tiny import save_tiny_checkpoints
from tests.browser.server import ROOT, Served, free_port, running, serving
from tests.deploy.proxy import find_haproxy


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.proxy)
            item.add_marker(pytest.mark.slow)


@contextmanager
def proxy(apps: list[Served], log: Path, **changed: str) -> Iterator[str]:
    """Run the proxy with the given settings overridden; yields its address."""
    executable = find_haproxy()
    if executable is None:
        pytest.fail("no HAProxy here: run `python tests/deploy/proxy.py`, or `make test-all PROXY=0`", pytrace=False)
    port = free_port()
    addresses = {f"TXCLS_APP{n}": app.address.removeprefix("http://") for n, app in enumerate(apps, 1)}
    settings = shlex.split((ROOT / "deploy" / "txcls.env").read_text("utf-8"), comments=True)  # quotes as in systemd
    shipped = dict(setting.split("=", 1) for setting in settings)
    environment = {**shipped, **addresses, "TXCLS_LISTEN": f"127.0.0.1:{port}", **changed}
    with running([executable, "-f", str(ROOT / "deploy" / "haproxy.cfg")], log, environment) as process:
        wait_until_open(port, process, log)
        yield f"http://127.0.0.1:{port}"


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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two app processes and the proxy."""
    folder = tmp_path_factory.mktemp("deployed")
    save_tiny_checkpoints(folder / "checkpoints")
    environment = {"TXCLS_CHECKPOINTS": str(folder / "checkpoints")}
    with (
        serving(folder / "app1.log", environment=environment) as first,
        serving(folder / "app2.log", environment=environment) as second,
        proxy([first, second], folder / "proxy.log") as address,
    ):
        yield Deployed(address, {"app1": first, "app2": second})
