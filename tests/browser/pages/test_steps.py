"""The page Step by step in a browser: keys, clicks, and every number compared with the library's."""

import pytest
from playwright.sync_api import Page

from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, click_plot, settle, visit
from txcls.inference.predictor import Predictor
from txcls.inspection.steps import Walk, walk_through
from txcls.inspection.steps.arithmetic import number

TEXT = "the bank raised its rates again"
SOURCES = "[...document.querySelectorAll('.katex annotation')].map((one) => one.textContent)"


@pytest.fixture(scope="session")
def walk(server: Server) -> Walk:
    return walk_through(Predictor.load(server.log.parent / "checkpoints" / PLAIN), TEXT)


def test_a_clicked_cell_has_its_arithmetic_shown(page: Page, server: Server, walk: Walk) -> None:
    visit(page, server, "steps", text=TEXT, step="scores", layer=2, head=2)
    plot = page.locator(f".st-key-chart_numbers {CHART} .nsewdrag").first
    box = plot.bounding_box()
    assert box
    click_plot(page, box["x"] + box["width"] * 4.5 / 6, box["y"] + box["height"] * 1.5 / 6)
    step = walk.steps[walk.find("scores", 1)]
    page.wait_for_function(f"{SOURCES}.some((one) => one.includes('S_{{2,5}}'))")
    settle(page)
    assert number(float(step.cells(1)[1, 4])) in page.evaluate(SOURCES)[-1]
