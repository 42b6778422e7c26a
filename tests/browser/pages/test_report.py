"""The page Report in a browser."""

import pytest
from playwright.sync_api import Page

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import cells, settle, visit


@pytest.mark.smoke
def test_the_confusion_matrix_is_beside_the_metrics_in_a_wide_window_and_below_them_on_a_phone(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, server, "report", checkpoint=PLAIN)
    assert cells(page, "chart_confusion").shape == (4, 4)
    metrics, matrix = page.locator("[data-testid=stMetric]"), page.locator(".st-key-chart_confusion")
    left, right = metrics.bounding_box(), matrix.bounding_box()
    assert left and right and left["x"] + left["width"] <= right["x"] and right["y"] + right["height"] <= 800
    page.set_viewport_size({"width": 390, "height": 844})
    settle(page)
    above, below = metrics.bounding_box(), matrix.bounding_box()
    assert above and below and above["y"] + above["height"] <= below["y"]
