"""The page Positions in a browser."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import CHART, settle, visit
from txcls.inference.predictor import Predictor


def test_words_are_dragged_and_moved_by_keys_and_the_models_asked_again(page: Page, server: Server) -> None:
    text = "shares of the bank fell"
    visit(page, server, "positions", checkpoint="who_won", text=text)
    words = page.locator(".st-key-order_words button")
    expect(words).to_have_text(text.split()[::-1])
    answers = [Predictor.load(server.log.parent / "checkpoints" / name) for name in ("who_won", "who_won_none")]

    def expect_answers(order: str) -> None:
        expect(words).to_have_text(order.split())
        for row, classifier in zip((0, 2), answers, strict=True):
            best = classifier.predict([order])[0].ranked[0]
            cell = page.locator("table").first.locator("tbody tr").nth(row).locator("td").nth(2)
            expect(cell).to_have_text(f"{best.label} {best.probability:.1%}".replace("%", "\u00a0%"))
        settle(page)

    expect_answers("fell bank the of shares")
    words.first.scroll_into_view_if_needed()
    first, last = words.first.bounding_box(), words.last.bounding_box()
    assert first and last
    page.mouse.move(first["x"] + 5, first["y"] + 5)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"] - 3, last["y"] + 5, steps=8)
    page.mouse.up()
    expect_answers("bank the of shares fell")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect_answers("bank the fell of shares")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowLeft")
    expect_answers("the bank fell of shares")
    expect(words.first).to_be_focused()
    page.get_by_role("button", name="Original order").click()
    expect_answers(text)
    assert words.locator("xpath=self::*[@tabindex='0']").count() == 1, "one tab stop, the arrows do the rest"


def test_a_low_window_shows_the_axis_of_the_map(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, server, "positions", checkpoint="who_won", text="the bank", wait_for=f".st-key-chart_positions {CHART}")
    settle(page)
    expect(page.locator(".st-key-chart_positions .xtitle")).to_be_in_viewport(ratio=1)
