"""The served app under visitors who come in crowds, flood it with texts, send files, or use odd URLs.

They speak the app's protocol without a browser (tests/browser/visitors.py). There are more of them at full size
(`make attack`). Memory is read from /proc, so these tests need Linux.
"""

import http.client
import random
import shutil
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from benchmarks._measure import HOSTED, Memory
from tests.app.tiny import PLAIN, save_tiny_checkpoints
from tests.browser.server import Served, serving
from tests.browser.visitors import PAGES, Visit, Visitor
from tests.checkpoint.test_listing import DAMAGES
from tests.conftest import FULL_SIZE
from txcls.data.datasets import EXAMPLES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.attack,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc"),
]
MAX_MB = 900
MAX_KEPT_MB = 150
"""Memory that may be kept after visits, over that of a process that has drawn one page."""
WORDS = sorted({word for example in EXAMPLES for word in example.text.split()})


def some_text(n_words: int, seed: int) -> str:
    """Words from the examples in random order; no two seeds give the same text."""
    return " ".join(random.Random(seed).choices(WORDS, k=n_words)) + f" {seed}"


def problems_of(visits: Iterable[Visit]) -> list[str]:
    """Exceptions shown on pages, and pages that were not drawn to the end."""
    return [
        problem for visit in visits for problem in visit.exceptions or (() if visit.finished else ("page unfinished",))
    ]


@contextmanager
def tiny_app(folder: Path, **environment: str) -> Iterator[Served]:
    """The app with untrained checkpoints; a traceback in its output fails the test at the end."""
    if not (folder / "checkpoints").exists():
        save_tiny_checkpoints(folder / "checkpoints")
    log = folder / "server.log"
    places = {"TXCLS_CHECKPOINTS": str(folder / "checkpoints")}
    with serving(log, environment=HOSTED | places | environment) as app:
        yield app
    assert "Traceback" not in log.read_text(encoding="utf-8", errors="replace")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with tiny_app(tmp_path_factory.mktemp("served")) as served:
        yield served


def test_memory_stays_flat_with_new_texts_on_every_page(tmp_path: Path) -> None:
    rounds = 20 if FULL_SIZE else 8
    trail = []
    with tiny_app(tmp_path, TXCLS_CACHE_MB="32") as app, Memory(app.pid) as memory, Visitor(app.address) as visitor:
        for number in range(rounds):
            visits = [visitor.open(page, text=some_text(20, 1000 * number + n)) for n, page in enumerate(PAGES)]
            assert not problems_of(visits)
            trail.append(memory.now())
    assert memory.peak < MAX_MB
    assert trail[-1] - trail[len(trail) // 2] < 20, f"MB after each round: {trail}"


def test_texts_of_megabytes_end_the_connection_of_their_visitor_only(app: Served) -> None:
    with Memory(app.pid) as memory, Visitor(app.address) as other:
        assert other.open("", text="the bank").finished
        for number in range(10 if FULL_SIZE else 4):
            with Visitor(app.address) as visitor:
                assert visitor.open("", text="the bank").finished
                with pytest.raises((OSError, ConnectionClosed)):
                    visitor.type(f"{number} " + "word " * 2_000_000)
        assert other.type("the bank raised its rates").finished
    assert memory.peak < MAX_MB


def test_a_file_is_refused_before_it_is_read_and_memory_stays(app: Served) -> None:
    with Visitor(app.address) as visitor, Memory(app.pid) as memory:
        assert visitor.open("", text="the bank").finished and visitor.session
        path = f"/_stcore/upload_file/{visitor.session}/file"
        assert send(app.address, "PUT", path, 1)[0] == 405, "the session is open"
        before = memory.now()
        for number in range(10 if FULL_SIZE else 4):
            status, n_sent = send(app.address, "PUT", f"{path}{number}", 50)
            assert status == 405 and n_sent < 10, f"{n_sent} of 50 MB were received"
        for method, other in (("POST", path), ("DELETE", path), ("GET", path), ("POST", "/"), ("PUT", "/encoder")):
            assert send(app.address, method, other, 50)[0] == 405, (method, other)
        assert visitor.type("the bank raised its rates").finished
        assert memory.peak - before < 10
        with urllib.request.urlopen(f"{app.address}/") as answer:
            assert not answer.headers.get_all("Set-Cookie"), "nothing is remembered about a visitor"


def send(address: str, method: str, path: str, megabytes: int) -> tuple[int, int]:
    """Send a file in parts of a megabyte until the server answers; return the status and the megabytes sent."""
    boundary = "0123456789abcdef"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n'.encode()
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    sent = 0
    try:
        connection.putrequest(method, path)
        size = {"Content-Length": str(len(head) + (megabytes << 20))}
        for name, value in {"Content-Type": f"multipart/form-data; boundary={boundary}", **size}.items():
            connection.putheader(name, value)
        connection.endheaders(head)
        with suppress(BrokenPipeError, ConnectionResetError):  # the server has closed the connection
            while sent < megabytes and not select([connection.sock], [], [], 0.05)[0]:
                connection.send(b"x" * (1 << 20))
                sent += 1
        return connection.getresponse().status, sent
    finally:
        connection.close()


def test_no_file_is_written_while_every_page_is_used(tmp_path: Path) -> None:
    log = tmp_path / "writes.log"
    log.touch()
    save_tiny_checkpoints(tmp_path / "checkpoints")
    plain = tmp_path / "checkpoints" / PLAIN
    shutil.copytree(plain, plain.with_name(f".{PLAIN}.saved-0123456789abcdef"))  # as a killed save leaves it
    settings = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(Path(__file__).parent / "audited"),
        "WRITES": str(log),
    }
    with tiny_app(tmp_path, **settings) as app, Visitor(app.address) as visitor:
        for page in (*PAGES, "playground"):
            assert not problems_of([visitor.open(page, text="the bank raised its rates")]), page
            if visitor.has_text_box:
                assert not problems_of([visitor.type("the bank lowered its rates")]), page
        assert not problems_of([visitor.open("", checkpoint="gone"), visitor.open("", lesson="no such lesson")])
        assert log.read_text("utf-8").splitlines()[1:] == []
    assert log.read_text("utf-8").startswith("audited\n"), "the hook was installed"


