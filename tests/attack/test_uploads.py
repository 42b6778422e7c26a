"""Hostile files and models uploaded to the served app: its memory, and how long the next visitor waits."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks._measure import HOSTED, Memory, quantile
from tests.app.jobs.conftest import finish, put
from tests.app.tiny import PLAIN, save_tiny_checkpoints
from tests.browser.server import serving
from tests.browser.visitors import PAGES, Visitor
from tests.conftest import FULL_SIZE, make_checkpoint
from tests.data.test_hostile import BOMBS, ONE_PER_READER
from txcls.app.jobs import queue
from txcls.app.jobs.json_lines import write_json
from txcls.app.jobs.open_model import MAX_MEGABYTES, page_bytes
from txcls.app.jobs.queue import Kind
from txcls.app.jobs.sessions import Session
from txcls.app.shell import own_session, server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.attack,
    pytest.mark.timeout(3600 if FULL_SIZE else 900),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc"),
]
MAX_MB = 150
"""Maximum growth of the app's memory under an attack."""
MAX_SECONDS = 2.0
"""Maximum time that another visitor may wait for a page, at the 95th quantile."""


KINDS: tuple[Kind, ...] = ("report", "read", "peek")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for uploads, used by the app and this process; jobs in it are cancelled at the end of the test."""
    folder = tmp_path / "jobs"
    monkeypatch.setenv("TXCLS_JOBS", str(folder))
    yield folder
    for job in folder.glob("sessions/*/jobs/*"):
        (job / "cancel").touch()


@dataclass(frozen=True)
class Attacked:
    """The app, and its memory before the attack."""

    address: str
    memory: Memory
    before: float

    @property
    def growth(self) -> float:
        """Peak growth of the app's memory, in MB."""
        return self.memory.peak - self.before


@contextmanager
def attacked(tmp_path: Path, jobs: Path, **environment: str) -> Iterator[Attacked]:
    """The app with untrained checkpoints, after a visit to every page and while another visitor types."""
    save_tiny_checkpoints(tmp_path / "checkpoints")
    places = {"TXCLS_CHECKPOINTS": str(tmp_path / "checkpoints"), "TXCLS_JOBS": str(jobs), "TXCLS_CACHE_MB": "16"}
    log, over = tmp_path / "server.log", threading.Event()
    seconds: list[float] = []

    def type_on(address: str) -> None:
        with Visitor(address) as other:
            other.open("", text="the bank")
            while not seconds or not over.wait(0.5):
                seconds.append(other.type(f"the bank raised its rates {len(seconds)} times").seconds)

    with serving(log, environment=HOSTED | places | environment) as app, Visitor(app.address) as first:
        for page in PAGES:
            first.open(page, text="the bank")
        other = threading.Thread(target=type_on, args=(app.address,))
        with Memory(app.pid) as memory:
            before = memory.now()
            other.start()
            try:
                yield Attacked(app.address, memory, before)
            finally:
                over.set()
                other.join()
    assert "Traceback" not in log.read_text(encoding="utf-8", errors="replace")
    if FULL_SIZE:  # which runs on an idle machine
        assert quantile(seconds, 0.95) < MAX_SECONDS


@pytest.mark.parametrize("name", ONE_PER_READER if FULL_SIZE else ["texts.parquet"])
def test_a_table_that_unpacks_to_gigabytes_fails_only_its_own_job(tmp_path: Path, jobs: Path, name: str) -> None:
    session = Session.new()
    (tmp_path / "hostile").mkdir()
    BOMBS[name](tmp_path / "hostile" / name)
    with attacked(tmp_path, jobs) as app, Visitor(app.address) as visitor:
        for kind in KINDS:
            spec = put(session, name, (tmp_path / "hostile" / name).read_bytes())
            job = finish(session, kind, {**spec, "state": "", "checkpoint": str(tmp_path / "checkpoints" / PLAIN)})
            assert job.status == "failed" and job.message
            for page in ("report", "train", "batch"):
                assert not visitor.open(page, job=session.token).exceptions
        assert app.growth < MAX_MB


