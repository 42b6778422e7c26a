"""Waiting times in a real browser: from a cold start to the first page, and from a new text to its bars.

    python -m benchmarks.app_speed [--texts 20] [--starts 3]

The server is restarted for every cold start; the operating system's file caches are warm after the first one. The
response time is measured in the page: from sending a text (250 ms after the last key) to the first frame with the new
bars.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._measure import machine
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS, serve
from txcls.data.datasets import EXAMPLES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GOAL_COLD_SECONDS, GOAL_RESPONSE_MS = 6.0, 300.0
BARS = ".st-key-chart_bars .js-plotly-plot"
WATCH = """
(bars) => {
  window.sentAt = window.redrawnAt = window.lastKeyAt = 0
  document.addEventListener("input", () => { window.lastKeyAt = performance.now() }, true)
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === "Enter") window.sentAt ||= performance.now()
  }, true)
  let plot = document.querySelector(bars)
  const check = () => {
    const current = document.querySelector(bars)
    if (current && current !== plot && current.querySelector(".bars path")) {
      plot = current
      window.redrawnAt = performance.now()
    }
    requestAnimationFrame(check)
  }
  check()
}
"""
IS_REDRAWN = """
(text) => document.querySelector('.txcls-text')?.textContent.toLowerCase() === text.toLowerCase()
  && window.redrawnAt > window.sentAt && window.sentAt > window.lastKeyAt
"""


def cold_start(browser: "Browser", log: Path) -> tuple[float, float, float, float]:
    """Seconds from start to the server's response, to the heading and to the bars; then the next visitor's wait."""
    start = time.perf_counter()
    with serve(log) as address:
        startup_seconds = time.perf_counter() - start
        page = browser.new_context().new_page()
        page.goto(address)
        page.wait_for_selector("h1")
        heading = time.perf_counter() - start
        page.wait_for_selector(f"{BARS} .bars path", state="attached")
        bars = time.perf_counter() - start
        page.context.close()
        second_start = time.perf_counter()
        page = browser.new_context().new_page()
        page.goto(address)
        page.wait_for_selector(f"{BARS} .bars path", state="attached")
        next_visitor = time.perf_counter() - second_start
        page.context.close()
    return startup_seconds, heading, bars, next_visitor


def response_ms(page: "Page", text: str) -> tuple[float, float]:
    """Milliseconds until the bars are redrawn: from sending the text, and from the last key."""
    page.evaluate("window.redrawnAt = window.sentAt = 0")
    page.locator('[class*="st-key-text_box"] textarea').fill(text)
    page.wait_for_function(IS_REDRAWN, arg=text)
    page.wait_for_timeout(400)
    from_sending, from_key = page.evaluate("[window.redrawnAt - window.sentAt, window.redrawnAt - window.lastKeyAt]")
    return from_sending, from_key


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--texts", type=int, default=20, help="number of texts to enter")
    parser.add_argument("--starts", type=int, default=3, help="number of cold starts")
    options = parser.parse_args()
    executable = find_chromium()
    if executable is None:
        print("this benchmark needs a Chromium: apt-get install chromium, or python -m playwright install chromium")
        return 2
    from playwright.sync_api import sync_playwright

    texts = [f"{EXAMPLES[n % len(EXAMPLES)].text} Report {n}." for n in range(1, options.texts + 1)]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        log = Path(folder) / "server.log"
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        starts = [cold_start(browser, log) for _ in range(options.starts)]
        with serve(log) as address:
            page = browser.new_page()
            page.goto(address)
            page.wait_for_selector(f"{BARS} .bars path", state="attached")
            page.wait_for_timeout(1500)
            page.evaluate(WATCH, BARS)
            response_times = [response_ms(page, text) for text in texts]
        browser.close()
    print(machine())
    print(f"\n{'cold start, seconds from `streamlit run`':<50}{'median':>8}{'worst':>8}{'goal':>8}")
    rows = ("server responds", "heading drawn", "bars drawn", "next visitor: bars drawn after opening the page")
    for row, values in zip(rows, zip(*starts, strict=True), strict=True):
        goal = f"{GOAL_COLD_SECONDS:g}" if row == "bars drawn" else ""
        print(f"{row:<50}{statistics.median(values):>8.2f}{max(values):>8.2f}{goal:>8}")
    print(f"\n{f'changed text to redrawn bars, ms ({len(texts)} texts)':<50}{'median':>8}{'worst':>8}{'goal':>8}")
    for row, values, goal in zip(
        ("from sending the text", "from the last key (with the 250 ms pause)"),
        zip(*response_times, strict=True),
        (f"{GOAL_RESPONSE_MS:g}", ""),
        strict=True,
    ):
        print(f"{row:<50}{statistics.median(values):>8.0f}{max(values):>8.0f}{goal:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
