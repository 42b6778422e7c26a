"""Features of all pages in a browser: typing, links, the menu, the back button, saved charts."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server, Watch
from tests.browser.visiting import CHART, choose_page, settle, text_box, visit, wait_until_steady
from txcls.inspection.tracing import trace_text
from txcls.predictor import Predictor


def test_what_is_typed_before_the_page_is_drawn_is_answered(page: Page, server: Server, answers: Predictor) -> None:
    page.goto(f"{server.address}/attention")
    text = "the goalkeeper saved a late penalty"
    text_box(page).fill(text)
    expect(page.get_by_text("Prediction:").first).to_contain_text(str(answers.predict([text])[0].label))
    page.wait_for_url(lambda url: "goalkeeper" in url)
    settle(page)
    assert text_box(page).input_value() == text


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


def test_on_a_phone_the_menu_closes_when_a_page_is_chosen_and_when_one_is_loaded(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    visit(page, server, "tokens", wait_for="h1")
    menu = page.locator('[data-testid="stSidebar"][data-collapsed="false"]')
    expect(menu).to_have_count(0)
    page.locator('[data-testid="stExpandSidebarButton"]').click()
    menu.wait_for()
    menu.get_by_role("link", name="Class lens").click()
    page.wait_for_url(re.compile("/lens"))
    page.wait_for_selector(CHART)
    expect(menu).to_have_count(0)
    page.locator('[data-testid="stExpandSidebarButton"]').click()
    menu.wait_for()
    page.reload()
    page.wait_for_selector(CHART)
    expect(menu).to_have_count(0)


def test_on_a_slow_phone_a_menu_opened_at_once_stays_open(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 6})
    visit(page, server, "tokens", wait_for="h1")
    page.locator('[data-testid="stExpandSidebarButton"]').click()
    page.wait_for_load_state("networkidle")
    settle(page)
    wait_until_steady(page)  # by then the script that closes the menu of a loaded page has run
    expect(page.locator('[data-testid="stSidebar"][data-collapsed="false"]')).to_be_visible()


def test_on_a_phone_the_controls_of_a_step_stand_near_the_top_with_the_step_below(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    visit(page, server, "steps", text="the bank raised its rates", step="scores")
    tops = [page.locator(selector).first.bounding_box() for selector in ("h1", ".st-key-step_next", "h3", "textarea")]
    places = [box["y"] for box in tops if box]
    assert len(places) == 4 and places == sorted(places) and places[2] < 500
    page.locator(".st-key-step_next button:visible").click()
    expect(page.locator("h3").first).to_contain_text("Mask")
    expect(page.locator("h3").first).to_be_in_viewport()
    expect(page.locator(".modebar-container").first).not_to_be_visible()


def test_in_lecture_mode_the_menu_comes_down_at_the_upper_edge_and_leads_to_a_slide(page: Page, server: Server) -> None:
    visit(page, server, "tokens", wait_for=".st-key-lecture_strip", mode="lecture", text="the bank raised its rates")
    section = page.locator('[data-testid="stTopNavSection"]', has_text="Inside")
    page.mouse.move(200, 400)
    expect(page.locator('[data-testid="stHeader"]')).to_have_css("opacity", "0")
    page.mouse.move(200, 2)
    expect(page.locator('[data-testid="stHeader"]')).to_have_css("opacity", "1")
    section.click()
    page.get_by_role("menuitem", name="Attention", exact=True).click()
    page.wait_for_url(re.compile("/attention.*mode=lecture"))
    settle(page)
    expect(page.locator(".st-key-lecture_strip textarea")).to_have_value("the bank raised its rates")
    page.mouse.move(200, 400)
    expect(page.locator('[data-testid="stHeader"]')).to_have_css("opacity", "0")


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
    for kind in ("PNG", "SVG", "CSV"):
        with page.expect_download() as saving:
            page.locator(".st-key-save_chart_map").get_by_role("button", name=f"as {kind}").click()
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


def test_the_watch_notices_console_errors_script_errors_and_foreign_requests(browser: Browser) -> None:
    watch = Watch()
    page = browser.new_page()
    watch.on(page, "127.0.0.1:1")
    page.evaluate("console.error('broken'); setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('http://elsewhere.invalid/font.woff2').catch(() => 0)")
    page.close()
    problems = " ".join(watch.problems)
    assert "broken" in problems and "thrown" in problems and "elsewhere.invalid" in problems
