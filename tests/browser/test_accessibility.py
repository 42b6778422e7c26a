"""Accessibility of every page: axe-core on desktop and phone widths in both themes, and visible keyboard focus."""

import tomllib
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.app.film import FILMED
from tests.browser.conftest import Server, watched
from tests.browser.server import ROOT
from tests.browser.visiting import settle, wait_until_steady
from tests.conftest import TEXTS

TEXT = f"zyzzyva {' '.join(TEXTS)}"
"""A text with an unknown word, and with more tokens than the checkpoints read, which makes lists scroll."""
PAGES: dict[str, dict[str, str]] = {
    "": {},
    "tokens": {},
    "steps": {"step": "softmax"},
    "attention": {"layer": "9"},
    "heads": {"checkpoint": "reports", "switched": "1.1"},
    "explanation": {},
    "film": {"checkpoint": FILMED, "training_step": "3"},
    "positions": {},
    "whatif": {"changed": "the bank raised its rates again"},
    "language": {"part": "continue"},
    "report": {},
}
"""Parameters of the link besides the text, keyed by path."""
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
BACKGROUNDS: dict[Theme, str] = {
    theme: tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))["theme"][theme]["backgroundColor"]
    for theme in THEMES
}
WIDTHS = (1280, 390)
FOLDED = '[data-testid="stExpander"] details:not([open]) > summary'
STEP = """() => {
  let element = document.activeElement
  while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement
  const near = [...(element.closest("label")?.querySelectorAll("*") ?? []), element]
  for (let up = element, n = 0; up.parentElement && n < 4; n++) near.push((up = up.parentElement))
  const shown = near.filter((one) => one.getClientRects().length && getComputedStyle(one).opacity > 0)
  const seen = () => shown.map((one) => getComputedStyle(one)).map((style) => [
    style.outlineStyle, style.outlineWidth, style.boxShadow, style.borderColor, style.backgroundColor,
  ].join(" ")).join()
  const left = window.txclsLeft
  window.txclsLeft = element === document.body ? null : {html: element.outerHTML.slice(0, 200), focused: seen(), seen}
  return [window.txclsLeft !== null, left && left.seen() === left.focused ? left.html : null]
}"""
"""After a Tab: whether anything has focus, and the element that lost it if it looks no different from when focused."""
JUDGE = "async (exclude) => (await axe.run({exclude}, {resultTypes: ['violations']})).violations"
NEVER_JUDGED = [".js-plotly-plot .main-svg"]
"""Charts are images with a description; axe-core cannot determine the background of their text."""


@pytest.fixture(scope="module")
def visitor(browser: Browser, server: Server) -> Iterator[Page]:
    """One page for all addresses, which loads the app's files only once."""
    with watched(browser, server, reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.fixture(scope="module", params=PAGES, ids=lambda path: path or "classify")
def opened(request: pytest.FixtureRequest, visitor: Page, server: Server) -> Page:
    """A page with all expanders open."""
    visitor.set_viewport_size({"width": WIDTHS[0], "height": 900})
    visitor.goto(f"{server.address}/{request.param}?{urlencode({'text': TEXT, **PAGES[request.param]})}")
    visitor.wait_for_selector('[class*="st-key-live_"]', state="attached")  # drawn last
    settle(visitor)
    while visitor.locator(FOLDED).count():
        visitor.locator(FOLDED).first.click()
        settle(visitor)
    visitor.add_style_tag(content="* {transition: none !important}")
    visitor.evaluate(Axe().axe_script)
    return visitor


def theme_at(page: Page, width: int) -> Theme:
    """The theme to test: half of the pages are light at desktop width and dark at phone width, the rest vice versa."""
    path = urlsplit(page.url).path.strip("/")
    return THEMES[(list(PAGES).index(path) + WIDTHS.index(width)) % 2]


def use_theme(page: Page, theme: Theme) -> None:
    page.emulate_media(color_scheme=theme)
    red, green, blue = bytes.fromhex(BACKGROUNDS[theme].removeprefix("#"))
    expect(page.locator(".stApp")).to_have_css("background-color", f"rgb({red}, {green}, {blue})")
    settle(page)


def show_all(page: Page, width: int) -> None:
    """Make the window as high as the page, since axe-core does not check colours of elements scrolled out of view."""
    page.set_viewport_size({"width": width, "height": 900})
    wait_until_steady(page)
    height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
    page.set_viewport_size({"width": width, "height": min(height + 100, 12_000)})
    settle(page)
    wait_until_steady(page)  # charts and the labels of scrollable elements adapt to the width


def findings(page: Page) -> list[str]:
    """axe-core's serious and critical findings: rule, element, and failure."""
    violations: list[dict[str, Any]] = page.evaluate(JUDGE, NEVER_JUDGED)
    return [
        f"{rule['id']}: {node['target']} {node['html'][:120]} {node['failureSummary']}"
        for rule in violations
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_window(opened: Page, width: int) -> None:
    use_theme(opened, theme_at(opened, width))
    show_all(opened, width)
    assert findings(opened) == []
    assert opened.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
    labels = opened.locator(".stPlotlyChart").evaluate_all("(charts) => charts.map((chart) => chart.ariaLabel ?? '')")
    assert len(labels) == opened.locator(".js-plotly-plot").count() and all(labels)


@pytest.mark.parametrize("opened", ["", "heads", "film", "language"], indirect=True)
def test_focus_is_visible_wherever_it_goes(opened: Page) -> None:
    opened.set_viewport_size({"width": WIDTHS[0], "height": 900})
    # The menu is redrawn when the window grows from phone width, which would lose the focus.
    expect(opened.locator('[data-testid="stTopNavSection"]:visible').first).to_be_visible()
    wait_until_steady(opened)
    opened.locator('[data-testid="stSkipToContent"]').focus()
    opened.evaluate("() => { window.txclsLeft = null }")
    unseen, reached, on_page = [], 0, True
    while on_page and reached < 150:
        opened.keyboard.press("Tab")
        on_page, unchanged = opened.evaluate(STEP)
        reached += on_page
        unseen += [unchanged] if unchanged else []
    assert reached > 12
    assert unseen == []
