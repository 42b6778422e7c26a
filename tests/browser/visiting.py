"""Helpers for the browser tests: open a page, wait for it, read its text box, charts and address."""

import re
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import numpy as np
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Server

CHART = ".js-plotly-plot"
BARS = "[...document.querySelector('.st-key-{} .js-plotly-plot')._fullData[{}].{}]"
"""The values of a chart, given its key, the trace and the axis."""


QUIET = """(call) => {
  const isIdle = document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "notRunning"
  if (window.quiet?.call !== call) window.quiet = {call, frames: 0}
  window.quiet.frames = isIdle ? window.quiet.frames + 1 : 0
  return window.quiet.frames > 10
}"""
"""Whether nothing has run for ten frames: between two runs, as when a page opens another, the app is idle for fewer."""


def settle(page: Page) -> None:
    """Wait until Streamlit's runs have finished, without an exception."""
    page.wait_for_function(QUIET, arg=uuid4().hex)
    expect(page.locator('[data-testid="stException"]')).to_have_count(0)


STEADY = """() => new Promise((resolve) => {
  let before = "", frames = 0
  const look = () => {
    const boxes = [...document.querySelectorAll("h1, h2, h3, p, button, canvas, svg")].map((element) => {
      const {x, y, width, height} = element.getBoundingClientRect()
      return [x, y, width, height, getComputedStyle(element).opacity]
    })
    const now = JSON.stringify(boxes)
    frames = now === before ? frames + 1 : 0
    before = now
    if (frames < 10) requestAnimationFrame(look)
    else resolve(true)
  }
  look()
})"""


def wait_until_steady(page: Page) -> None:
    """Wait until nothing on the page has moved, resized or faded for ten frames."""
    page.evaluate(STEADY)


def click_plot(page: Page, x: float, y: float) -> None:
    """Click a point in a chart once Plotly has registered hovering there; it ignores clicks before that."""
    page.mouse.move(x, y)
    page.wait_for_function(
        "([x, y]) => document.elementFromPoint(x, y)?.closest('.js-plotly-plot')?._hoverdata?.length", arg=[x, y]
    )
    page.mouse.click(x, y)


def visit(page: Page, server: Server, path: str = "", *, wait_for: str = CHART, **params: object) -> None:
    page.goto(f"{server.address}/{path}" + (f"?{urlencode(params)}" if params else ""))
    page.wait_for_selector(wait_for)
    settle(page)


def choose_page(page: Page, section: str, title: str) -> None:
    """Choose a page from a section of the menu, in a wide window."""
    page.locator('[data-testid="stTopNavSection"]:visible', has_text=section).click()
    page.get_by_role("menuitem", name=title, exact=True).click()


def text_box(page: Page) -> Locator:
    return page.locator('[class*="st-key-text_box"] textarea')


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def written(page: Page, chart: str) -> list[float]:
    """The numbers in a chart's cells or beside its bars, in drawing order."""
    texts = page.locator(f'[class*="st-key-{chart}"] {CHART}').first.evaluate(
        "plot => plot._fullData.flatMap(one => [].concat(...(one.text || []))).filter(one => /^ ?[+−\\d]/.test(one))"
    )
    return [float(re.sub("[ %]", "", text_).replace("−", "-")) for text_ in texts]


def cells(page: Page, chart: str) -> np.ndarray:
    """The values of a chart's heat map."""
    rows = page.locator(f".st-key-{chart} {CHART}").first.evaluate("plot => plot._fullData[0].z.map(row => [...row])")
    return np.array(rows)
