"""Response times of an exported page: from opening the file to the first prediction, and from a key to redrawing.

    python -m benchmarks.page_speed [CHECKPOINT ...] [--keys 40] [--starts 3]

A real Chromium without network opens single files, one for each classifier that can be exported. "Redrawn" is the time
until the page's script has read the text, drawn everything and laid it out; the browser then paints, which is included
in the time to the next frame. "CPU" is the CPU time of the page's own thread for a key, including painting; on a
busy machine, the other times also depend on other programs. "Of limit" is the file's size relative to its limit, 1.45
times the weights plus 300 kB.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._measure import machine
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.checkpoint.checkpoint import Checkpoint
from txcls.checkpoint.listing import list_checkpoints
from txcls.checkpoint.load import load_checkpoint
from txcls.web.export import export_page, unsupported

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Page

N_TOKENS = 40
GOAL_FIRST_MS = 1000.0
GOALS_MS = {"ag_news": 50.0, "who_won": 10.0}
"""Goals for the median time from a key to the redrawn page."""
WHEN_ANSWERED = """
new MutationObserver(() => { window.answeredAt ??= performance.now(); })
  .observe(document, {subtree: true, attributeFilter: ["data-answered"]})
"""
KEYS = """
async ([text, keys]) => {
  const box = document.getElementById("text"), redrawn = [], framed = [];
  for (let n = 0; n < keys; n++) {
    box.value = text.slice(0, text.length - 1) + "abcdefghij"[n % 10];
    await new Promise((go) => setTimeout(go, 30));
    const began = performance.now();
    box.dispatchEvent(new Event("input"));
    await new Promise((go) => {
      const {port1, port2} = new MessageChannel();
      port1.onmessage = go;
      port2.postMessage(0);
    });
    document.body.getBoundingClientRect();
    redrawn.push(performance.now() - began);
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
    framed.push(performance.now() - began);
  }
  return {redrawn: redrawn.slice(keys / 4), framed: framed.slice(keys / 4),
    tokens: document.querySelectorAll("#tokens [data-token]").length};
}
"""


def cpu_ms(session: "CDPSession") -> float:
    """CPU time of the page's thread so far, in ms; `session` must measure Performance in thread ticks."""
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


def thread_time(page: "Page") -> "CDPSession":
    """A DevTools session for `cpu_ms`."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


def text_of(checkpoint: Checkpoint) -> str:
    """A text of `N_TOKENS` tokens, or as many as the model reads, with an arbitrary last word."""
    words = [token for token in checkpoint.tokenizer.vocabulary.tokens[4:] if token.isascii() and token.isalpha()]
    words = words or ["word1"]
    text = ""
    for n in range(N_TOKENS):
        longer = f"{text}{words[(7 * n) % len(words)]} "
        if len(checkpoint.tokenizer.encode(longer + "x").tokens) > min(N_TOKENS, checkpoint.tokenizer.max_length):
            break
        text = longer
    return text + "x"


def measure(
    browser: "Browser", page_file: Path, text: str, *, keys: int, starts: int
) -> tuple[float, dict[str, list[float]], float]:
    """Median time to the first prediction in ms, times for each key, and CPU time for a key."""
    first_predictions = []
    for _ in range(starts):
        context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
        page = context.new_page()
        page.add_init_script(WHEN_ANSWERED)
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-answered]", state="attached")  # CSP forbids wait_for_function
        first_predictions.append(page.evaluate("window.answeredAt"))
        if len(first_predictions) == starts:
            session = thread_time(page)
            page.evaluate(KEYS, [text, keys // 4])
            cpu_before = cpu_ms(session)
            times = page.evaluate(KEYS, [text, keys])
            cpu = (cpu_ms(session) - cpu_before) / keys
        context.close()
    return statistics.median(first_predictions), times, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*", metavar="CHECKPOINT", help="default: all classifiers")
    parser.add_argument("--keys", type=int, default=40)
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    executable = find_chromium()
    if executable is None:
        sys.exit("there is no Chromium; see tests/browser/chromium.py")
    print(f"{machine()}; goal for the first prediction: {GOAL_FIRST_MS:.0f} ms")
    headings = ("weights", "file", "of limit", "first", "tokens", "redrawn", "worst", "frame", "CPU")
    print(f"{'':24}" + "".join(f"{heading:>14}" for heading in headings) + "   goal")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        root = Path(scratch)
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        for name in options.checkpoints or [classifier.name for classifier in list_checkpoints().classifiers]:
            checkpoint = load_checkpoint(name)
            if unsupported(checkpoint):
                continue
            page = export_page([name], root / f"page-{name}", single_file=True)
            first, times, cpu = measure(browser, page, text_of(checkpoint), keys=options.keys, starts=options.starts)
            assert checkpoint.path is not None
            weights, size = (checkpoint.path / "model.safetensors").stat().st_size, page.stat().st_size
            goal = f"{GOALS_MS[name]:.0f} ms" if name in GOALS_MS else ""
            limit = 1.45 * weights + 300_000
            cells = (
                f"{weights / 1e6:.2f} MB", f"{size / 1e6:.2f} MB", f"{size / limit:.0%}", f"{first:.0f} ms",
                f"{times['tokens']}", f"{statistics.median(times['redrawn']):.1f} ms",
                f"{max(times['redrawn']):.1f} ms", f"{statistics.median(times['framed']):.1f} ms", f"{cpu:.1f} ms",
            )  # fmt: skip
            print(f"{name:24}" + "".join(f"{cell:>14}" for cell in cells) + f"   {goal}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
