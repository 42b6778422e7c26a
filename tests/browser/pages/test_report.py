"""The page Report in a browser."""

from playwright.sync_api import Page

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import visit


def test_on_a_phone_the_confusion_matrix_is_below_the_metrics(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, server, "report", checkpoint=PLAIN)
    metrics = page.locator("[data-testid=stMetric]").bounding_box()
    matrix = page.locator(".st-key-chart_confusion").bounding_box()
    assert metrics and matrix and metrics["y"] + metrics["height"] <= matrix["y"]
    assert matrix["x"] >= 0 and matrix["x"] + matrix["width"] <= 390
