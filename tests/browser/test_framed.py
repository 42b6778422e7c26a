"""The app in a frame of another site, as a Space of Hugging Face or a learning platform shows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, Server
from tests.browser.server import serve_folder

AROUND = """<!doctype html><title>Around</title>
<script>sent = []; addEventListener("message", ({data}) => sent.push(data));</script>
<iframe src="ADDRESS" width="1200" height="900"></iframe>"""
"""A page that shows the app in a frame, and collects what it sends."""

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(3 * PATIENCE_MS)  # the server's first visitor waits for its imports
    yield context.new_page()
    context.close()


def test_the_app_works_in_a_frame_of_another_site(visitor: Page, server: Server, tmp_path: Path) -> None:
    (tmp_path / "course.html").write_text(AROUND.replace("ADDRESS", f"{server.address}/"), "utf-8")
    with serve_folder(tmp_path) as port:
        visitor.goto(f"http://localhost:{port}/course.html")  # 127.0.0.1 and localhost are different sites
    box = visitor.frame_locator("iframe").locator('[class*="st-key-text_box"] textarea')
    box.fill("the bank raised its rates")
    expect(visitor.frame_locator("iframe").locator(".txcls-text")).to_have_text("the bank raised its rates")
    assert visitor.evaluate("sent.filter(({queryString}) => queryString !== undefined)") == [], "it is no Space"


def test_the_address_around_a_space_shows_the_view(visitor: Page, server: Server) -> None:
    space = "https://huggingface.co/spaces/somebody/txcls"
    page = AROUND.replace("ADDRESS", f"{server.address}/?text=the+bank&embed=true")
    visitor.route(f"{space}*", lambda route: route.fulfill(body=page, content_type="text/html"))
    visitor.context.grant_permissions(["local-network-access"], origin="https://huggingface.co")
    visitor.goto(space)
    box = visitor.frame_locator("iframe").locator('[class*="st-key-text_box"] textarea')
    expect(box).to_have_value("the bank")
    expect(visitor.frame_locator("iframe").locator('[data-testid="stTopNav"]:visible')).to_have_count(0)
    box.fill("the bank raised its rates")
    visitor.wait_for_function(
        "sent.some(({queryString}) => new URLSearchParams(queryString).get('text') === 'the bank raised its rates')"
    )
    assert visitor.frames[1].evaluate("document.documentElement.translate") is False
