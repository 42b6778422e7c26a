"""The page Classify in a browser."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.app.tiny import MANY
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, query, settle, text_box, visit
from txcls.app.examples import EXAMPLES
from txcls.predictor import Predictor


def test_example_answers_with_one_click(page: Page, server: Server, answers: Predictor) -> None:
    visit(page, server)
    page.get_by_role("button", name=EXAMPLES[3].title).click()
    expect(text_box(page)).to_have_value(EXAMPLES[3].text)
    expect(page.locator(".txcls-answer")).to_contain_text(str(answers.predict([EXAMPLES[3].text])[0].label))


def test_second_checkpoint_is_picked_shared_and_put_away(page: Page, server: Server) -> None:
    visit(page, server, text="shares fell")
    page.locator(".st-key-versus_box input").click()
    page.get_by_role("option", name=re.compile(f"^{MANY} ")).click()
    expect(page.locator(".txcls-answer")).to_have_count(2)
    expect(page.get_by_text("Probably none of these")).to_be_visible()
    settle(page)
    assert query(page)["versus"] == MANY
    page.reload()
    expect(page.locator(".txcls-answer")).to_have_count(2)
    settle(page)
    page.locator(".st-key-versus_box").get_by_role("button", name=re.compile("clear", re.IGNORECASE)).click()
    expect(page.locator(".txcls-answer")).to_have_count(1)
    settle(page)
    assert "versus" not in query(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_many_classes_are_readable_at_any_width(context: BrowserContext, server: Server, width: int) -> None:
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 850})
    visit(page, server, checkpoint=MANY, k=20)
    names = page.locator(f".st-key-chart_bars {CHART} .annotation-text")
    expect(names).to_have_count(21)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
    chart = page.locator(".st-key-chart_bars").bounding_box()
    for name in names.all():
        box = name.bounding_box()
        assert box and chart and chart["x"] <= box["x"] and box["x"] + box["width"] <= chart["x"] + chart["width"]


def test_random_test_texts_are_drawn_and_drawn_anew(page: Page, server: Server) -> None:
    visit(page, server, checkpoint=MANY)
    page.get_by_text("Random test texts of").click()
    expect(page.locator(".txcls-drawn > div")).to_have_count(40)
    expect(page.get_by_text(re.compile(r"\d+ of 20 right"))).to_be_visible()
    before = page.locator(".txcls-drawn").text_content() or ""
    page.get_by_role("button", name="Draw others").click()
    expect(page.locator(".txcls-drawn")).not_to_have_text(before)
    settle(page)
