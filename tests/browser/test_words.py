"""Every page at first sight, with the shipped models: few words, and little above what it shows."""

from playwright.sync_api import Browser

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


def test_no_page_says_much_or_has_much_above_what_it_shows(browser: Browser, shipped: Server) -> None:
    with watched(browser, shipped, viewport={"width": 1280, "height": 800}) as context:
        page = context.new_page()
        wordy, late = {}, {}
        for info in PAGES:
            visit(page, shipped, "" if info.name == "classify" else info.name, wait_for="h1", checkpoint="ag_news")
            wait_until_steady(page)
            words = page.evaluate(WORDS)
            if len(words) > MAX_WORDS:
                wordy[info.title] = len(words)
            top, *tops = (box["y"] for one in page.locator(f"h1, {CONTENT}").all() if (box := one.bounding_box()))
            if min(tops) - top > MAX_CONTROLS_PX:
                late[info.title] = min(tops) - top
        assert not wordy
        assert not late
