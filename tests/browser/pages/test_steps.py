"""The page Step by step in a browser: keys, clicks, and every number compared with the library's."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.app.tiny import LEARNED, PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, click_plot, query, settle, text_box, visit
from txcls.inspection.walk import Walk, walk_through
from txcls.inspection.walk.arithmetic import number
from txcls.predictor import Predictor

TEXT = "the bank raised its rates again"
SOURCES = "[...document.querySelectorAll('.katex annotation')].map((one) => one.textContent)"


@pytest.fixture(scope="session")
def walk(server: Server) -> Walk:
    return walk_through(Predictor.load(server.log.parent / "checkpoints" / PLAIN), TEXT)


def turn(page: Page, key: str, *, to: str) -> None:
    """Press a key that turns to another step; again if the page was just drawn and did not listen yet."""
    heading = page.locator("h3").first
    for _ in range(5):
        page.keyboard.press(key)
        try:
            expect(heading).to_contain_text(to, timeout=12_000)
        except AssertionError:
            continue
        return
    expect(heading).to_contain_text(to)


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


def test_a_link_opens_the_step_and_typing_stays_on_it(page: Page, server: Server) -> None:
    visit(page, server, "steps", checkpoint=LEARNED, text=TEXT, step="softmax", layer=2, head=3)
    expect(page.get_by_role("heading", name="Layer 2 · Softmax: the attention pattern · head 3")).to_be_visible()
    text_box(page).fill("voters went to the polls")
    page.wait_for_url(re.compile("voters"))
    expect(page.get_by_role("heading", name="Layer 2 · Softmax: the attention pattern · head 3")).to_be_visible()
    settle(page)
    assert query(page)["step"] == "softmax"
    page.locator("h1").click()  # leave the text box, where the key scrolls
    turn(page, "PageDown", to="Layer 2 · Weighted sum")  # submitting text must leave no key held down
