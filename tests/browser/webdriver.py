"""Firefox and WebKit through WebDriver, for pages that people open in browsers other than Chromium.

Playwright drives only its own builds of these browsers. Debian has no geckodriver, so Firefox is driven over
Marionette, the protocol between geckodriver and Firefox, with the commands of WebDriver. WebKit is WebKitGTK with its
driver, in a virtual screen. As a script: install what is missing, and print the paths.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # when run as a script

from tests.browser.chromium import install_packages
from tests.browser.server import free_port, running

PATIENCE_SECONDS = 60.0
"""Timeout of starts and waits, long enough for a busy machine."""
FIREFOX_PREFERENCES = {
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "marionette.port": 0,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}
WIDTH, HEIGHT = 1280, 900
MISSING = (
    "the tests in other browsers need Firefox, and WebKitGTK with its driver: run tests/browser/webdriver.py as root "
    "on Debian, or install firefox-esr, webkit2gtk-driver and xvfb, or set FIREFOX and WEBKIT_DRIVER to their paths. "
    "To leave these tests out: make test-all ENGINES=0"
)


def find_firefox() -> str | None:
    """The path of the Firefox in FIREFOX, or of one on PATH; None if there is none."""
    named = os.environ.get("FIREFOX")
    return shutil.which(named) if named else shutil.which("firefox-esr") or shutil.which("firefox")


def find_webkit_driver() -> str | None:
    """The path of the driver in WEBKIT_DRIVER, or of WebKitWebDriver on PATH; None if there is none."""
    return shutil.which(os.environ.get("WEBKIT_DRIVER") or "WebKitWebDriver")


Send = Callable[[str, dict[str, Any]], Any]
"""Sends a Marionette command with its parameters, and returns the value of its answer."""


class Window:
    """A window of a browser: the few commands that the tests need."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def open(self, address: str) -> None:
        """Open an address, and wait until it is loaded."""
        self._send("WebDriver:Navigate", {"url": address})

    def evaluate(self, expression: str, *arguments: Any) -> Any:
        """The value of a JavaScript expression, in which `arguments` are available."""
        return self._send("WebDriver:ExecuteScript", {"script": f"return {expression}", "args": list(arguments)})

    def wait_for(self, expression: str, *arguments: Any) -> None:
        """Wait until a JavaScript expression is true; AssertionError with the page's text if it takes too long."""
        until = time.monotonic() + PATIENCE_SECONDS
        while not self.evaluate(expression, *arguments):
            assert time.monotonic() < until, f"{expression}: {self.evaluate('document.body.innerText')[-1500:]!r}"
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """Click the first element that a CSS selector matches."""
        self.evaluate("document.querySelector(arguments[0]).click()", selector)

    def type(self, selector: str, text: str) -> None:
        """Type into a text field, character by character, at the end of what it contains."""
        self.evaluate("document.querySelector(arguments[0]).focus()", selector)
        self.evaluate("document.activeElement.selectionStart = document.activeElement.value.length")
        for character in text:
            self.evaluate("document.execCommand('insertText', false, arguments[0])", character)


