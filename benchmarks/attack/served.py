"""Attacks on the served app: crowds, floods of texts, visitors who leave, uploads, a server that goes away."""

import http.client
import os
import random
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed

from benchmarks.attack._row import HOSTED, Memory, Row, Scene, attack, percentile
from tests.app.tiny import save_tiny_checkpoints
from tests.browser.chromium import find_chromium
from tests.browser.server import CHROMIUM_ARGS, free_port, serving
from tests.browser.visitors import PAGES, Visit, Visitor, visit_pages_together
from txcls.app.shell.limits import limits
from txcls.data.examples import EXAMPLES

MOST_MB = 900
OVER_THE_LIMIT_MB = 2 * limits().upload_megabytes
WORDS = sorted({word for example in EXAMPLES for word in example.text.split()})


def some_text(n_words: int, seed: int) -> str:
    """Words of the examples in an order of their own."""
    return " ".join(random.Random(seed).choices(WORDS, k=n_words)) + f" {seed}"


def wrong(visits: Iterable[Visit]) -> list[str]:
    """What exception boxes say, and a word on pages that were not drawn to their end."""
    found = []
    for visit in visits:
        found += visit.exceptions or ([] if visit.finished else ["a page not drawn to its end"])
    return found


def first_of(problems: Sequence[str]) -> str:
    """The first of them, short, for behind the figures."""
    return f", {problems[0][:60]}" if problems else ""


