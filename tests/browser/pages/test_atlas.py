"""The page Head atlas in a browser."""

import re

from playwright.sync_api import Page, expect

from tests.app.reports import atlas
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, query, settle, visit, wait_until_steady


def test_a_head_is_selected_sorted_and_opened_on_its_sentence(page: Page, server: Server) -> None:
    visit(page, server, "atlas", checkpoint="reports")
    heads = page.locator('[class*="st-key-atlas_head"]')
    expect(heads).to_have_count(len(atlas().heads))
    expect(heads.first).to_contain_text("Head 2.2")
    page.get_by_text("layer", exact=True).click()
    expect(heads.first).to_contain_text("Head 1.1")
    settle(page)
    heads.nth(1).get_by_text("Metrics", exact=True).click()
    wait_until_steady(page)  # the expander opens
    page.get_by_role("button", name="Show kinds of 1.2").click()
    expect(page.get_by_role("heading", name="Head 1.2: attention by kind")).to_be_visible()
    settle(page)
    assert {name: query(page)[name] for name in ("sort", "layer", "head")} == {
        "sort": "number", "layer": "1", "head": "2",
    }  # fmt: skip
    heads.first.get_by_role("link").click()
    expect(page.get_by_role("heading", name="Layer 1, head 1", exact=True)).to_be_visible()
    page.wait_for_selector(CHART)
    settle(page)
    expect(
        page.get_by_text(
            "verb → itself · partly confirmed: with the same weight on every token, accuracy falls; with weight only "
            "on itself, 50\u00a0% (40 to 60\u00a0%) of the lost accuracy comes back · worth 50 points of accuracy"
        )
    ).to_be_visible()
    assert (query(page)["layer"], query(page)["head"]) == ("1", "1")


def test_a_small_window_shows_what_the_first_heads_are_worth_and_their_maps(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    visit(page, server, "atlas", wait_for=f'[class*="st-key-atlas_head"] {CHART} g.xtick', checkpoint="reports")
    settle(page)
    first = page.locator('[class*="st-key-atlas_head"]').first
    worth = first.get_by_text(re.compile("^worth 76 points")).bounding_box()
    box = first.locator(f"{CHART} .nsewdrag").bounding_box()
    assert worth and box and worth["y"] < box["y"] and box["y"] + box["height"] / 2 < 800


def test_a_sentence_is_built_and_an_unknown_word_replaced(page: Page, server: Server) -> None:
    visit(page, server, checkpoint="reports", text="Chelsea beat City.")
    page.get_by_role("button", name="Chelsea", exact=True).click()
    page.get_by_role("menuitem", name="Rovers").click()
    expect(page.locator('[class*="st-key-text_box"] textarea')).to_have_value("Rovers beat City.")
    settle(page)
    page.get_by_role("button", name="Build a sentence").click()
    page.get_by_role("button", name="Swap the teams").click()
    expect(page.locator('[class*="st-key-text_box"] textarea')).to_have_value("City beat Rovers.")
    settle(page)


def test_the_frame_is_explained_directly_above_its_map(page: Page, server: Server) -> None:
    visit(page, server, "atlas", wait_for=f'[class*="st-key-atlas_head"] {CHART} g.xtick', checkpoint="reports")
    settle(page)
    first = page.locator('[class*="st-key-atlas_head"]').first
    framed = first.get_by_text(re.compile("^Framed: <cls> → ")).bounding_box()
    chart = first.locator(CHART).bounding_box()
    assert framed and chart and 0 <= chart["y"] - framed["y"] - framed["height"] < 30
