"""The app below a path of its host, as behind a reverse proxy that passes on only `/demo/`."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Server, watched
from tests.browser.server import BASE_PATH, serving
from tests.browser.visiting import choose_page, text_box, visit

pytestmark = pytest.mark.timeout(400)


def test_links_addresses_and_downloads_work_below_a_path(browser: Browser, server: Server, tmp_path: Path) -> None:
    environment = {"TXCLS_CHECKPOINTS": str(server.log.parent / "checkpoints"), BASE_PATH: "demo"}
    log = tmp_path / "server.log"
    with serving(log, environment=environment) as app:
        below, address = Server(app.address, log, app.pid), app.address
        with watched(browser, below, accept_downloads=True) as context:
            page = context.new_page()
            visit(page, below)
            choose_page(page, "Inside", "Attention")
            page.wait_for_url("**/demo/attention?*")
            visit(page, below, "attention", text="the bank raised its rates")
            expect(text_box(page)).to_have_value("the bank raised its rates")
            page.goto(f"{address}/train?text=the+bank")
            page.wait_for_url("**/demo/playground?*")
            with page.expect_download() as downloading:
                page.get_by_role("button", name="Download an empty playground").click()
            assert downloading.value.path().read_text("utf-8").startswith("<!doctype html>")
            visit(page, below, "playground", wait_for="iframe")
            data = page.frame_locator("iframe").locator("#page-data").text_content()
            fetched = """async (address) => {
              const response = await fetch(new URL(address, document.baseURI));
              return [response.status, new URL(response.url).pathname, (await response.arrayBuffer()).byteLength];
            }"""
            encoder = json.loads(data or "")["encoder"]
            assert page.evaluate(fetched, encoder["address"]) == [200, f"/demo/{encoder['address']}", encoder["bytes"]]
