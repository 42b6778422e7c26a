"""The page Classify in a browser."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.browser.conftest import Server
from tests.browser.visiting import query, settle, text_box, visit, wait_until_steady
from txcls.inference.predictor import Predictor
from txcls.inspection.ablation import Ablation, ablate


def test_a_classifier_is_downloaded_as_a_page_that_answers(
    context: BrowserContext, server: Server, answers: Predictor, tmp_path: Path
) -> None:
    page = context.new_page()
    visit(page, server, text="shares fell")
    page.get_by_text("as a file that needs no server").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download ag_news.html").click()
    download.value.save_as(tmp_path / "ag_news.html")
    page.close()
    assert context.browser is not None
    offline_page = context.browser.new_page()
    offline_page.goto((tmp_path / "ag_news.html").as_uri() + "#text=shares+fell")
    expect(offline_page.locator("#answer")).to_contain_text(str(answers.predict(["shares fell"])[0].label))
    offline_page.close()


PICTURE = ".picture[data-read] .machine-bars"
SET_TEXT = "(box, text) => Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(box, text)"
"""Set a text box's text without an event."""


def test_on_a_phone_the_first_window_has_the_prediction_and_the_first_layer(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(server.address)  # as a newcomer, with the introduction
    page.wait_for_selector(PICTURE)
    settle(page)
    ends = page.locator(".machine-ribbons").first.bounding_box()
    assert ends and ends["y"] + ends["height"] <= 844
    expect(page.locator(".machine-play")).to_be_in_viewport(ratio=1)
    page.locator(".machine-play").click()
    expect(page.get_by_role("button", name="Previous part")).to_be_visible()


def percentages(probabilities: Iterable[float]) -> list[str]:
    return [f"{probability:.1%}".replace("%", "\u00a0%") for probability in probabilities]


@pytest.mark.smoke
def test_a_typed_text_is_classified_and_goes_into_the_url(page: Page, server: Server, answers: Predictor) -> None:
    text = "the goalkeeper saved a late penalty"
    visit(page, server)
    text_box(page).fill("")
    text_box(page).press_sequentially(text, delay=5)
    expect(page.locator(".txcls-text")).to_have_text(text)
    expect(page.locator(".txcls-answer")).to_contain_text(str(answers.predict([text])[0].label))
    settle(page)
    assert query(page)["text"] == text


def test_typing_right_after_loading_appends_to_the_text(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/?text=the+bank+raised+its+rates")
    page.wait_for_selector(PICTURE)
    text_box(page).press("End")
    text_box(page).press_sequentially(" again and again", delay=40)
    expect(page.locator(".txcls-text")).to_have_text("the bank raised its rates again and again")
    settle(page)
    expect(text_box(page)).to_have_value("the bank raised its rates again and again")


def test_a_text_box_that_the_browser_draws_late_holds_the_text_of_the_link(page: Page, server: Server) -> None:
    """The picture triggers another run when it loads, in which Streamlit would start with an empty box."""
    held_requests: list[Route] = []
    page.route(re.compile("/TextArea[^/]*js$"), lambda route: held_requests.append(route))
    page.goto(f"{server.address}/?text=the+bank+raised+its+rates")
    page.wait_for_selector(PICTURE)
    settle(page)
    assert len(held_requests) == 1 and not text_box(page).count()
    held_requests[0].continue_()
    expect(text_box(page)).to_have_value("the bank raised its rates")


def test_the_picture_follows_the_text_box_before_the_server_does_and_a_link_restores_the_heads_switched_off(
    page: Page, server: Server, answers: Predictor
) -> None:
    visit(page, server, text="the bank", wait_for=PICTURE)
    before = page.locator(".txcls-text").inner_text()
    text, numbers = "ministers met to end the dispute", page.locator(".machine-bars .number")
    text_box(page).evaluate(
        f"""(box, text) => {{
          ({SET_TEXT})(box, text);
          box.dispatchEvent(new InputEvent("input", {{bubbles: true, composed: true, isComposing: true}}));
        }}""",
        text,
    )  # nothing is submitted during IME composition
    expect(page.locator(".picture")).to_have_attribute("data-read", text)
    result = ablate(answers, text, [[Ablation("head", "zero", 1, 0)]])
    order = np.argsort(-result.original, kind="stable")  # classes keep their order
    assert numbers.all_inner_texts() == percentages(result.original[order])
    assert page.locator(".txcls-text").inner_text() == before
    visit(page, server, text=text, wait_for=PICTURE)
    page.locator('.machine-head[data-head="2.1"]').click()
    page.wait_for_url("**switched=2.1**")
    settle(page)
    expect(numbers).to_have_text(percentages(result.changed[0][order]))
    page.reload()
    page.wait_for_selector(".machine-bars .then")
    expect(numbers).to_have_text(percentages(result.changed[0][order]))
    page.locator('.machine-head[data-head="2.1"]').click()
    page.wait_for_selector(".machine-bars .then", state="detached")
    page.wait_for_function("!location.search.includes('switched')")


def test_text_box_and_the_whole_picture_are_on_the_first_screen(page: Page, server: Server) -> None:
    for width, height in ((1280, 800), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        for times in (1, 4):  # fewer words than lanes, and more
            text = " ".join(["the bank raised its rates after the report"] * times)
            visit(page, server, text=text, wait_for=PICTURE)
            wait_until_steady(page)
            for place in (text_box(page), page.locator(".machine-stage")):
                box = place.bounding_box()
                assert box and box["y"] >= 0 and box["y"] + box["height"] <= height, (width, times)


def test_an_unknown_word_is_replaced_by_a_known_one(page: Page, server: Server) -> None:
    visit(page, server, checkpoint="reports", text="Chelsea beat City.")
    page.get_by_role("button", name="Chelsea", exact=True).click()
    page.get_by_role("menuitem", name="Rovers").click()
    expect(page.locator('[class*="st-key-text_box"] textarea')).to_have_value("Rovers beat City.")
    settle(page)
