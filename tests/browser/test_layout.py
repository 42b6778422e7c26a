"""What all pages share, in a browser: typing that answers, links, the menu, the back button, charts that save."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Download, Page, expect

from tests.app.tiny import LEARNED, PLAIN
from tests.browser.conftest import Server, Watch
from tests.browser.visiting import CHART, choose_page, settle, text_box, visit, wait_until_steady
from txcls.predictor import Predictor


def answer(classifier: Predictor, text: str) -> str:
    return str(classifier.predict([text])[0].label)


def test_what_is_typed_before_the_page_is_drawn_is_answered(page: Page, server: Server, answers: Predictor) -> None:
    page.goto(f"{server.address}/attention")
    text = "the goalkeeper saved a late penalty"
    text_box(page).fill(text)
    expect(page.get_by_text("Prediction:").first).to_contain_text(answer(answers, text))
    page.wait_for_url(lambda url: "goalkeeper" in url)
    settle(page)
    assert text_box(page).input_value() == text


def test_empty_text_invites_and_script_is_only_text(page: Page, server: Server) -> None:
    visit(page, server)
    text_box(page).fill("")
    expect(page.get_by_text("Type a few words above")).to_be_visible()
    page.evaluate("window.harm = 0")
    text_box(page).fill("<script>window.harm = 1</script><img src=x onerror='window.harm = 1'> shares fell")
    expect(page.locator(".txcls-text")).to_contain_text("<script>window.harm = 1</script>")
    settle(page)
    assert page.evaluate("window.harm") == 0
    assert page.locator(".txcls-text script, .txcls-text img").count() == 0


def test_a_megabyte_is_answered_and_marked_as_cut(page: Page, server: Server) -> None:
    visit(page, server)
    text_box(page).fill("shares fell after the report " * 35_000)
    expect(page.locator(".txcls-cut").first).to_be_visible()
    expect(page.get_by_text("too long for the address bar")).to_be_visible()
    page.get_by_role("link", name="What is each part worth?").click()
    page.wait_for_selector(CHART)
    settle(page)


def test_deep_link_and_reload_open_the_same_view(page: Page, server: Server) -> None:
    visit(page, server, "attention", checkpoint=LEARNED, text="voters went to the polls", layer=2, head=3)
    for _ in range(2):
        expect(page.get_by_role("heading", name="Layer 2, head 3", exact=True)).to_be_visible()
        expect(text_box(page)).to_have_value("voters went to the polls")
        expect(page.locator(".txcls-facts")).to_contain_text(LEARNED)
        page.reload()
        page.wait_for_selector(CHART)
        settle(page)


def test_state_is_carried_through_the_menu_and_back_again(page: Page, server: Server) -> None:
    visit(page, server)
    text_box(page).fill("a new chip doubles the speed of phones")
    expect(page.locator(".txcls-text")).to_have_text("a new chip doubles the speed of phones")
    places = {"Tokens": "Inside", "What if": "Experiments", "Language model": "Language model", "Classify": "Try"}
    for name, section in places.items():
        choose_page(page, section, name)
        page.wait_for_url(re.compile(r"/(\?|$)" if name == "Classify" else f"/{name.split()[0].lower()}"))
        settle(page)
        marked = page.locator('[data-testid="stTopNavSection"] p', has_text=section)
        expect(marked).to_have_css("text-decoration-line", "underline")
        expect(text_box(page)).to_have_value("a new chip doubles the speed of phones")
    page.wait_for_url(re.compile("text=a"))


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
    wait_until_steady(page)  # the script that closes the menu of a loaded page has run by then
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


def test_browser_back_returns_to_the_text_before(page: Page, server: Server) -> None:
    visit(page, server, text="shares fell")
    text_box(page).fill("voters went to the polls")
    expect(page.locator(".txcls-text")).to_have_text("voters went to the polls")
    settle(page)
    page.go_back()
    expect(text_box(page)).to_have_value("shares fell")


def test_bad_parameters_are_explained_not_raised(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/attention?layer=99&k=abc&head=-1&checkpoint=%00%FF&text=shares%ED%A0%80fell")
    page.wait_for_selector(CHART)
    settle(page)
    expect(page.get_by_text("no layer 99")).to_be_visible()
    expect(page.get_by_text("k=abc")).to_be_visible()


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_chart_is_saved_in_both_formats(page: Page, server: Server, kind: str, tmp_path: Path) -> None:
    visit(page, server)
    with page.expect_download() as caught:
        page.locator(".st-key-save_chart_bars").get_by_role("button", name=f"as {kind}").click()
    download: Download = caught.value
    saved = tmp_path / download.suggested_filename
    download.save_as(saved)
    assert saved.name == f"{PLAIN}-bars.{kind.lower()}"
    if kind == "PNG":
        assert saved.read_bytes().startswith(b"\x89PNG")
    else:
        assert ET.parse(saved).getroot().tag.endswith("svg")


def test_the_watch_notices_console_errors_script_errors_and_foreign_requests(browser: Browser) -> None:
    watch = Watch()
    page = browser.new_page()
    watch.on(page, "127.0.0.1:1")
    page.evaluate("console.error('broken'); setTimeout(() => { throw new Error('thrown') })")
    page.evaluate("fetch('http://elsewhere.invalid/font.woff2').catch(() => 0)")
    page.close()
    problems = " ".join(watch.problems)
    assert "broken" in problems and "thrown" in problems and "elsewhere.invalid" in problems
