"""Every page, opened by its address with the shipped models: its heading, few words, and little above what it shows."""

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Server, watched
from tests.browser.visiting import visit, wait_until_steady
from txcls.app.menu import PAGES

MAX_WORDS, MAX_CONTROLS_PX = 350, 200
CONTENT = (
    # A page's answer in a sentence (`st-key-lead`) is content, too.
    "h2, h3, .js-plotly-plot, .machine, .txcls-text, .st-key-step_heading, .st-key-training_film, "
    ".st-key-strip_fill, .st-key-lead, .txcls-ways, .stAlert, [class*=st-key-text_box_changed]"
)
WORDS = """() => {
  const without = "svg, canvas, textarea, style, script, .js-plotly-plot, .txcls-text, .txcls-aligned, .machine-word"
  const words = []
  const read = (root) => {
    for (const node of root.childNodes) {
      if (node instanceof Text) words.push(...node.data.split(/\\s+/).filter((word) => /\\p{L}/u.test(word)))
      if (!(node instanceof Element) || node.matches(without)) continue
      const isBox = getComputedStyle(node).display !== "contents"
      if (isBox && !node.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue
      const isClosed = node.matches("details:not([open])")
      for (const part of isClosed ? node.querySelectorAll(":scope > summary") : [node]) read(part)
      if (node.shadowRoot) read(node.shadowRoot)
    }
  }
  read(document.querySelector("[data-testid=stMain]"))
  return words
}"""
"""The visible words of a page, without its menu, its charts and the visitor's own text."""


@pytest.mark.smoke
def test_every_page_has_its_heading_says_little_and_does_not_scroll_sideways(browser: Browser, shipped: Server) -> None:
    """Phones: test_accessibility.py."""
    with watched(browser, shipped, viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        for info in PAGES:
            visit(page, shipped, "" if info.name == "classify" else info.name, wait_for="h1", checkpoint="ag_news")
            expect(page.locator("h1")).to_have_text(info.title)
            wait_until_steady(page)
            assert len(page.evaluate(WORDS)) <= MAX_WORDS, info.title
            top, *tops = (box["y"] for one in page.locator(f"h1, {CONTENT}").all() if (box := one.bounding_box()))
            assert min(tops) - top <= MAX_CONTROLS_PX, info.title
            needed = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
            assert needed <= 1280, f"{info.title} needs {needed} pixels"
