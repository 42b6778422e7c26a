"""The page Language model in a browser."""

from playwright.sync_api import Page, expect

from tests.app.tiny import SAYS_WORDS
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, query, settle, text_box, visit


def test_a_word_is_blanked_by_a_click_and_by_the_keyboard(page: Page, server: Server) -> None:
    visit(page, server, "language", text="the goalkeeper saved a late penalty")
    strip = page.locator(".st-key-strip_fill")
    strip.get_by_role("button", name="saved", exact=True).click()
    expect(page.get_by_text("saved was in the text")).to_be_visible()
    expect(strip.locator("[aria-pressed=true]")).to_have_text("▁▁▁▁")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("late was in the text")).to_be_visible()
    settle(page)
    assert query(page)["blank"] == "5"
    assert strip.locator("button[tabindex='0']").count() == 1, "one tab stop, the arrows do the rest"
    page.reload()
    expect(page.get_by_text("late was in the text")).to_be_visible()
    text_box(page).fill("<b>shares</b> fell")
    expect(strip.locator("button")).to_have_count(2)
    expect(page.get_by_text("shares was in the text")).to_be_visible()
    settle(page)


def test_a_text_grows_by_bars_and_sampling_and_shrinks_again(page: Page, server: Server) -> None:
    visit(page, server, "language", part="continue", text="the bank", causal=SAYS_WORDS)
    added = page.locator(".st-key-strip_continue .added")
    for n in (1, 2, 3):  # a second click on the same bar does not undo the first
        bar = page.locator(f".st-key-chart_next {CHART} .bars .point path").first.bounding_box()
        assert bar
        page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
        expect(added).to_have_count(n)
        settle(page)
    page.get_by_role("button", name="Sample 10").click()
    expect(added).to_have_count(13)
    page.get_by_role("button", name="Undo").click()
    expect(added).to_have_count(12)
    settle(page)
    assert len(query(page)["added"].split(".")) == 12
    page.reload()
    expect(added).to_have_count(12)
    page.locator(".st-key-strip_continue").get_by_role("button", name="bank", exact=True).click()
    expect(page.get_by_text("bank was in the text")).to_be_visible()
    expect(added).to_have_count(0)
    page.get_by_role("button", name="Start again").click()
    expect(page.get_by_text("bank was in the text")).to_have_count(0)
    settle(page)
    assert "added" not in query(page) and "upto" not in query(page)
