"""The page Heads in a browser."""

import re

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import CHART, click_plot, query, settle, visit, wait_until_steady, written
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, ablate, ablate_each

TEXT = "the bank raised its rates after the report"


def test_the_board_shows_the_librarys_numbers_and_a_click_switches_and_selects(
    page: Page, server: Server, answers: Predictor
) -> None:
    visit(page, server, "heads", text=TEXT)
    effects = ablate_each(answers, TEXT)
    expected = 100 * np.column_stack([effects.heads, effects.feed_forward]).ravel()
    np.testing.assert_allclose(written(page, "chart_board"), expected, atol=0.0501)
    for width, size in ((1920, "22px"), (1280, "16px")):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.locator("[class*='st-key-chart_board'] .heatmap-label text").first).to_have_css("font-size", size)
    wait_until_steady(page)  # the board is resized after it is drawn
    for column, head in ((1.5, 1), (0.5, 0), (0.5, 0)):  # a click switches this head off and no other
        box = page.locator(f'[class*="st-key-chart_board"] {CHART} .nsewdrag').bounding_box()
        assert box
        click_plot(page, box["x"] + box["width"] * column / 3.4, box["y"] + box["height"] * 0.25)
        expect(page.get_by_role("heading", name=f"Head 1.{head + 1}", exact=True)).to_be_visible()
        expect(page.get_by_text(re.compile(f"(Without|Of all heads,) head 1.{head + 1}"))).to_be_visible()
        settle(page)
        assert query(page)["switched"] == f"1.{head + 1}"
    result = ablate(answers, TEXT, [[Ablation("head", "zero", 0, 0)]])
    two = np.argsort(-np.maximum(result.original, result.changed[0]))[:2]
    order = two[np.argsort(-result.original[two])]
    expected_bars = [*result.original[order], *result.changed[0][order]]
    np.testing.assert_allclose(written(page, "chart_moved"), 100 * np.array(expected_bars), atol=0.0501)


def test_on_a_phone_the_changed_prediction_is_in_sight_of_the_board_and_the_choices_are_explained(
    page: Page, server: Server, answers: Predictor
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, server, "heads", text=TEXT, switched="1.2")
    board = page.locator(f'[class*="st-key-chart_board"] {CHART}')
    outcome = page.locator(".st-key-lead p")
    outcome.scroll_into_view_if_needed()
    above, below = outcome.bounding_box(), board.bounding_box()
    assert above and below
    assert 0 <= below["y"] - (above["y"] + above["height"]) < 60, "directly above the board"
    before = ablate(answers, TEXT, [()]).original.max()
    expect(outcome).to_contain_text(f"{before:.1%}".replace("%", "\u00a0%"))
    page.locator('.st-key-switch_heads [data-testid="stTooltipIcon"]').hover()
    expect(page.get_by_text("each token attends to all tokens equally")).to_be_visible()


def test_the_addresses_of_former_pages_lead_on_with_their_parameters(page: Page, server: Server) -> None:
    visit(page, server, "lens", wait_for=CHART, text=TEXT)
    expect(page).to_have_url(re.compile(r"/steps\?.*step=lens"))
    visit(page, server, "switchboard", text=TEXT, switched="1.2")
    expect(page).to_have_url(re.compile(r"/heads\?.*switched=1\.2"))
    expect(page.get_by_role("heading", name="Head 1.2")).to_be_visible()
