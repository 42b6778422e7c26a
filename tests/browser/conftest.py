"""One server and one Chromium for all tests; errors in a page and requests to other hosts fail the test."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.app.film import FILMED, train_with_snapshots
from tests.app.reports import save_reports_model
from tests.app.tiny import PLAIN, fake_metrics, save_tiny_checkpoints
from tests.browser.chromium import find_chromium
from tests.browser.exported import HOSTILE_NAMES, Open
from tests.browser.server import CHROMIUM_ARGS, serving
from tests.conftest import make_checkpoint
from txcls.checkpoint.checkpoint import save_checkpoint
from txcls.inference.predictor import Predictor
from txcls.web.assemble import script
from txcls.web.export import export_page
from txcls.web.playground import export_playground

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

WITHOUT = (
    "the browser tests need a Chromium and there is none: install one (Debian: apt-get install chromium; anywhere: "
    "python -m playwright install chromium), or leave them out on purpose: `make test BROWSER=0`, or TXCLS_BROWSER=0"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not item.get_closest_marker("smoke"):
                item.add_marker(pytest.mark.slow)
            if os.environ.get("TXCLS_BROWSER") == "0":
                item.add_marker(pytest.mark.skip(reason="TXCLS_BROWSER=0"))


@dataclass
class Server:
    """The address of the app, the file with its output, and its process."""

    address: str
    log: Path
    pid: int

    def complaints(self) -> list[str]:
        """The lines of the server's output that report an error."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if any(word in line for word in ("Traceback", "Error", "Exception", "ERROR"))]


@dataclass
class Watch:
    """Collects the errors and foreign requests of the pages in one test."""

    problems: list[str] = field(default_factory=list)

    def on(self, page: "Page", host: str) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        page.on("request", lambda request: self._left(request.url, host))
        page.on("websocket", lambda socket: self._left(socket.url, host))

    def _console(self, message: "ConsoleMessage") -> None:
        # On a page below the root, Streamlit first tries its server at /PAGE/_stcore, gets a 404, then tries /_stcore.
        probing = "/_stcore/" in message.location.get("url", "") and "404" in message.text
        if (message.type == "error" or message.text.startswith("WARN:")) and not probing:  # "WARN:" is plotly's
            self.problems.append(f"console: {message.text} ({message.location.get('url')})")

    def _left(self, url: str, host: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.netloc != host:
            self.problems.append(f"request that leaves the machine: {url}")


PATIENCE_MS = 60_000
"""Timeout of waits and expectations, long enough for a busy machine; benchmarks measure speed."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    save_tiny_checkpoints(folder / "checkpoints")
    train_with_snapshots(folder / "checkpoints" / FILMED)
    save_reports_model(folder / "checkpoints" / "reports")
    log = folder / "server.log"
    with serving(log, environment={"TXCLS_CHECKPOINTS": str(folder / "checkpoints")}) as app:
        yield Server(app.address, log, app.pid)


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with the checkpoints of this repository."""
    log = tmp_path_factory.mktemp("shipped") / "server.log"
    folder = Path(__file__).parents[2] / "checkpoints"
    with serving(log, environment={"TXCLS_CHECKPOINTS": str(folder)}) as app:
        yield Server(app.address, log, app.pid)


@pytest.fixture(scope="session")
def answers(server: Server) -> Predictor:
    """The classifier that the server opens pages with, to compute what they should show."""
    return Predictor.load(server.log.parent / "checkpoints" / PLAIN)


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    executable = find_chromium()
    if executable is None:
        pytest.fail(WITHOUT, pytrace=False)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        yield started
        started.close()


@contextmanager
def watching(context: "BrowserContext", server: Server) -> Iterator[None]:
    """Close the pages opened in the block, and fail if they had errors or foreign requests, or if the server did."""
    watch, before = Watch(), len(server.complaints())

    def watch_page(page: "Page") -> None:
        watch.on(page, urlsplit(server.address).netloc)

    context.on("page", watch_page)
    yield
    context.remove_listener("page", watch_page)
    for page in context.pages:
        page.close()
    assert not watch.problems
    assert not server.complaints()[before:]


@contextmanager
def watched(browser: "Browser", server: Server, **settings: Any) -> "Iterator[BrowserContext]":
    """The browser context of another visitor; its pages are watched."""
    with browser.new_context(**settings) as context:
        context.set_default_timeout(PATIENCE_MS)
        with watching(context, server):
            yield context


@pytest.fixture(scope="session")
def warm_context(browser: "Browser") -> "Iterator[BrowserContext]":
    """A browser context for most tests, in which Streamlit's files are cached after the first page."""
    with browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.fixture
def context(warm_context: "BrowserContext", server: Server) -> "Iterator[BrowserContext]":
    """The shared browser context without cookies and stored values of earlier tests."""
    warm_context.clear_cookies()
    blank = warm_context.new_page()
    origin = {"origin": server.address, "storageTypes": "local_storage"}
    warm_context.new_cdp_session(blank).send("Storage.clearDataForOrigin", origin)
    blank.close()
    with watching(warm_context, server):
        yield warm_context


@pytest.fixture
def page(context: "BrowserContext") -> "Page":
    return context.new_page()


@pytest.fixture(scope="session")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Predictor]:
    """Two untrained classifiers, one with class names that contain markup."""
    root = tmp_path_factory.mktemp("checkpoints")
    checkpoint = make_checkpoint(root / "first", classes=HOSTILE_NAMES, positions="learned", max_length=24)
    figures, title = fake_metrics(HOSTILE_NAMES), {"title": HOSTILE_NAMES[1]}
    save_checkpoint(replace(checkpoint, metrics={"test": figures}, config=checkpoint.config.model_copy(update=title)))
    make_checkpoint(root / "second", n_heads=4, text={"tokenizer": "bpe", "max_vocabulary": 300}, max_length=40)
    return {name: Predictor.load(root / name) for name in ("first", "second")}