def test_a_large_result_is_handed_out_from_disk(tmp_path: Path, jobs: Path) -> None:
    session = Session.new()
    folder = session.job("batch")
    folder.mkdir(parents=True)
    table = {**put(session, "table.csv", "text\nthe bank\n"), "model": PLAIN, "text_column": "text"}
    write_json(folder / "job.json", {"kind": "batch", "id": "x", "spec": table, "since": time.monotonic()})
    row = {"text": "the bank", "predicted_label": "Business", "probability": 0.9}
    result = {"rows": 1, "done": 1, "labels": {"Business": 1}, "preview": [row], "file": "scored.csv"}
    write_json(folder / "result.json", {**result, "label": "label", "probability": "probability"})
    with (folder / "scored.csv").open("wb") as file:
        file.truncate(800_000_000)
    with attacked(tmp_path, jobs) as app, Visitor(app.address) as visitor:
        for _ in range(3):
            assert not visitor.open("batch", job=session.token).exceptions
        assert app.growth < MAX_MB


def test_the_largest_model_that_is_accepted_keeps_to_its_estimate(tmp_path: Path, jobs: Path) -> None:
    session = Session.new()
    checkpoint = make_checkpoint(session.own / "large", n_layers=1, n_heads=1, max_length=1900, positions="none")
    assert 0.9 * MAX_MEGABYTES < page_bytes(checkpoint.config.model, checkpoint.n_parameters) / 2**20 < MAX_MEGABYTES
    pages = PAGES if FULL_SIZE else ("steps", "attention")
    with attacked(tmp_path, jobs) as app, Visitor(app.address) as visitor:
        for page in pages:
            visit = visitor.open(
                page,
                job=session.token,
                checkpoint=f"{own_session.PREFIX}large",
                text="the bank raised its rates again " * 600,
            )
            assert visit.finished and not visit.exceptions, page
        assert app.growth < MAX_MEGABYTES


def test_one_visitor_who_fills_the_queues_keeps_nobody_waiting(tmp_path: Path, jobs: Path) -> None:
    table = "text,label\n" + "".join(f"the bank {n},{'ab'[n % 2]}\n" for n in range(20_000))
    with attacked(tmp_path, jobs) as app:
        for _ in range(4):
            session = Session.new()
            for kind in ("read", "plan", "train"):
                queue.start(session, kind, {**put(session, "table.csv", table), "minutes": 1, "as": "mine"})
        time.sleep(60 if FULL_SIZE else 5)
        assert app.growth < MAX_MB


@dataclass(frozen=True)
class Left:
    """The app after everybody has left it: its memory, the most that may remain in use, and when that is checked."""

    memory: Memory
    most: float
    deadline: float


@pytest.fixture(scope="module", autouse=True)
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """Visited before the first test of this file, since its memory comes back only after minutes, during the others."""
    folder = tmp_path_factory.mktemp("left")
    names = ("imdb", "ag_news", "huffpost", "clinc150", "who_won", "who_won_learned", "who_won_none")
    hosted = HOSTED | {"TXCLS_JOBS": str(folder / "jobs"), "TXCLS_DATA": ""}  # a host has no data sets
    with serving(folder / "server.log", environment=hosted) as app, Memory(app.pid) as memory:
        with Visitor(app.address) as first:
            for page in PAGES:
                first.open(page, text="a film about the sea", masked="encoder", causal="lm")
        start = memory.now()
        visitors = [Visitor(app.address) for _ in range(10 if FULL_SIZE else 2)]
        for number, visitor in enumerate(visitors):
            for name in names if FULL_SIZE else names[:2]:
                for page in PAGES:
                    visitor.open(page, checkpoint=name, text=f"a film about the sea and the {number}")
        for visitor in visitors:
            visitor.leave()
        yield Left(memory, start + MAX_MB, time.monotonic() + server.IDLE_SECONDS + 80)


def test_memory_comes_back_after_everybody_has_left(left: Left) -> None:
    while left.memory.now() > left.most and time.monotonic() < left.deadline:
        time.sleep(0.5)
    assert left.memory.now() < left.most
