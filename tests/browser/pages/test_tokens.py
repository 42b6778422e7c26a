"""The page Tokens in a browser."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import query, settle, text_box, visit


def test_tokens_follow_the_typing(page: Page, server: Server) -> None:
    visit(page, server, "tokens", wait_for=".txcls-merges")
    text_box(page).fill("The <b>goalkeeper</b> saved a zyzzyva")
    expect(page.locator(".txcls-edits").first).to_contain_text("<b>")
    expect(page.locator(".txcls-chip.unknown").first).to_contain_text("zyzzyva")
    expect(page.locator("ins").first).to_be_visible()
    settle(page)
    assert query(page)["text"] == "The <b>goalkeeper</b> saved a zyzzyva"
    assert page.locator(".txcls-text script, .txcls-text b").count() == 0


def test_slider_takes_merges_back_and_a_typed_word_is_followed(page: Page, server: Server) -> None:
    visit(page, server, "tokens", wait_for=".txcls-merges", text="the goalkeeper saved a late penalty")
    slider = page.locator('[class*="st-key-merges_"] input[type=range]')
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text("before any merge")).to_be_visible()
    expect(page.locator(".txcls-merges .now")).to_have_count(0)
    slider.press("ArrowRight")
    expect(page.get_by_text(re.compile("^Merge 1 of"))).to_be_visible()
    expect(page.locator(".txcls-chip.new")).to_have_count(1)
    box = page.locator('[class*="st-key-merge_word_"] input')
    box.fill("striker")
    box.press("Enter")
    expect(page.locator(".txcls-merges tbody tr").last).to_contain_text("␣s · t · r · i · k")
    settle(page)