def test_memory_stays_within_a_hosts_and_is_returned_after_the_last_visitor(tmp_path: Path) -> None:
    """With the shipped checkpoints; nobody comes again after the last visitor."""
    environment = HOSTED | {"STREAMLIT_SERVER_DISCONNECTED_SESSION_TTL": "5"}  # by default 120
    with serving(tmp_path / "server.log", environment=environment) as app, Memory(app.pid) as memory:
        with Visitor(app.address) as visitor:
            assert visitor.open("", text="a film about the sea").finished
        limit, visits = memory.now() + MAX_KEPT_MB, []
        for name, pages in (("ag_news", ("attention", "steps", "film")), ("imdb", ("attention", "steps"))):
            with Visitor(app.address) as visitor:
                for page in pages:
                    visits.append(visitor.open(page, checkpoint=name, text="a film about the sea"))
                    n_words = 900 if page == "attention" else 400
                    visits += [visitor.type(some_text(n_words, n)) for n in range(10 if FULL_SIZE else 3)]
        assert not problems_of(visits)
        assert memory.now() > limit, "the visits are large enough for this test"
        end = time.monotonic() + 65
        while (kept := memory.now()) > limit and time.monotonic() < end:
            time.sleep(1)
        assert 0 < kept <= limit
    assert memory.peak < MAX_MB


ODD_ADDRESSES = (
    {"text": "", "layer": "9" * 5000, "head": "-1", "k": "nan"},
    {"text": "\x00\x1b[31m\u202e" * 50, "checkpoint": "../../etc/passwd"},
    {"text": "a b", "switched": "1.1," * 1000 + "t9999,positions", "heads": "uniform", "off": "mean"},
    {"text": "a b", "part": "continue", "added": ".".join(["1"] * 5000), "temperature": "1e400", "seed": "1e9"},
    {"text": "a b", "part": "continue", "masked": "nothing", "causal": "x" * 300, "blank": "10000", "upto": "9999"},
    {"text": "<script>alert(1)</script>", "step": "<b>", "changed": "=1+1", "versus": "<i>"},
)


def test_odd_addresses_are_answered_on_every_page(app: Served) -> None:
    with Visitor(app.address) as visitor:
        for page in PAGES:
            for params in ODD_ADDRESSES:
                assert not problems_of([visitor.open(page, **params)]), (page, params)


def test_pages_work_with_broken_checkpoints(tmp_path: Path) -> None:
    root = tmp_path / "checkpoints"
    save_tiny_checkpoints(root)
    for name, (damage, _) in DAMAGES.items():
        shutil.copytree(root / PLAIN, root / f"bad {name}")
        damage(root / f"bad {name}")
    shutil.copytree(root / PLAIN, root / "bad<b>*[x](y)`$\n\x1b[31m")
    broken = [folder.name for folder in root.iterdir() if folder.name.startswith("bad")]
    with tiny_app(tmp_path) as app, Visitor(app.address) as visitor:
        for page in PAGES:
            for name in broken if page == "" else broken[:1]:
                visit = visitor.open(page, text="the bank", checkpoint=name, masked=name, causal=name)
                assert not problems_of([visit]), (page, name)
