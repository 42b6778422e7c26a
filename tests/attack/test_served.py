"""The served app under visitors who come in crowds, flood it with texts, upload unrequested files, or use odd URLs.

They speak the app's protocol without a browser (tests/browser/visitors.py). There are more of them at full size
(`make attack`). Memory is read from /proc, so these tests need Linux.
"""

import http.client
import random
import shutil
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed

from benchmarks._measure import HOSTED, Memory
from tests.app.tiny import PLAIN, save_tiny_checkpoints
from tests.browser.server import Served, serving
from tests.browser.visitors import PAGES, Visit, Visitor, visit_pages_together
from tests.checkpoint.test_listing import DAMAGES
from tests.conftest import FULL_SIZE
from txcls.app.shell.limits import limits
from txcls.data.examples import EXAMPLES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.attack,
    pytest.mark.timeout(3600 if FULL_SIZE else 600),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc"),
]
MAX_MB = 900
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
    places = {"TXCLS_CHECKPOINTS": str(folder / "checkpoints"), "TXCLS_JOBS": str(folder / "jobs")}
    with serving(log, environment=HOSTED | places | environment) as app:
        yield app
    assert "Traceback" not in log.read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("start", range(20 if FULL_SIZE else 1))
def test_many_visitors_right_after_a_start_see_every_page(tmp_path: Path, start: int) -> None:
    planned = [(PAGES[n % len(PAGES)], f"visitor {n} on the bank") for n in range(40)]
    random.Random(start).shuffle(planned)
    with tiny_app(tmp_path) as app:
        assert not problems_of(visit_pages_together(app.address, planned, patience=150))


def test_memory_stays_flat_with_new_texts_on_every_page(tmp_path: Path) -> None:
    rounds = 200 if FULL_SIZE else 10
    trail = []
    with tiny_app(tmp_path, TXCLS_CACHE_MB="32") as app, Memory(app.pid) as memory, Visitor(app.address) as visitor:
        for number in range(rounds):
            visits = [visitor.open(page, text=some_text(20, 1000 * number + n)) for n, page in enumerate(PAGES)]
            assert not problems_of(visits)
            trail.append(memory.now())
    assert memory.peak < MAX_MB
    assert trail[-1] - trail[len(trail) // 2] < 20, f"MB after each round: {trail}"


def test_long_texts_stay_within_a_hosts_memory(tmp_path: Path) -> None:
    n_texts = 80 if FULL_SIZE else 10
    jobs = {"TXCLS_JOBS": str(tmp_path / "jobs")}
    with (
        serving(tmp_path / "server.log", environment=HOSTED | jobs) as app,  # with the shipped checkpoints
        Memory(app.pid) as memory,
        Visitor(app.address) as visitor,
    ):
        visits = [visitor.open("attention", checkpoint="imdb", text="a film about the sea")]
        visits += [visitor.type(some_text(900, n)) for n in range(n_texts)]
    assert not problems_of(visits)
    assert memory.peak < MAX_MB


def test_texts_of_megabytes_end_the_connection_of_their_visitor_only(tmp_path: Path) -> None:
    with tiny_app(tmp_path) as app, Memory(app.pid) as memory, Visitor(app.address) as other:
        assert other.open("", text="the bank").finished
        for number in range(40 if FULL_SIZE else 4):
            with Visitor(app.address) as visitor:
                assert visitor.open("", text="the bank").finished
                with pytest.raises((OSError, ConnectionClosed)):
                    visitor.type(f"{number} " + "word " * 2_000_000)
        assert other.type("the bank raised its rates").finished
    assert memory.peak < MAX_MB


def test_unrequested_uploads_are_refused(tmp_path: Path) -> None:
    too_large = 2 * limits().upload_megabytes
    with tiny_app(tmp_path) as app, Visitor(app.address) as visitor, Memory(app.pid) as memory:
        assert visitor.open("", text="the bank").finished and visitor.session
        assert 400 <= put_file(app.address, visitor.session, 1, {}) < 500, "without a token"
        token = token_of(app.address)
        assert 400 <= put_file(app.address, visitor.session, too_large, token) < 500
        before = memory.now()
        for number in range(300 if FULL_SIZE else 100):
            put_file(app.address, visitor.session, 0.9, token, name=f"file{number}")
        assert memory.now() - before < 50


def token_of(address: str) -> dict[str, str]:
    """Headers with the token that the server gives to any client."""
    cookies: list[str] = []
    for path in ("health", "host-config"):
        with urllib.request.urlopen(f"{address}/_stcore/{path}") as answer:
            cookies += answer.headers.get_all("Set-Cookie") or []
    token = next(cookie.partition(";")[0] for cookie in cookies if "xsrf" in cookie.lower())
    return {"Cookie": token, "X-Xsrftoken": token.partition("=")[2].strip('"')}


def put_file(address: str, session: str, megabytes: float, headers: dict[str, str], *, name: str = "file") -> int:
    """Upload a file and return the HTTP status of the response."""
    boundary = "0123456789abcdef"
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="x.csv"\r\n\r\n'
    body = head.encode() + b"x" * int(megabytes * 2**20) + f"\r\n--{boundary}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", **headers}
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        connection.request("PUT", f"/_stcore/upload_file/{session}/{name}", body, headers)
        return connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        return 413  # the server closed the connection in the middle of the upload
    finally:
        connection.close()


ODD_ADDRESSES = (
    {"text": "", "layer": "9" * 5000, "head": "-1", "k": "nan"},
    {"text": "\x00\x1b[31m\u202e" * 50, "checkpoint": "../../etc/passwd"},
    {"text": "a b", "switched": "1.1," * 1000 + "t9999,positions", "heads": "uniform", "off": "mean"},
    {"text": "a b", "part": "continue", "added": ".".join(["1"] * 5000), "temperature": "1e400", "seed": "1e9"},
    {"text": "a b", "part": "masks", "masked": "nothing", "causal": "x" * 300, "blank": "10000", "upto": "9999"},
    {"text": "<script>alert(1)</script>", "step": "<b>", "changed": "=1+1", "versus": "<i>"},
)


def test_odd_addresses_are_answered_on_every_page(tmp_path: Path) -> None:
    with tiny_app(tmp_path) as app, Visitor(app.address, patience=120) as visitor:
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
    with tiny_app(tmp_path) as app, Visitor(app.address, patience=120) as visitor:
        for page in PAGES:
            for name in broken if FULL_SIZE or page == "" else broken[:1]:
                visit = visitor.open(page, text="the bank", checkpoint=name, masked=name, causal=name)
                assert not problems_of([visit]), (page, name)
