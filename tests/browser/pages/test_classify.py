"""The page Classify in a browser."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page, Route, WebSocket, expect

from tests.app.reports import REPORT, atlas
from tests.app.tiny import MANY
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, query, settle, text_box, visit, wait_until_steady
from txcls.inspection.ablation import Change, ablate
from txcls.inspection.stories import head_chips
from txcls.predictor import Predictor


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
    alone = context.browser.new_page()
    alone.goto((tmp_path / "ag_news.html").as_uri() + "#text=shares+fell")
    expect(alone.locator("#answer")).to_contain_text(str(answers.predict(["shares fell"])[0].label))
    alone.close()


PICTURE = ".picture[data-read] .machine-bars"


def percentages(probabilities: Iterable[float]) -> list[str]:
    return [f"{probability:.1%}".replace("%", " %") for probability in probabilities]


@pytest.mark.parametrize("seconds", [0, 0.3, 1])
def test_what_is_typed_right_after_loading_follows_the_text(page: Page, server: Server, seconds: float) -> None:
    page.goto(f"{server.address}/?text=the+bank+raised+its+rates")
    page.wait_for_selector(PICTURE)
    page.wait_for_timeout(1000 * seconds)
    text_box(page).press("End")
    text_box(page).press_sequentially(" again and again", delay=40)
    expect(page.locator(".txcls-text")).to_have_text("the bank raised its rates again and again")
    settle(page)
    expect(text_box(page)).to_have_value("the bank raised its rates again and again")


def test_a_text_box_that_the_browser_draws_late_holds_the_text_of_the_link(page: Page, server: Server) -> None:
    """The picture triggers another run when it loads, in which Streamlit would start with an empty box."""
    held: list[Route] = []
    page.route(re.compile("/TextArea[^/]*js$"), lambda route: held.append(route))
    page.goto(f"{server.address}/?text=the+bank+raised+its+rates")
    page.wait_for_selector(PICTURE)
    settle(page)
    assert len(held) == 1 and not text_box(page).count()
    held[0].continue_()
    expect(text_box(page)).to_have_value("the bank raised its rates")


def test_the_picture_follows_the_text_box_before_the_server_does(
    page: Page, server: Server, answers: Predictor
) -> None:
    visit(page, server, text="the bank", wait_for=PICTURE)
    before = page.locator(".txcls-text").inner_text()
    text = "ministers met to end the dispute"
    text_box(page).evaluate(
        """(box, text) => {
          Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(box, text);
          box.dispatchEvent(new InputEvent("input", {bubbles: true, composed: true, isComposing: true}));
        }""",
        text,
    )  # nothing is submitted during IME composition
    expect(page.locator(".picture")).to_have_attribute("data-read", text)
    expected = percentages(score.probability for score in answers.predict([text])[0].ranked)
    assert page.locator(".machine-bars .number").all_inner_texts() == expected
    assert page.locator(".txcls-text").inner_text() == before


def test_the_picture_of_the_last_text_stays_while_the_box_is_empty(page: Page, server: Server) -> None:
    visit(page, server, wait_for=".machine-word", text="the bank raised its rates")
    words = page.locator(".machine-word").all_inner_texts()
    text_box(page).fill("")
    page.wait_for_selector(".waiting .machine-word")
    page.wait_for_url(re.compile(r"text=(&|$)"))
    settle(page)
    assert page.locator(".waiting .machine-word").all_inner_texts() == words
    text_box(page).press_sequentially("voters")
    expect(page.locator(".machine:not(.waiting) .machine-word")).to_have_text(["voters"])


def test_a_head_switched_off_in_the_picture_is_in_the_address_and_a_link_restores_it(
    page: Page, server: Server, answers: Predictor
) -> None:
    text = "the bank raised its rates"
    visit(page, server, text=text, wait_for=PICTURE)
    page.locator('.machine-head[data-head="2.1"]').click()
    page.wait_for_url("**switched=2.1**")
    settle(page)
    result = ablate(answers, text, [[Change("head", "zero", 1, 0)]])
    expected = percentages(result.changed[0][np.argsort(-result.original, kind="stable")])  # classes keep their order
    numbers = page.locator(".machine-bars .number")
    expect(numbers).to_have_text(expected)
    page.reload()
    page.wait_for_selector(".machine-bars .then")
    expect(numbers).to_have_text(expected)
    page.locator('.machine-head[data-head="2.1"]').click()
    page.wait_for_selector(".machine-bars .then", state="detached")
    page.wait_for_function("!location.search.includes('switched')")


def test_heads_in_the_picture_carry_their_tested_stories(page: Page, server: Server) -> None:
    visit(page, server, checkpoint="reports", text=REPORT, wait_for=PICTURE)
    for name, story in head_chips(atlas()).items():
        head = page.locator(f'.machine-head[data-head="{name}"]')
        expect(head).to_have_attribute("aria-label", f"Head {name}, on: {story['text']}")


def test_parts_and_heads_lead_to_their_pages(page: Page, server: Server) -> None:
    visit(page, server, text="the bank raised its rates", wait_for=PICTURE)
    page.locator('.machine-name[data-part="layers.1.attn"]').click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What happens to this text, step by step?")
    settle(page)
    assert query(page)["step"] == "softmax" and query(page)["layer"] == "2"
    page.go_back()
    page.wait_for_selector(PICTURE)
    settle(page)
    page.locator('.machine-head[data-head="2.2"]').dblclick()
    page.wait_for_selector(".st-key-chart_map")
    assert (query(page)["layer"], query(page)["head"]) == ("2", "2")


def test_page_keys_go_part_by_part_on_the_home_page_except_in_the_text_box(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 2000})  # in the text box, the key scrolls
    visit(page, server, text="the bank raised its rates", wait_for=PICTURE)
    text_box(page).press("PageDown")
    expect(page.locator(".machine.part-by-part")).to_have_count(0)
    page.locator(".machine-place").evaluate("() => document.activeElement.blur()")
    for number in (1, 2, 3):
        page.keyboard.press("PageDown")
        expect(page.locator(".machine-place")).to_have_text(f"{number} / 8")
    page.keyboard.press("PageUp")
    expect(page.locator(".machine-place")).to_have_text("2 / 8")


def test_the_browser_gets_the_weights_once(page: Page, server: Server) -> None:
    frames: list[bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda data: frames.append(data if isinstance(data, bytes) else data.encode()))

    page.on("websocket", listen)
    visit(page, server, text="the bank", wait_for=PICTURE)
    page.wait_for_load_state("networkidle")
    settle(page)
    with_weights = [frame for frame in frames if b"classifier_weights" in frame]
    assert with_weights and max(map(len, with_weights)) > 20_000
    frames.clear()
    for text in ("the bank raised its rates", "the striker scored twice"):
        text_box(page).fill(text)
        expect(page.locator(".txcls-text")).to_have_text(text)
        settle(page)
    assert frames and not any(b"classifier_weights" in frame for frame in frames)


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
