"""How long a tap on a phone takes to the projector, with a whole class tapping, and what the class costs the server.

    python -m benchmarks.class_answers [--phones 200]

A real Chromium shows the slides of a lesson with three questions; the phones are simulated, each with a connection that
waits for the next question, as the phones' page does. For the first and second question, the phones tap within ten
seconds; for the third, all within one. The time of the n-th tap is from sending it to the frame in which the slide says
that there are n answers. The other time is from the lecturer's key to a phone that shows the next question.
Simulated phones and the browser need CPU time too. Exit code 1 if a goal is missed. Memory is the server's (Linux).
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._measure import HOSTED, Memory, machine, quantile
from tests.browser.chromium import find_chromium
from tests.browser.phones import Phone
from tests.browser.server import CHROMIUM_ARGS, serving
from tests.browser.visiting import settle

if TYPE_CHECKING:
    from playwright.sync_api import Page

GOAL_SECONDS, GOAL_MB = 2.0, 150.0
STEPS: dict[int, tuple[float, list[Any]]] = {1: (10.0, [[0], [1]]), 3: (10.0, [20, 60, 99]), 4: (1.0, [[0], [1], [2]])}
"""For each step of the lesson "attention" with a question: the seconds in which the phones tap, and their answers."""
WATCH = """() => {
  window.seen = []
  const look = () => {
    const find = (root) => root.querySelector(".class") ??
      [...root.querySelectorAll("*")].map(({shadowRoot}) => shadowRoot && find(shadowRoot)).find(Boolean)
    const text = find(document.querySelector(".st-key-lecture"))?.textContent ?? ""
    const n = Number(text.match(/(\\d+) \\//)?.[1] ?? 0)
    if (n > (window.seen.at(-1)?.[0] ?? 0)) window.seen.push([n, Date.now() / 1000])
    window.watching = requestAnimationFrame(look)
  }
  cancelAnimationFrame(window.watching)
  look()
}"""
"""Records when the bar has shown a larger number of answers."""


class Audience:
    """Phones that follow the lecturer and note when they are shown a question."""

    def __init__(self, room: str, n: int) -> None:
        self.phones = [Phone(room) for _ in range(n)]
        self.problems: list[str] = []
        self.shown: dict[str, list[float]] = {}
        self._question: list[dict[str, Any] | None] = [None] * n
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(number,), daemon=True) for number in range(n)]
        for thread in self._threads:
            thread.start()

    def _follow(self, number: int) -> None:
        version: object = ""
        time.sleep(random.uniform(0, 3))  # a hall does not scan the code in the same instant
        while not self._ended.is_set():
            try:
                shown = self.phones[number].look(version)
            except (OSError, AssertionError) as error:
                if not self._ended.is_set():
                    self.problems.append(f"{type(error).__name__}: {error}")
                time.sleep(1)
                continue
            question = shown["question"]
            if question and question != self._question[number] and shown["stage"] == "open":
                self.shown.setdefault(question["id"], []).append(time.time())
            self._question[number], version = question, shown["version"]

    def ready(self, n_questions: int) -> str:
        """Wait until all phones show the n-th question, and return its id."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            ids = list(self.shown)
            if len(ids) == n_questions and len(self.shown[ids[-1]]) == len(self.phones):
                return ids[-1]
            time.sleep(0.05)
        raise TimeoutError(f"not all phones show question {n_questions}: {[len(at) for at in self.shown.values()]}")

    def tap(self, question: str, seconds: float, choices: list[Any]) -> list[float]:
        """All phones answer at random times within some seconds; returns when each sent its tap."""
        sent: list[float] = []

        def tap(phone: Phone) -> None:
            time.sleep(random.uniform(0, seconds))
            sent.append(time.time())
            status = phone.answer(question, random.choice(choices))
            if status != 204:
                self.problems.append(f"a tap was answered with {status}")

        with ThreadPoolExecutor(len(self.phones)) as crowd:
            for done in [crowd.submit(tap, phone) for phone in self.phones]:
                done.result()
        return sorted(sent)

    def leave(self) -> None:
        """Stop following; requests that wait end with the room."""
        self._ended.set()


def go_through(page: "Page", address: str, n: int) -> tuple[Audience, dict[str, list[float]], list[float]]:
    """Hold the lecture; returns the seconds from taps to the projector by step, and from a key to the phones."""
    page.goto(f"{address}/?lesson=attention&step=1&mode=lecture")
    page.locator(".st-key-slide_0").wait_for()
    settle(page)
    page.wait_for_function("!!window.txclsLecture?.classroom")
    page.keyboard.press("a")
    link = page.locator(".st-key-classroom .link")
    link.wait_for()
    audience, taps, turns, at = Audience(f"http://{link.inner_text()}", n), {}, [], 1
    page.keyboard.press("PageDown")  # hides the code
    for number, (step, (seconds, choices)) in enumerate(STEPS.items(), 1):
        while at < step:
            settle(page)
            at, turned = at + 1, time.time()
            page.keyboard.press("Shift+PageDown")
            page.wait_for_url(f"**step={at}**")
        question = audience.ready(number)
        turns += [shown - turned for shown in audience.shown[question]] if number > 1 else []
        page.locator(
            ".st-key-lecture .class", has_text=f"Answers: 0 / {n}"
        ).wait_for()  # the slide has the question too
        page.evaluate(WATCH)
        sent = audience.tap(question, seconds, choices)
        page.wait_for_function(f"window.seen.at(-1)?.[0] === {n}", timeout=60_000)
        seen: list[tuple[int, float]] = page.evaluate("window.seen")
        shown_at = [next(at for count, at in seen if count >= rank) for rank in range(1, n + 1)]
        taps[f"tap to projector, step {step}, all within {seconds:g} s"] = [
            shown - tap for shown, tap in zip(shown_at, sent, strict=True)
        ]
        while not page.locator(".st-key-classroom .answer:visible").count():
            page.keyboard.press("PageDown")
            page.wait_for_timeout(300)
    return audience, taps, turns


def main() -> int:
    """Print the table; returns 1 if a goal is missed."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phones", type=int, default=200)
    n = parser.parse_args().phones
    print(machine())
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "server.log", environment=HOSTED) as app,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_ARGS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        for step in STEPS:  # loads the checkpoint and solves the questions
            page.goto(f"{app.address}/?lesson=attention&step={step}&mode=lecture")
            page.wait_for_function("!!window.txclsLecture?.classroom")
            page.wait_for_timeout(2000)
        with Memory(app.pid) as memory:
            before = memory.now()
            audience, taps, turns = go_through(page, app.address, n)
            added = memory.peak - before
        page.keyboard.press("a")
        audience.leave()
        page.locator(".st-key-classroom .end:visible").click()
        page.wait_for_timeout(1000)
        browser.close()
        tracebacks = (Path(folder) / "server.log").read_text(encoding="utf-8", errors="replace").count("Traceback")
    print(f"\n{f'{n} phones, seconds from':<52}{'median':>8}{'95 %':>8}{'worst':>8}{'goal':>8}")
    for name, times in [*taps.items(), ("key to phones with the next question", turns)]:
        cells = (quantile(times, 0.5), quantile(times, 0.95), max(times), GOAL_SECONDS)
        print(f"{name:<52}{''.join(f'{cell:>8.2f}' for cell in cells)}")
    print(f"\nmemory over that before the class, at most: {added:.0f} MB (goal {GOAL_MB:.0f})")
    print(f"problems of phones: {len(audience.problems)}; tracebacks in the server's log: {tracebacks}; {machine()}")
    for problem in list(dict.fromkeys(audience.problems))[:5]:
        print(f"  {problem[:160]}")
    missed = any(quantile(times, 0.95) > GOAL_SECONDS for times in taps.values()) or added > GOAL_MB
    return int(missed or bool(tracebacks) or bool(audience.problems))


if __name__ == "__main__":
    sys.exit(main())
