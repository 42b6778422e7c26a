"""The app in an https frame of another site, as a Space of Hugging Face shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.tiny import save_tiny_checkpoints
from tests.browser.conftest import PATIENCE_MS
from tests.browser.secure import make_certificate, over_https
from tests.browser.server import serve, serve_folder

AROUND = """<!doctype html><title>Around</title>
<script>sent = []; addEventListener("message", ({data}) => sent.push(data));</script>
<iframe src="ADDRESS" width="1200" height="900"></iframe>"""
"""A page that shows the app in a frame, and collects what it sends."""

pytestmark = pytest.mark.timeout(400)


@dataclass
class Framed:
    """The app's address, and that of a page on another site that shows it in a frame."""

    app: str
    around: str


@pytest.fixture(scope="module")
def framed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Framed]:
    """Both over https; 127.0.0.1 and localhost are different sites."""
    folder = tmp_path_factory.mktemp("framed")
    save_tiny_checkpoints(folder / "checkpoints")
    certificate = make_certificate(folder)
    environment = {"TXCLS_CHECKPOINTS": str(folder / "checkpoints")}
    with (
        serve_folder(folder) as folder_port,
        serve(folder / "server.log", environment=environment) as app,
        over_https(app, certificate) as app_port,
        over_https(f"http://127.0.0.1:{folder_port}", certificate) as platform_port,
    ):
        address = f"https://127.0.0.1:{app_port}"
        (folder / "course.html").write_text(AROUND.replace("ADDRESS", f"{address}/"), "utf-8")
        yield Framed(address, f"https://localhost:{platform_port}/course.html")


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, ignore_https_errors=True)
    context.set_default_timeout(3 * PATIENCE_MS)  # the server's first visitor waits for its imports
    yield context.new_page()
    context.close()


def test_the_app_works_in_a_frame_of_another_site(visitor: Page, framed: Framed) -> None:
    visitor.goto(framed.around)
    box = visitor.frame_locator("iframe").locator('[class*="st-key-text_box"] textarea')
    box.fill("the bank raised its rates")
    expect(visitor.frame_locator("iframe").locator(".txcls-text")).to_have_text("the bank raised its rates")
    assert visitor.evaluate("sent.filter(({queryString}) => queryString !== undefined)") == [], "it is no Space"


def test_the_address_around_a_space_shows_the_view(visitor: Page, framed: Framed) -> None:
    space = "https://huggingface.co/spaces/somebody/txcls"
    page = AROUND.replace("ADDRESS", f"{framed.app}/?text=the+bank")
    visitor.route(f"{space}*", lambda route: route.fulfill(body=page, content_type="text/html"))
    visitor.context.grant_permissions(["local-network-access"], origin="https://huggingface.co")
    visitor.goto(space)
    box = visitor.frame_locator("iframe").locator('[class*="st-key-text_box"] textarea')
    expect(box).to_have_value("the bank")
    box.fill("the bank raised its rates")
    visitor.wait_for_function(
        "sent.some(({queryString}) => new URLSearchParams(queryString).get('text') === 'the bank raised its rates')"
    )
    assert visitor.frames[1].evaluate("document.documentElement.translate") is False
