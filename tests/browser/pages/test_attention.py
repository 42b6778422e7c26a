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
    expect(page.get_by_role("heading", name="Head 2.2", exact=True)).to_be_visible()
    settle(page)
    assert query(page)["layer"] == "2" and query(page)["head"] == "2"


NAMES = """() => {
  const box = document.querySelector(".st-key-chart_map"), shown = box.getBoundingClientRect()
  const names = [...box.querySelectorAll("g.xtick text")]
  return {names: names.map((name) => name.textContent.replace(/[\\u200b\\u200c]/g, "")),
    sizes: names.map((name) => parseFloat(getComputedStyle(name).fontSize)),
    gaps: names.slice(1).map((name, n) => name.getBoundingClientRect().left - names[n].getBoundingClientRect().left),
    scrolls: box.scrollWidth > box.clientWidth + 1, page: document.documentElement.scrollWidth, box: shown.right}
}"""
"""The names of the map's columns, their sizes and the pixels between them; whether the map scrolls in its box."""


def test_in_a_wide_window_maps_are_about_square_and_their_names_large_and_not_cut(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    text = " ".join(["internationalization", *TEXT.split()])
    visit(page, server, "attention", wait_for=f".st-key-chart_map {CHART} g.xtick", text=text)
    settle(page)
    drawn = page.evaluate(ROW_NAMES)
    assert set(drawn["sizes"]) == {19} and min(drawn["gaps"]) >= 22
    assert drawn["visible"], "a name that leaves the chart is not cut by a box around it"
    # The grid has as many layers as heads, with a tag below each of its maps.
    for chart, least, most in (("grid", 0.8, 0.84), ("map", 0.99, 1.3)):
        box = page.locator(f".st-key-chart_{chart} {CHART} .nsewdrag").first.bounding_box()
        assert box and least <= box["width"] / box["height"] <= most, (chart, box)


ROW_NAMES = """() => {
  const names = [...document.querySelectorAll(".st-key-chart_map g.ytick text")]
  const boxes = names.map((name) => name.getBoundingClientRect()), left = Math.min(...boxes.map((box) => box.left))
  const around = []
  for (let one = names[0].parentElement; !one.matches(".stColumn"); one = one.parentElement) around.push(one)
  const cuts = (one) => !(one instanceof SVGGElement) && getComputedStyle(one).overflowX !== "visible"
  return {sizes: names.map((name) => parseFloat(getComputedStyle(name).fontSize)),
    gaps: boxes.slice(1).map((box, n) => Math.abs(box.top - boxes[n].top)),
    visible: around.every((one) => !cuts(one) || one.getBoundingClientRect().left <= left)}
}"""
"""The sizes of the names of the map's rows and the pixels between them; whether all are wholly visible."""


def test_on_a_phone_the_maps_of_all_heads_and_then_the_controls_are_above_the_map_of_one(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    visit(page, server, "attention", wait_for=f".st-key-chart_map {CHART} g.xtick", text=TEXT)
    settle(page)
    boxes = [
        page.locator(f".st-key-{key}").first.bounding_box() for key in ("chart_grid", "step_head_box", "chart_map")
    ]
    tops = [box["y"] for box in boxes if box]
    assert len(tops) == 3 and tops == sorted(tops)


def test_on_a_phone_the_names_of_the_maps_columns_are_readable(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for n_words, every in ((21, 1), (24, 2)):
        text = " ".join((TEXT.split() * 3)[:n_words])
        visit(page, server, "attention", wait_for=f".st-key-chart_map {CHART} g.xtick", text=text)
        settle(page)
        drawn = page.evaluate(NAMES)
        assert len(drawn["names"]) >= n_words // every and all(drawn["names"])
        assert min(drawn["sizes"]) >= 12 and min(drawn["gaps"]) >= 12
        assert not drawn["scrolls"] and drawn["page"] <= 390 and drawn["box"] <= 390


def test_the_title_of_the_rows_is_not_cut_beside_short_names_in_large_type(page: Page, server: Server) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    visit(page, server, "attention", wait_for=f".st-key-chart_map {CHART} .annotation", text="on it", mode="lecture")
    settle(page)
    title = page.locator(".st-key-chart_map .annotation").get_by_text("query ↓").bounding_box()
    chart = page.locator(f".st-key-chart_map {CHART}").bounding_box()
    assert title and chart and title["x"] >= chart["x"]
