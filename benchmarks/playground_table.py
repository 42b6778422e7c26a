"""How long a visitor with a table waits in the playground, and how much memory the page takes.

    python -m benchmarks.playground_table [--rows 500] [--long-rows 3000] [--slowed]

A real Chromium opens the exported page with the encoder. It gets a table of `--rows` rows of 25 tokens in six classes
and trains the encoder and its twin, with evaluation: seconds until the accuracy of the frozen encoder stands, until
fine-tuning has read every training row ten times, and until everything is done; milliseconds from a keystroke in the
sentence to the redrawn picture meanwhile. With `--slowed`, all threads of the page get a quarter of their time
(SIGSTOP and SIGCONT in turn), as on a phone. Then the memory of the page's process over that of a blank page with
`--long-rows` rows of 128 tokens, from pasting until training has run for `--seconds`. Goals in benchmarks/README.md.
"""

import argparse
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks._measure import Memory, machine, resident_mb
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS
from txcls.data.generated.sample import open_sample
from txcls.web.playground import export_playground

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TOKENS_PER_WORD = 1.3
"""Of the encoder's byte pairs in the sample messages."""
REDRAW = """
(text) => new Promise((resolve) => {
  const began = performance.now(), picture = document.getElementById("picture"), box = document.getElementById("text");
  new MutationObserver((_, observer) => { observer.disconnect(); resolve(performance.now() - began); })
    .observe(picture, {childList: true, subtree: true, characterData: true});
  box.value = text;
  box.dispatchEvent(new Event("input", {bubbles: true}));
})
"""


def table(n: int, tokens: int) -> str:
    """A pasted table of n texts, made of the sample messages of a class, and their classes."""
    sample = open_sample()
    rows = sample.load("train")
    by_class: list[list[str]] = [[] for _ in sample.classes]
    for text, label in zip(rows.texts, rows.labels, strict=True):
        by_class[label].append(text)
    lines = ["text\tclass"]
    for i in range(n):
        label = i % len(by_class)
        words: list[str] = []
        for j in range(1_000_000):
            if len(words) * TOKENS_PER_WORD >= tokens:
                break
            words += by_class[label][(7 * i + j * (1 + i // 80)) % len(by_class[label])].split()
        lines.append(" ".join(words[: round(tokens / TOKENS_PER_WORD)]) + f"\t{sample.classes[label]}")
    return "\n".join(lines)


def renderer(browser_pid: int) -> int:
    """The process of the page: the largest renderer among the browser's descendants."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(") ", 1)[1].split()
            parents[int(status.parent.name)] = int(fields[1])
        except (OSError, IndexError):
            continue

    def is_descendant(pid: int) -> bool:
        while pid in parents:
            if (pid := parents[pid]) == browser_pid:
                return True
        return False

    found = [
        pid for pid in parents
        if is_descendant(pid) and b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]  # fmt: skip
    return max(found, key=lambda pid: resident_mb(pid) or 0.0)


@contextmanager
def slowed(pid: int, factor: int) -> Iterator[None]:
    """Let a process run one part in `factor` of the time, in turns of 5 ms."""
    is_over = threading.Event()

    def alternate() -> None:
        while not is_over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.005 * (factor - 1))
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.005)

    thread = threading.Thread(target=alternate, daemon=True)
    if factor > 1:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        if factor > 1:
            thread.join()


PASTE = """(text) => {
  const data = new DataTransfer(), box = document.getElementById("table")
  data.setData("text", text)
  if (!box.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}))) return
  box.value = text // as the browser does unless the page takes a large table itself
  box.dispatchEvent(new Event("change"))
}"""


def stage_is(*stages: str) -> str:
    return f"() => {list(stages)!r}.includes(document.documentElement.dataset.stage)"


def paste(page: "Page", text: str) -> None:
    """Paste a table and wait until its rows are encoded."""
    page.evaluate(PASTE, text)
    page.wait_for_function(
        "() => document.documentElement.dataset.stage === 'ready' && document.getElementById('tasks').value === 'own'",
        timeout=120_000,
    )


def waits(browser: "Browser", pid: int, address: str, n: int, factor: int) -> None:
    """Print how long training on n rows of 25 tokens takes."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(1_800_000)
    page.goto(address)
    paste(page, table(n, 25))
    with slowed(renderer(pid), factor):
        began = time.perf_counter()
        page.locator("#play").click()
        page.wait_for_function(stage_is("training", "checking", "done"))
        print(f"the frozen encoder's accuracy: {time.perf_counter() - began:.1f} s")
        redraws = [page.evaluate(REDRAW, f"The goalkeeper let {i} easy shots in") for i in range(12)]
        median, worst = statistics.median(redraws), max(redraws)
        print(f"keystroke to picture while training: median {median:.0f} ms, worst {worst:.0f} ms")
        ten_passes = n * 4 // 5 * 10 // 16
        page.wait_for_function(
            "(steps) => Number(document.documentElement.dataset.steps) >= steps "
            "|| ['checking', 'done'].includes(document.documentElement.dataset.stage)",
            arg=ten_passes,
        )
        steps = page.locator("html").get_attribute("data-steps")
        print(f"{steps} steps of 16 texts (ten passes are {ten_passes}): {time.perf_counter() - began:.1f} s")
        page.wait_for_function(stage_is("done"))
        print(f"done: {time.perf_counter() - began:.1f} s: {page.locator('#accuracy').inner_text()}")
    page.close()


def memory(browser: "Browser", pid: int, address: str, n: int, seconds: float) -> None:
    """Print the memory of training on n rows of 128 tokens."""
    page = browser.new_page()
    page.set_default_timeout(1_800_000)
    page.goto("data:text/html,<!doctype html><title>blank</title>")
    blank = resident_mb(renderer(pid)) or 0.0
    page.goto(address)
    page.wait_for_timeout(1000)
    with Memory(renderer(pid)) as used:
        paste(page, table(n, 140))
        page.locator("#play").click()
        page.wait_for_function(stage_is("training", "checking", "done"))
        page.wait_for_timeout(1000 * seconds)
        print(f"memory over a blank page ({blank:.0f} MB): peak {used.peak - blank:.0f} MB")
    page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--long-rows", type=int, default=3000, help="0 to leave out the memory")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--slowed", action="store_true", help="give the page a quarter of its time")
    options = parser.parse_args()
    if (executable := find_chromium()) is None:
        sys.exit("there is no Chromium; see tests/browser/chromium.py")
    print(machine())
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        address = export_playground(Path(scratch) / "page", encoder=True).as_uri()
        before = {int(entry.name) for entry in Path("/proc").glob("[0-9]*")}
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        pid = next(
            int(entry.name) for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name))
            if int(entry.name) not in before and b"--remote-debugging-pipe" in (entry / "cmdline").read_bytes()
            and b"--type=" not in (entry / "cmdline").read_bytes()
        )  # fmt: skip
        if options.rows:
            waits(browser, pid, address, options.rows, 4 if options.slowed else 1)
        if options.long_rows:
            memory(browser, pid, address, options.long_rows, options.seconds)
        browser.close()


if __name__ == "__main__":
    main()