def complaints(log: Path) -> list[str]:
    """The last lines of tracebacks in a server's output."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if line.startswith(("Traceback", "  File")) is False and "Error:" in line]


@attack
def crowds(scene: Scene) -> Iterator[Row]:
    """40 sessions on mixed pages in the first second of a fresh server, 20 times."""
    starts, sessions, failed = 20, 40, 0
    save_tiny_checkpoints(scene.folder / "checkpoints")
    environment = {"TXCLS_CHECKPOINTS": str(scene.folder / "checkpoints")}
    problems: list[str] = []
    slowest = 0.0
    for start in range(starts):
        log = scene.folder / f"server{start}.log"
        order = random.Random(start)
        pages = [PAGES[n % len(PAGES)] for n in range(sessions)]
        order.shuffle(pages)
        with serving(log, environment=environment) as app:
            visits = visit_pages_together(
                app.address, [(page, f"visitor {n} on the bank") for n, page in enumerate(pages)], patience=120
            )
        found = wrong(visits) or complaints(log)
        problems += found
        failed += bool(found)
        slowest = max(slowest, *(visit.seconds for visit in visits))
        if failed == 3:  # that is enough, and each may take minutes
            starts = start + 1
            break
    first = f": {problems[0][:80]}" if problems else ""
    yield Row(
        f"{starts} fresh starts, {sessions} sessions each at the first moment",
        "no exception page",
        f"{len(problems)} of {starts * sessions:,}{first}; slowest page {slowest:.1f} s",
        not problems,
    )


@attack
def long_texts(scene: Scene) -> Iterator[Row]:
    """80 texts of 900 words on Attention with imdb, then 40 texts of 10 MB on Classify: memory."""
    with (
        serving(scene.folder / "a.log", environment=HOSTED) as app,
        Memory(app.pid) as memory,
        Visitor(app.address) as visitor,
    ):
        visits = [visitor.open("attention", checkpoint="imdb", text="a film about the sea")]
        first = memory.now()
        visits += [visitor.type(some_text(900, n)) for n in range(80)]
    problems = wrong(visits)
    yield Row(
        "80 texts of 900 words, Attention, imdb",
        f"under {MOST_MB} MB, no exception",
        f"{first:.0f} to at most {memory.peak:.0f} MB{first_of(problems)}",
        memory.peak < MOST_MB and not problems,
    )
    with serving(scene.folder / "c.log", environment=HOSTED) as app, Memory(app.pid) as memory:
        visits, lost = [], 0
        for n in range(40):
            with Visitor(app.address) as visitor:
                visits.append(visitor.open("", text="a film about the sea"))
                try:
                    visits.append(visitor.type(f"{n} " + "word " * 2_000_000))
                except (OSError, ConnectionClosed):
                    lost += 1
        after = memory.now()
    problems = wrong(visits)
    yield Row(
        "40 texts of 10 MB, Classify",
        f"under {MOST_MB} MB, no exception",
        f"at most {memory.peak:.0f} MB, {after:.0f} after; slowest {max(visit.seconds for visit in visits):.1f} s"
        f"{f', {lost} cut off' if lost else ''}{first_of(problems)}",
        memory.peak < MOST_MB and not problems,
    )


@attack
def many_texts(scene: Scene) -> Iterator[Row]:
    """Different texts on every page, 20 (with --long 10,000) each, with little room for caches: memory flat."""
    each = 10_000 if scene.long else 20
    environment = HOSTED if scene.long else HOSTED | {"TXCLS_CACHE_MB": "32"}
    trail: list[float] = []
    problems: list[str] = []
    served = serving(scene.folder / "server.log", environment=environment)
    with served as app, Memory(app.pid) as memory, Visitor(app.address) as visitor:
        for round_ in range(each + 1):  # the first one loads what the pages need
            for number, page in enumerate(PAGES):
                problems += wrong([visitor.open(page, text=some_text(20, round_ * len(PAGES) + number))])
            trail.append(memory.now())
    half = trail[len(trail) // 2 :]
    quarter = max(1, len(half) // 2)
    growth = sum(half[-quarter:]) / quarter - sum(half[:quarter]) / quarter
    texts = quarter * len(PAGES)
    yield Row(
        f"{each:,} different texts on each of {len(PAGES)} pages",
        f"under {MOST_MB} MB, grows by less than 20 MB over the second half, no exception",
        f"at most {memory.peak:.0f} MB, {growth:+.0f} MB over {texts:,} texts{first_of(problems)}",
        memory.peak < MOST_MB and growth < 20 and not problems,
    )


@attack
def left_behind(scene: Scene) -> Iterator[Row]:
    """20 sessions open Explanation and leave; how long the next ones wait, alone and forty at once."""
    with serving(scene.folder / "server.log") as app:
        with Visitor(app.address) as visitor:
            for page in PAGES:
                visitor.open(page, text="the first visitor loads what the pages need")
        _open_and_leave(app.address, 0)
        with Visitor(app.address) as visitor:
            bars = visitor.open("", text=some_text(12, 1))
        _open_and_leave(app.address, 100)
        with Visitor(app.address) as visitor:
            explained = visitor.open("explanation", text=some_text(12, 2))
        _open_and_leave(app.address, 200)
        wanted = [(PAGES[n % len(PAGES)], some_text(12, 1000 + n)) for n in range(40)]
        visits = visit_pages_together(app.address, wanted)
    problems = wrong([bars, explained, *visits])
    seconds = [visit.seconds for visit in visits]
    yield Row(
        "20 leave Explanation, the next opens Classify", "2 s to the bars", f"{bars.answered:.1f} s", bars.seconds <= 2
    )
    yield Row(
        "20 leave Explanation, the next opens it",
        "5 s to the whole page",
        f"{explained.seconds:.1f} s",
        explained.seconds <= 5,
    )
    p95, worst = percentile(seconds, 0.95), max(seconds)
    yield Row(
        "20 leave Explanation, then 40 at once on mixed pages",
        "95 % of pages in 10 s, no exception",
        f"median {percentile(seconds, 0.5):.1f} s, 95 % in {p95:.1f} s, worst {worst:.1f} s" + first_of(problems),
        p95 <= 10 and not problems,
    )


def _open_and_leave(address: str, seed: int) -> None:
    wanted = [("explanation", some_text(60, seed + n)) for n in range(20)]
    visit_pages_together(address, wanted, leave_after=0.5)


@attack
def uploads(scene: Scene) -> Iterator[Row]:
    """Files sent without a page's uploader: those over the limit are refused, and of many small ones few are kept."""
    with serving(scene.folder / "server.log") as app, Visitor(app.address) as visitor:
        visitor.open("", text="the bank raised its rates")
        assert visitor.session is not None
        with Memory(app.pid) as memory:
            status = _put(app.address, visitor.session, OVER_THE_LIMIT_MB, {})
            yield Row(f"{OVER_THE_LIMIT_MB} MB without a token", "refused", f"HTTP {status}", 400 <= status < 500)
            token = _token(app.address)
            status = _put(app.address, visitor.session, OVER_THE_LIMIT_MB, token)
            yield Row(f"{OVER_THE_LIMIT_MB} MB with a token", "refused", f"HTTP {status}", 400 <= status < 500)
            before = memory.now()
            statuses = [_put(app.address, visitor.session, 0.9, token, name=f"file{n}") for n in range(300)]
            taken = sum(200 <= status < 300 for status in statuses)
            growth = memory.now() - before
        yield Row(
            "300 files of 0.9 MB with a token, one session",
            "memory grows by less than 50 MB",
            f"{taken} taken, {growth:+.0f} MB",
            growth < 50,
        )


