"""The served app under load: many visitors, visitors who leave early, a server restart, and texts of megabytes."""

import os
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocket

from tests.browser.conftest import PATIENCE_MS, Server
from tests.browser.server import free_port, serving
from tests.browser.visiting import text_box, visit
from tests.browser.visitors import Visitor, visit_together
from tests.conftest import FULL_SIZE

pytestmark = pytest.mark.attack


@pytest.mark.parametrize("page", ["", "attention", "heads", "explanation", "whatif"] if FULL_SIZE else [""])
def test_thirty_visitors_at_once_see_only_their_own_texts(server: Server, page: str) -> None:
    before = len(server.complaints())
    names = [f"visitor{n:02}of{page or 'classify'}" for n in range(30)]
    visits = visit_together(server.address, page, [f"the bank raised {name} again" for name in names])
    for name, one in zip(names, visits, strict=True):
        assert one.finished
        assert name.encode() in one.sent
        assert b"Traceback" not in one.sent
        for other in names:
            assert other == name or other.encode() not in one.sent, f"{name} was sent the text of {other}"
    assert server.complaints()[before:] == []


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has used so far, in all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settled(pid: int) -> float:
    """The CPU time that a process has used once it is idle."""
    before, now = -1.0, cpu_seconds(pid)
    while now - before > 0.05:
        time.sleep(0.5)
        before, now = now, cpu_seconds(pid)
    return now


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads a process's time from /proc")
def test_computations_end_when_their_visitors_have_left(shipped: Server) -> None:
    words = "shares of the bank fell after the report on rates and the comet was seen by voters " * 12
    n = 6
    with Visitor(shipped.address) as visitor:
        visitor.open("explanation", checkpoint="imdb", text="a film about the sea")
        start = settled(shipped.pid)
        visitor.open("explanation", checkpoint="imdb", text=words)
        seconds_of_one = settled(shipped.pid) - start
    start = settled(shipped.pid)
    texts = [f"{words} {number}" for number in range(n)]
    visit_together(shipped.address, "explanation", texts, leave_after=0.3, checkpoint="imdb")
    spent = settled(shipped.pid) - start
    assert spent < 0.5 * n * seconds_of_one, (
        f"{n} visitors who left cost {spent:.1f} s; one who stays costs {seconds_of_one:.1f} s"
    )


def test_text_typed_while_the_server_restarts_is_answered_afterwards(
    browser: Browser, server: Server, tmp_path: Path
) -> None:
    environment, port = {"TXCLS_CHECKPOINTS": str(server.log.parent / "checkpoints")}, free_port()
    typed = "ministers met to end the dispute about the comet"
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    sockets: list[WebSocket] = []
    page.on("websocket", lambda socket: sockets.append(socket))
    box = text_box(page)
    with serving(tmp_path / "1.log", environment=environment, port=port) as app:
        page.goto(f"{app.address}/?text=the+bank")
        page.locator(".st-key-chart_bars .js-plotly-plot .bars path").first.wait_for(state="attached")
        page.wait_for_function("window.txclsStopLiveText !== undefined")
        page.wait_for_load_state("networkidle")
        os.kill(app.pid, 19)  # SIGSTOP: connections stay open, but nothing is handled
        with sockets[-1].expect_event("framesent"):  # the text has been sent
            box.fill(typed)
        os.kill(app.pid, 9)
        os.kill(app.pid, 18)
    with serving(tmp_path / "2.log", environment=environment, port=port):
        page.wait_for_function(
            "(text) => document.querySelector('.txcls-text')?.textContent === text", arg=typed, timeout=PATIENCE_MS
        )
        assert box.input_value() == typed
    page.close()


def test_a_text_of_megabytes_is_cut_in_the_browser_with_a_message(page: Page, server: Server) -> None:
    visit(page, server, text="the bank")
    page.wait_for_function("window.txclsStopLiveText !== undefined")
    text_box(page).fill("the striker scored twice " * 120_000)
    page.get_by_text("longer than 20,000 characters").wait_for()
    assert len(text_box(page).input_value()) == 20_000
