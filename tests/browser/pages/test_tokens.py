"""The page Tokens in a browser."""

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
