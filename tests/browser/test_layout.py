"""Features of all pages in a browser: typing, links, the menu, the back button, saved charts."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, choose_page, settle, text_box, visit
from txcls.inference.predictor import Predictor
from txcls.inspection.tracing import trace_text


def test_text_is_carried_through_the_menu_and_browser_back_returns_to_the_text_before(
    page: Page, server: Server
) -> None:
    visit(page, server, text="shares fell")
    text_box(page).fill("a new chip doubles the speed of phones")
    expect(page.locator(".txcls-text")).to_have_text("a new chip doubles the speed of phones")
    settle(page)
    page.go_back()
    expect(text_box(page)).to_have_value("shares fell")
    settle(page)
    places = {"Tokens": "Inside", "What if": "Experiments", "Language model": "Language model", "Classify": "Try"}
    for name, section in places.items():
        choose_page(page, section, name)
        page.wait_for_url(re.compile(r"/(\?|$)" if name == "Classify" else f"/{name.split()[0].lower()}"))
        settle(page)
        marked = page.locator('[data-testid="stTopNavSection"] p', has_text=section)
        expect(marked).to_have_css("text-decoration-line", "underline")
        expect(text_box(page).first).to_have_value("shares fell")  # What if has a second box
    page.wait_for_url(re.compile("text=shares"))


def test_on_a_phone_the_menu_closes_when_a_page_is_chosen(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    visit(page, server, "tokens", wait_for="h1")
    menu = page.locator('[data-testid="stSidebar"][data-collapsed="false"]')
    expect(menu).to_have_count(0)
    page.locator('[data-testid="stExpandSidebarButton"]').click()
    menu.wait_for()
    menu.get_by_role("link", name="Positions").click()
    page.wait_for_url(re.compile("/positions"))
    page.wait_for_selector(CHART)
    expect(menu).to_have_count(0)


def test_an_attention_view_is_shared_as_a_link_and_its_map_saved_as_png_svg_and_csv(
    page: Page, server: Server, answers: Predictor
) -> None:
    visit(page, server, "attention", text="the bank raised its rates", layer=2, head=1)
    page.locator(".st-key-share button").first.click()
    link = page.locator('[data-testid="stPopoverBody"] code')
    expect(link).to_contain_text(f"/attention?checkpoint={PLAIN}&text=the+bank+raised+its+rates&layer=2&head=1")
    expect(page.get_by_alt_text("QR code of the link above")).to_be_visible()
    page.keyboard.press("Escape")
    files = {}
    page.get_by_text("Save", exact=True).press("Enter")  # the menu is reached by keyboard
    for kind in ("PNG", "SVG", "CSV"):
        with page.expect_download() as saving:
            page.get_by_role("button", name=re.compile(f"-map as {kind}")).click()
        files[kind] = Path(saving.value.path())
        assert saving.value.suggested_filename.startswith(PLAIN)
        assert saving.value.suggested_filename.endswith(f"-map.{kind.lower()}")
    assert files["PNG"].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(files["SVG"]).getroot().tag.endswith("svg")
    traced = trace_text(answers, "the bank raised its rates")
    rows = list(csv.DictReader(io.StringIO(files["CSV"].read_text("utf-8-sig"))))
    saved = {(row["y"], row["x"]): float(row["value"]) for row in rows}
    assert len(rows) == traced.attention[1, 0].size
    for query, weights in zip(traced.tokens, traced.attention[1, 0], strict=True):
        for key, weight in zip(traced.tokens, weights, strict=True):
            assert saved[query.text, key.text] == pytest.approx(float(weight), abs=1e-5)
