"""The app below a path of its host, as behind a reverse proxy that passes on only `/demo/`."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.app.tiny import save_tiny_checkpoints
from tests.browser.conftest import Server, watched
from tests.browser.server import BASE_PATH, serve
from tests.browser.visiting import choose_page, text_box, visit

pytestmark = pytest.mark.timeout(400)


def test_links_addresses_and_downloads_work_below_a_path(browser: Browser, tmp_path: Path) -> None:
    save_tiny_checkpoints(tmp_path / "checkpoints")
    environment = {"TXCLS_CHECKPOINTS": str(tmp_path / "checkpoints"), BASE_PATH: "demo"}
    log = tmp_path / "server.log"
    with serve(log, environment=environment) as address:
        server = Server(address, log)
        with watched(browser, server, accept_downloads=True) as context:
            page = context.new_page()
            visit(page, server)
            choose_page(page, "Inside", "Attention")
            page.wait_for_url("**/demo/attention?*")
            visit(page, server, "attention", text="the bank raised its rates")
            expect(text_box(page)).to_have_value("the bank raised its rates")
            page.goto(f"{address}/train?text=the+bank")
            page.wait_for_url("**/demo/playground?*")
            with page.expect_download() as downloading:
                page.get_by_role("button", name="Download this page").click()
            assert downloading.value.path().read_text("utf-8").startswith("<!doctype html>")
            visit(page, server, "playground", wait_for="iframe")
            data = page.frame_locator("iframe").locator("#page-data").text_content()
            fetched = """async (address) => {
              const response = await fetch(new URL(address, document.baseURI));
              return [response.status, new URL(response.url).pathname, (await response.arrayBuffer()).byteLength];
            }"""
            encoder = json.loads(data or "")["encoder"]
            assert page.evaluate(fetched, encoder["address"]) == [200, f"/demo/{encoder['address']}", encoder["bytes"]]
