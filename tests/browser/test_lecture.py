"""Lecture mode in a browser: slides fit the window in large type; PageDown turns them wherever the focus is."""

import re
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Error, Page, expect

from tests.app.film import FILMED
from tests.app.reports import REPORT
from tests.app.tiny import PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import query, settle, text_box, visit, wait_until_steady
from txcls.app.menu import ATTENTION, PAGES
from txcls.inference.predictor import Predictor
from txcls.inspection.steps import walk_through

TEXT = "the bank raised its rates again"
CHARTS = ".js-plotly-plot"
BAR = ".st-key-lecture .bar"
SIZES = ((1920, 1080), (1280, 800))
LEAST_EXPONENT = 12.5
"""Minimum font size in pixels of exponents and indices in a small window; those of the widest formulas have it."""
LEAST_PLOT = 1 / 3
"""Minimum height of a plot, as a share of the window's."""
MEASURED = """() => {
  const slides = [...document.querySelectorAll('[class*="st-key-slide_"]')]
  const slide = slides.find((one) => getComputedStyle(one).opacity === "1")
  if (!slide) return null
  const LEAST = innerWidth >= 1600 && innerHeight >= 1000 ? 23.9 : 16.5
  const small = []
  const look = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      const element = node.parentElement ?? node.parentNode.host
      const style = getComputedStyle(element), {width, height} = element.getBoundingClientRect()
      const size = parseFloat(style.fontSize) * element.currentCSSZoom
      const seen = style.visibility === "visible" && style.display !== "none" && width > 1 && height > 1
      if (node.textContent.trim() && seen && size < LEAST && !element.closest(".katex, sup, sub")) {
        small.push(`${node.textContent.trim().slice(0, 40)}: ${size}`)
      }
    } else if (!["STYLE", "SCRIPT"].includes(node.tagName)) {
      if (node.shadowRoot) look(node.shadowRoot)
      node.childNodes.forEach(look)
    }
  }
  for (const root of [slide, document.querySelector(".st-key-lecture_strip")]) if (root) look(root)
  const main = document.querySelector('[data-testid="stMain"]')
  const box = slide.getBoundingClientRect()
  const stray = [...main.querySelectorAll("p, label, button, input, h1, h2, h3")].filter((one) =>
    !one.closest('[class*="st-key-slide_"], .st-key-lecture_strip, .st-key-lecture_notes, .st-key-lecture')
    && getComputedStyle(one).visibility === "visible" && one.getBoundingClientRect().width > 1)
  const charts = [...slide.querySelectorAll(".js-plotly-plot")].map((one) => one.getBoundingClientRect())
  return {
    name: slide.className.match(/slide_\\d+/)[0],
    title: slide.querySelector("h2, h3")?.textContent,
    over: slide.scrollHeight - slide.clientHeight,
    type: Math.min(1e4, ...[...slide.querySelectorAll(".katex-display :is(.mtight, .mord)")]
      .filter((one) => !one.children.length && one.textContent.trim())
      .map((one) => parseFloat(getComputedStyle(one).fontSize) * one.currentCSSZoom)),
    cut: Math.max(0, ...[...slide.querySelectorAll(".katex-display")].map((one) => one.scrollWidth - one.clientWidth)),
    below: Math.max(0, ...charts.map((one) => one.bottom - box.bottom)),
    lowest: Math.min(1e4, ...charts.map((one) => one.height / innerHeight)),
    scrolls: getComputedStyle(main).overflowY !== "hidden" || document.scrollingElement.scrollHeight > innerHeight,
    small,
    stray: stray.map((one) => one.textContent.trim().slice(0, 40)),
  }
}"""
"""Measurements of the visible slide: pixels of overflow, small type (under 24 pixels, in a small window under 17),
text visible outside the slide, and charts lower than a third of the window."""


def look_at(page: Page, where: str) -> tuple[dict[str, Any], list[str]]:
    """Measure the slide once the page has settled: whether it scrolls, has small type or a low chart."""
    with suppress(Error):  # the caller reports what is wrong
        page.wait_for_function(
            f"() => {{ const slide = ({MEASURED})(); return slide && slide.over <= 1 && slide.below <= 1"
            " && slide.lowest >= 1 / 3 && !slide.stray.length && !slide.small.length }",
            polling=100,
            timeout=10_000,  # the server draws charts again in type of the other size
        )
    page.wait_for_function(f"({MEASURED})()", timeout=15_000)
    wait_until_steady(page)  # charts are resized after they are drawn
    slide: dict[str, Any] = page.evaluate(MEASURED)
    wrong = {name: slide[name] for name in ("over", "below") if slide[name] > 1}
    wrong |= {name: slide[name] for name in ("scrolls", "small", "stray") if slide[name]}
    if slide["lowest"] < LEAST_PLOT:
        wrong["lowest"] = round(slide["lowest"], 3)
    return slide, [f"{where}: {wrong}"] if wrong else []


def place(page: Page) -> tuple[int, int]:
    """The position shown in the bar."""
    match = re.fullmatch(r"(\d+) / (\d+)", page.locator(f"{BAR} .count").inner_text())
    assert match
    return int(match[1]), int(match[2])