@contextmanager
def firefox(folder: Path) -> Iterator[Window]:
    """Run a headless Firefox with a profile in `folder`."""
    executable = find_firefox()
    if executable is None:
        pytest.fail(MISSING, pytrace=False)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in FIREFOX_PREFERENCES.items()]
    (folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
    command = [executable, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
    size = {"MOZ_HEADLESS_WIDTH": str(WIDTH), "MOZ_HEADLESS_HEIGHT": str(HEIGHT)}
    with running(command, folder / "firefox.log", {"HOME": str(folder)} | size) as process:
        address = ("127.0.0.1", _port_of(folder / "MarionetteActivePort", process))
        with (
            socket.create_connection(address, timeout=PATIENCE_SECONDS) as connection,
            connection.makefile("rb") as stream,
        ):
            marionette = _Marionette(connection, stream)
            marionette.send("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {"pageLoadStrategy": "normal"}}})
            yield Window(marionette.send)


@contextmanager
def webkit(folder: Path) -> Iterator[Window]:
    """Run WebKitGTK's MiniBrowser through its driver, in a virtual screen where Xvfb is installed."""
    driver = find_webkit_driver()
    if driver is None:
        pytest.fail(MISSING, pytrace=False)
    with ExitStack() as stack:
        environment = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "LIBGL_ALWAYS_SOFTWARE": "1"}
        if shutil.which("Xvfb"):
            environment |= {"DISPLAY": stack.enter_context(_virtual_screen(folder)), "GDK_BACKEND": "x11"}
        port = free_port()
        process = stack.enter_context(running([driver, "-p", str(port)], folder / "webkit.log", environment))
        session = _WebKitSession(f"http://127.0.0.1:{port}", process)
        stack.callback(session.close)
        session.send("WebDriver:SetWindowRect", {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT})
        yield Window(session.send)


@contextmanager
def _virtual_screen(folder: Path) -> Iterator[str]:
    """Run an Xvfb on a free display, and give the display's name."""
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-nolisten", "tcp"]
    with running(command, folder / "xvfb.log", {}, pass_fds=[write]), os.fdopen(read) as numbers:
        os.close(write)
        yield f":{numbers.readline().strip()}"


def _port_of(file: Path, process: "subprocess.Popen[bytes]") -> int:
    """The port that Firefox writes to a file once it listens."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not (file.is_file() and (written := file.read_text().strip())):
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError("Firefox did not start")
        time.sleep(0.05)
    return int(written)


class _Marionette:
    """A connection to Firefox: messages are JSON lists behind their length and a colon."""

    def __init__(self, connection: socket.socket, stream: BinaryIO) -> None:
        self.connection, self.stream, self.last = connection, stream, 0
        self._receive()  # Firefox introduces itself

    def send(self, command: str, parameters: dict[str, Any]) -> Any:
        """Send a command and return its value; RuntimeError if it fails."""
        self.last += 1
        message = json.dumps([0, self.last, command, parameters]).encode()
        self.connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, value = self._receive()
        if error is not None:
            raise RuntimeError(f"{command}: {error['error']}: {error['message']}")
        return value["value"] if isinstance(value, dict) and set(value) == {"value"} else value

    def _receive(self) -> Any:
        digits = b""
        while (digit := self.stream.read(1)) != b":":
            if not digit:
                raise RuntimeError("Firefox has closed the connection")
            digits += digit
        return json.loads(self.stream.read(int(digits)))


class _WebKitSession:
    """A session with WebKitWebDriver, which speaks HTTP; commands have the names that they have in Marionette."""

    PATHS: ClassVar = {
        "WebDriver:Navigate": "url",
        "WebDriver:ExecuteScript": "execute/sync",
        "WebDriver:SetWindowRect": "window/rect",
    }

    def __init__(self, address: str, process: "subprocess.Popen[bytes]") -> None:
        self.address = f"{address}/session"
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                session = self._ask("POST", "", {"capabilities": {"alwaysMatch": {}}})
                break
            except urllib.error.URLError:
                if process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)
        self.address += f"/{session['sessionId']}"

    def send(self, command: str, parameters: dict[str, Any]) -> Any:
        """Send a command and return its value; RuntimeError if it fails."""
        return self._ask("POST", f"/{self.PATHS[command]}", parameters)

    def close(self) -> None:
        """End the session, and with it the browser."""
        self._ask("DELETE", "")

    def _ask(self, method: str, path: str, values: dict[str, Any] | None = None) -> Any:
        body = None if values is None else json.dumps(values).encode()
        request = urllib.request.Request(
            self.address + path, data=body, method=method, headers={"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.read().decode(errors='replace')}") from None


def main() -> None:
    """Install what is missing, and print the paths; SystemExit if something is missing after that."""
    has_screen = os.environ.get("DISPLAY") or shutil.which("Xvfb")
    if not (find_firefox() and find_webkit_driver() and has_screen):
        install_packages("firefox-esr", "webkit2gtk-driver", "xvfb")
    paths = find_firefox(), find_webkit_driver()
    if None in paths:
        sys.exit(MISSING)
    print(*paths)


if __name__ == "__main__":
    main()