def _token(address: str) -> dict[str, str]:
    """Headers with the token that the server gives to whoever asks."""
    with urllib.request.urlopen(f"{address}/_stcore/health") as answer:
        cookies = answer.headers.get_all("Set-Cookie") or []
    with urllib.request.urlopen(f"{address}/_stcore/host-config") as answer:
        cookies += answer.headers.get_all("Set-Cookie") or []
    found = [cookie.partition(";")[0] for cookie in cookies if "xsrf" in cookie.lower()]
    if not found:
        return {}
    return {"Cookie": found[0], "X-Xsrftoken": found[0].partition("=")[2].strip('"')}


def _put(address: str, session: str, megabytes: float, headers: dict[str, str], *, name: str = "file") -> int:
    """The status with which the server answers a file."""
    boundary = "0123456789abcdef"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n'
    body = head.encode() + b"x" * int(megabytes * 2**20) + f"\r\n--{boundary}--\r\n".encode()
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        connection.request(
            "PUT",
            f"/_stcore/upload_file/{session}/{name}",
            body,
            {"Content-Type": f"multipart/form-data; boundary={boundary}", **headers},
        )
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 413  # it hung up in the middle, which is a refusal
    finally:
        connection.close()


@attack
def server_away(scene: Scene) -> Iterator[Row]:
    """A text typed while the server is away, in a real browser: answered once it is back."""
    tried, limit = "a text typed while the server was away", "answered within 60 s of its return"
    executable = find_chromium()
    if executable is None:
        yield Row(tried, limit, "no Chromium here: python tests/browser/chromium.py", False)
        return
    from playwright.sync_api import Error, sync_playwright

    save_tiny_checkpoints(scene.folder / "checkpoints")
    environment = {"TXCLS_CHECKPOINTS": str(scene.folder / "checkpoints")}
    port, log = free_port(), scene.folder / "server.log"
    bars = ".st-key-chart_bars .js-plotly-plot .bars path"
    text = "ministers met to end the dispute about the comet"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGS)
        page = browser.new_page()
        with serving(log, environment=environment, port=port) as app:
            page.goto(app.address)
            page.wait_for_selector(bars, state="attached", timeout=60_000)
            page.wait_for_timeout(1000)
            # A server that no longer answers, though its connection is still open: the box takes the text.
            os.kill(app.pid, signal.SIGSTOP)
            page.locator('[class*="st-key-text_box"] textarea').fill(text)
            page.wait_for_timeout(2000)
            os.kill(app.pid, signal.SIGKILL)
        with serving(log, environment=environment, port=port):
            back = time.perf_counter()
            answered = "document.querySelector('.txcls-text')?.textContent"
            try:
                page.wait_for_function(f"(text) => {answered} === text", arg=text, timeout=60_000)
                measured, ok = f"after {time.perf_counter() - back:.1f} s", True
            except Error:
                measured, ok = f"not answered; the page shows {str(page.evaluate(answered))[:60]!r}", False
        browser.close()
    yield Row(tried, limit, measured, ok)


@attack
def queries(scene: Scene) -> Iterator[Row]:
    """Addresses with long, wrong and strange parameters on every page: answered."""
    save_tiny_checkpoints(scene.folder / "checkpoints")
    strange: Sequence[dict[str, str]] = (
        {"text": "", "layer": "9" * 5000, "head": "-1", "k": "nan"},
        {"text": "\x00\x1b[31m\u202e" * 50, "checkpoint": "../../etc/passwd"},
        {"text": "a b", "switched": "1.1," * 1000 + "t9999,positions", "heads": "uniform", "off": "mean"},
        {"text": "a b", "part": "continue", "added": ".".join(["1"] * 5000), "temperature": "1e400", "seed": "1e9"},
        {"text": "a b", "part": "masks", "masked": "nothing", "causal": "x" * 300, "blank": "10000", "upto": "9999"},
        {"text": "<script>alert(1)</script>", "step": "<b>", "changed": "=1+1", "versus": "<i>"},
    )
    log = scene.folder / "server.log"
    asked = [(page, params) for page in PAGES for params in strange]
    environment = {"TXCLS_CHECKPOINTS": str(scene.folder / "checkpoints")}
    with serving(log, environment=environment) as app, ThreadPoolExecutor(4) as visitors:
        visits = list(visitors.map(lambda one: _opened(app.address, *one), asked))
    problems = wrong(visits) or complaints(log)
    yield Row(
        f"{len(strange)} strange addresses on each of {len(PAGES)} pages",
        "no exception page",
        problems[0][:100] if problems else "each answered",
        not problems,
    )


def _opened(address: str, page: str, params: dict[str, str]) -> Visit:
    with Visitor(address, patience=120) as visitor:
        return visitor.open(page, **params)
