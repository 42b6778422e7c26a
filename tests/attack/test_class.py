"""A class under floods, guessed rooms, markup, oversized messages, and phones that act as its lecturer."""

import http.client
import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks._measure import Memory
from tests.attack.test_served import MAX_KEPT_MB, problems_of, send, tiny_app
from tests.browser.phones import Phone, answer_all
from tests.browser.server import Served
from tests.browser.visitors import Visitor
from tests.conftest import FULL_SIZE
from txcls.app.classroom.rooms import MAX_PHONES

CLOSE = b'{"command": "close"}'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.attack,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc"),
]
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x00[x](javascript:alert(1)) $\\input{/etc/passwd}$ \ud800"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with tiny_app(tmp_path_factory.mktemp("class")) as served:
        yield served


@contextmanager
def a_class(app: Served) -> Iterator[tuple[Visitor, str, dict[str, str]]]:
    """A lecturer whose class is open and asks for a text; the room's address, and the room's data."""
    with Visitor(app.address) as lecturer:
        lecturer.open("", text="the bank raised its rates", mode="lecture")
        lecturer.trigger("txcls_classroom", "act", {"do": "open"})
        room = lecturer.data_of("txcls_classroom")["room"]
        asked = {"do": "ask", "kind": "text", "id": "own 1", "ask": "Write a text."}
        assert not problems_of([lecturer.trigger("txcls_classroom", "act", asked)])
        yield lecturer, f"{app.address}/class/{room['name']}", room
        lecturer.trigger("txcls_classroom", "act", {"do": "end"})


def test_hostile_texts_are_shown_to_nobody_but_the_lecturer_and_classified_as_text(app: Served) -> None:
    with a_class(app) as (lecturer, address, _):
        phones = [Phone(address) for _ in range(5)]
        answer_all(phones, "Write", [f"{HOSTILE} {n}" for n in range(5)])
        assert all("onerror" not in str(phone.look()["question"]) for phone in phones)
        picked = lecturer.trigger("txcls_classroom", "act", {"do": "pick", "mark": phones[3].number[:12]})
        assert not problems_of([picked])
        assert b"onerror=alert(1)>[x](javascript:alert(1))" in picked.sent
        odd_actions: list[Any] = [
            {"do": "pick", "mark": "x"},
            {"do": "pick", "mark": None},
            {"do": "open"},
            {},
            [],
            None,
        ]
        for odd in odd_actions:
            assert not problems_of([lecturer.trigger("txcls_classroom", "act", odd)])


def test_nobody_leads_a_room_without_its_key(app: Served) -> None:
    with a_class(app) as (_, address, room), Visitor(app.address) as thief:
        phone = Phone(address)
        stage = phone.look()["stage"]
        thief.open("", text="the bank", mode="lecture")
        for key in ("", "x", secrets.token_urlsafe(32), phone.number, room["name"]):
            resume = {"do": "resume", "name": room["name"], "key": key}
            assert not problems_of([thief.trigger("txcls_classroom", "act", resume)])
            assert thief.data_of("txcls_classroom").get("room") is None
            thieves = Phone(address, leads=key)
            assert thieves.request("GET")[0] == thieves.request("POST", body=CLOSE)[0] == 404
        for message in ({"command": "close"}, {"command": "answer", "question": "own 1", "answer": 1}):
            assert phone.request("POST", body=json.dumps(message).encode())[0] == 400
        assert phone.look()["stage"] == stage == "open"
        assert Phone(address, leads=room["key"]).request("POST", body=CLOSE)[0] == 204
        assert phone.look()["stage"] == "closed"


def test_a_flood_of_phones_and_taps_is_bounded_and_the_class_goes_on(app: Served) -> None:
    with a_class(app) as (lecturer, address, room), Memory(app.pid) as memory:
        before, end = memory.now(), time.monotonic() + (30 if FULL_SIZE else 8)
        honest = Phone(address)
        honest.look()

        def flood(seed: int) -> list[int]:
            statuses = []
            while time.monotonic() < end:
                phone = Phone(address)
                with suppress(OSError, http.client.HTTPException):
                    statuses += [phone.answer("own 1", f"{seed} " + "x" * 1800) for _ in range(3)]
            return statuses

        with ThreadPoolExecutor(12) as crowd:
            floods = [crowd.submit(flood, seed) for seed in range(12)]
            while time.monotonic() < end - 1:
                assert honest.answer("own 1", "an honest text") in (204, 429)
                time.sleep(0.5)
            statuses = {status for one in floods for status in one.result()}
        assert statuses <= {204, 429, 503} and 429 in statuses
        shown = Phone(address, leads=room["key"]).look()
        assert shown["n"] <= MAX_PHONES and "an honest text" in shown["texts"].values()
        assert memory.peak - before < MAX_KEPT_MB
        assert not problems_of([lecturer.type("the bank lowered its rates")])


def test_only_small_messages_are_read(app: Served) -> None:
    with a_class(app) as (_, address, _):
        path = urlsplit(address).path
        phone = Phone(address)
        assert phone.request("POST", body=b"x" * 2049)[0] == 405
        for method, other in (("POST", f"{path}/phone"), ("PUT", f"{path}/phone"), ("POST", f"{path}/lecturer")):
            status, n_sent = send(app.address, method, other, 50)
            assert status == 405 and n_sent < 10, f"{n_sent} of 50 MB were received"
        for body in (b"[" * 2048, b"{" * 2048, b"\xff" * 2048, b'{"question":"own 1","answer":' + b"9" * 1900 + b"}"):
            assert phone.request("POST", body=body)[0] == 400