def turn_to(page: Page, key: str, at: int) -> None:
    page.keyboard.press(key)
    expect(page.locator(f"{BAR} .count")).to_have_text(re.compile(rf"^{at} / "))
    settle(page)


@pytest.fixture
def wide(page: Page) -> Page:
    page.set_viewport_size({"width": 1920, "height": 1080})
    return page


def resize(page: Page, width: int, height: int) -> None:
    """Resize the window, and wait until the server has drawn the charts in type of the other size."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_timeout(300)
    settle(page)


@pytest.mark.timeout(400)
def test_every_step_fits_a_small_window_in_large_type(wide: Page, server: Server) -> None:
    walk = walk_through(Predictor.load(server.log.parent / "checkpoints" / PLAIN), TEXT)
    visit(wide, server, "steps", wait_for=BAR, text=TEXT, mode="lecture")
    steps = [(at, step) for at, step in enumerate(walk.steps, start=1) if not step.layer]  # PageDown skips later layers
    problems = []
    resize(wide, *SIZES[-1])
    for (at, step), following in zip(steps, [*steps[1:], None], strict=True):
        assert place(wide) == (at, len(walk.steps))
        if step.values is not None:
            wide.wait_for_selector(f".st-key-chart_numbers {CHARTS}")
        slide, wrong = look_at(wide, step.title)
        problems += wrong + ([f"the arithmetic of {step.title} is cut"] if slide["cut"] > 4 else [])
        problems += [f"an exponent of {step.title} has {slide['type']:g} px"] if slide["type"] < LEAST_EXPONENT else []
        if following:
            turn_to(wide, "PageDown", following[0])
    assert not problems, "\n".join(problems)


@pytest.mark.timeout(400)
def test_every_slide_of_every_page_fits_a_large_and_a_small_window_in_large_type(wide: Page, server: Server) -> None:
    problems = []
    for name in [page.name for page in PAGES if page.name not in ("classify", "steps", "playground")]:
        checkpoint, text = {"heads": ("reports", REPORT), "film": (FILMED, TEXT)}.get(name, (PLAIN, TEXT))
        visit(wide, server, name, wait_for=BAR, checkpoint=checkpoint, text=text, mode="lecture")
        _, n = place(wide)
        for width, height in SIZES:
            resize(wide, width, height)
            for at in range(1, n + 1) if width == SIZES[0][0] else range(n, 0, -1):
                if place(wide)[0] != at:
                    turn_to(wide, "PageDown" if width == SIZES[0][0] else "PageUp", at)
                try:
                    problems += look_at(wide, f"{name} {at} at {width}")[1]
                except Error as error:
                    problems.append(f"{name} {at} at {width}: {error}")
    assert not problems, "\n".join(problems)


@pytest.mark.smoke
def test_page_keys_turn_slides_and_then_pages(wide: Page, server: Server) -> None:
    visit(wide, server, "attention", wait_for=BAR, text=TEXT, mode="lecture")
    _, n = place(wide)
    for at in range(2, n + 1):
        turn_to(wide, "PageDown", at)
        assert query(wide)["slide"] == str(at)
    wide.keyboard.press("PageDown")
    following = PAGES[PAGES.index(ATTENTION) + 1]
    wide.wait_for_url(re.compile(f"/{following.name}"))
    expect(wide.locator(f"{BAR} .title")).to_have_text(following.title)
    settle(wide)
    assert query(wide)["mode"] == "lecture" and "slide" not in query(wide)
    wide.keyboard.press("PageUp")
    wide.wait_for_url(re.compile("/attention"))
    expect(wide.locator(f"{BAR} .count")).to_have_text(f"{n} / {n}")
    settle(wide)
    wide.reload()
    expect(wide.locator(f"{BAR} .count")).to_have_text(f"{n} / {n}")


def test_page_keys_work_wherever_the_focus_is(wide: Page, server: Server) -> None:
    walk = walk_through(Predictor.load(server.log.parent / "checkpoints" / PLAIN), TEXT)
    start = walk.find("mask", 0)
    visit(wide, server, "steps", wait_for=BAR, text=TEXT, mode="lecture", step="mask")
    at = start + 1
    assert place(wide)[0] == at

    text_box(wide).click()
    turn_to(wide, "PageDown", at + 1)
    wide.wait_for_selector(f".st-key-chart_numbers {CHARTS}")
    settle(wide)
    wide.locator(".st-key-step_box_Row_T input").click()
    wide.get_by_role("option").nth(1).click()
    settle(wide)
    turn_to(wide, "PageDown", at + 2)
    wide.locator(f".st-key-chart_numbers {CHARTS} .nsewdrag").first.click()
    settle(wide)
    turn_to(wide, "PageUp", at + 1)


@pytest.mark.smoke
def test_a_key_starts_and_ends_lecture_mode_also_from_the_text_box(page: Page, server: Server) -> None:
    visit(page, server, "attention", text=TEXT)
    assert page.get_by_role("button", name="Lecture mode · F9").is_visible()
    text_box(page).click()
    page.keyboard.press("F9")
    expect(page.locator(BAR)).to_be_visible()
    settle(page)
    assert query(page)["mode"] == "lecture" and page.locator("h1").count() == 0
    text_box(page).fill("voters went to the polls")
    page.wait_for_url(re.compile("voters"))
    settle(page)
    text_box(page).press("F9")
    expect(page.locator("h1")).to_be_visible()
    settle(page)
    assert "mode" not in query(page) and text_box(page).input_value() == "voters went to the polls"
    assert page.locator(BAR).is_hidden()


def test_a_key_shows_a_code_that_fills_the_slide_and_the_menu_leads_to_classifiers_lessons_and_playground(
    wide: Page, server: Server
) -> None:
    visit(wide, server, "tokens", wait_for=BAR, checkpoint=PLAIN, text=TEXT, mode="lecture")
    shared = wide.locator(".st-key-lecture .shared")
    expect(shared).to_be_hidden()
    wide.keyboard.press("q")
    box = shared.locator("img").bounding_box()
    assert box and box["height"] > 0.75 * SIZES[0][1]
    expect(shared.locator("b")).to_have_text(re.compile(r"^http://\S+/tokens\?\S+bank\S+rates"))
    expect(shared.locator("p")).to_contain_text("A phone cannot open this link")
    wide.keyboard.press("PageDown")
    expect(shared).to_be_hidden()
    settle(wide)
    menu = wide.locator(f"{BAR} .go")
    menu.select_option("classifier:reports")
    wide.wait_for_url(re.compile("/tokens.*checkpoint=reports"))
    settle(wide)
    for name in ("lessons", "playground"):
        menu.select_option(name)
        wide.wait_for_url(re.compile(f"/{name}\\?.*mode=lecture"))
        settle(wide)


def test_parts_of_the_steps_can_be_skipped(wide: Page, server: Server) -> None:
    visit(wide, server, "steps", wait_for=BAR, text=TEXT, mode="lecture", step="expand")
    for name in ("2: a", "feed", "pool", "clas"):
        wide.keyboard.press("Shift+PageDown")
        expect(wide.locator(f"{BAR} .map .here")).to_have_text(re.compile(name))
        settle(wide)
    wide.locator(f"{BAR} .skip").click()
    wide.wait_for_url(re.compile("/attention"))


def test_in_a_second_window_the_text_follows_within_a_second(page: Page, server: Server) -> None:
    visit(page, server, "attention", wait_for=BAR, text=TEXT, mode="lecture")
    other = page.context.new_page()
    visit(other, server, wait_for=BAR, text=TEXT, mode="lecture")
    other.evaluate(
        """text => { window.followed = new Promise((found) => setInterval(() => {
      if (document.querySelector("[class*=st-key-text_box] textarea").value === text) found(Date.now())
    }, 10)) }""",
        f"{TEXT} x",
    )
    text_box(page).press("End")
    page.evaluate("""() => { window.typed = new Promise((found) =>
      addEventListener("input", () => found(Date.now()), {once: true, capture: true})) }""")
    page.keyboard.type(" x")
    assert other.evaluate("followed") - page.evaluate("typed") < 1000
    other.wait_for_url(re.compile("again\\+x"))


def test_page_down_on_the_home_page_first_goes_through_the_picture_in_which_nothing_moves(
    wide: Page, server: Server
) -> None:
    visit(wide, server, wait_for=BAR, text=f"{TEXT} and nobody knew why it did so", mode="lecture")
    wide.wait_for_selector(".machine-word")
    settle(wide)
    assert " ".join(wide.locator(f"{BAR} .map").inner_text().split()) == "words vectors layer 1 2 pooling classes"
    for width, height in SIZES:
        resize(wide, width, height)
        slide, _ = look_at(wide, "picture")
        assert slide["over"] <= 1
    parts, stage = wide.locator(".machine-head, .machine-word"), wide.locator(".machine-stage")
    boxes = "parts => parts.map(({style}) => [style.left, style.top, style.width].join())"
    whole, size = parts.evaluate_all(boxes), stage.bounding_box()
    assert len(whole) > 8
    text_box(wide).click()
    for key in ("PageDown", "PageDown", "Escape"):
        wide.keyboard.press(key)
        wait_until_steady(wide)
        assert parts.evaluate_all(boxes) == whole
    assert stage.bounding_box() == size
    wide.keyboard.press("PageDown")
    expect(wide.locator(".machine-place")).to_have_text(re.compile(r"^1 / \d+$"))
    expect(wide.locator(f"{BAR} .place")).to_have_text("")  # the picture has this counter itself
    for _ in range(40):
        if place(wide)[0] == 2:
            break
        assert parts.evaluate_all(boxes) == whole
        wide.keyboard.press("PageDown")
        wait_until_steady(wide)
    assert place(wide) == (2, 2)
    expect(wide.locator(".txcls-answer")).to_be_visible()
    wide.keyboard.press("PageDown")
    wide.wait_for_url(re.compile("/tokens"))