@pytest.fixture(scope="session")
def single(classifiers: dict[str, Predictor], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a single-file page on disk."""
    folders = [classifier.checkpoint.path for classifier in classifiers.values() if classifier.checkpoint.path]
    return export_page(folders, tmp_path_factory.mktemp("single") / "page", single_file=True).as_uri()


@pytest.fixture(scope="session")
def who_won(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of who_won, a single file on disk."""
    return export_page(["who_won"], tmp_path_factory.mktemp("who_won") / "page", single_file=True).as_uri()


@pytest.fixture(scope="session")
def playground(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the playground on disk, without the encoder."""
    return export_playground(tmp_path_factory.mktemp("playground") / "page").as_uri()


@contextmanager
def page_with(
    browser: "Browser", modules: Sequence[str], code: str = "", *, content: str = "", before: str = "null"
) -> "Iterator[Page]":
    """An empty page with modules of the exported pages, and code that uses them; `before` is evaluated first."""
    page = browser.new_page()
    page.set_content(f"<!doctype html>{content}")
    page.evaluate(before)
    page.add_script_tag(content=f"{script(*modules)}\n{code}\nglobalThis.ready = true;", type="module")
    page.wait_for_function("globalThis.ready")
    yield page
    page.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[Open]:
    """A function that opens an exported page and waits for its prediction; fails on errors and foreign requests."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    watch = Watch()

    def opened(address: str, *, offline: bool = False, **size: int) -> "Page":
        context.set_offline(offline)
        page = context.new_page()
        if size:
            page.set_viewport_size(size)  # type: ignore[arg-type]
        watch.on(page, address.split("/")[2])
        page.goto(address)
        page.wait_for_selector("html[data-answered]")
        return page

    yield opened
    context.close()
    assert not watch.problems


@contextmanager
def offline_page(browser: "Browser", **settings: Any) -> "Iterator[Page]":
    """A page without a network; errors and requests for anything other than a file fail the test."""
    watch = Watch()
    with browser.new_context(**settings) as context:
        context.set_default_timeout(PATIENCE_MS)
        context.set_offline(True)
        page = context.new_page()
        watch.on(page, "")
        yield page
    assert not watch.problems


@pytest.fixture
def offline(browser: "Browser") -> "Iterator[Page]":
    with offline_page(browser, viewport={"width": 1280, "height": 800}) as page:
        yield page
