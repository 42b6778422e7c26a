"""The page Attention in a browser."""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.visiting import CHART, click_plot, query, settle, visit

TEXT = "the bank raised its rates after the report"


def test_clicking_a_map_in_the_grid_enlarges_that_head(page: Page, server: Server) -> None:
    visit(page, server, "attention", text="the bank raised its rates again")
    plot = page.locator(f".st-key-chart_grid {CHART} .nsewdrag").first
    box = plot.bounding_box()
    assert box
    click_plot(page, box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.7)
    expect(page.get_by_role("heading", name="Layer 2, head 2", exact=True)).to_be_visible()
    settle(page)
    assert query(page)["layer"] == "2" and query(page)["head"] == "2"
