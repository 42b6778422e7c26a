import json
import re
import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from txcls.app.classroom import rooms
from txcls.app.classroom.rooms import (
    LETTERS,
    MAX_CHARACTERS,
    MAX_PHONES,
    MAX_QUESTIONS,
    MAX_ROOMS,
    Room,
    RoomQuestion,
    end_rooms,
    find_room,
    open_room,
)
from txcls.app.shell import server
from txcls.lessons.markup import FOLDER

TEAMS = RoomQuestion(
    "teams", "choice", "Which team won?", options=("Albion", "Rangers"), right=((1,),), answer="Rangers"
)
WEIGHT = RoomQuestion("weight", "number", "How much?", options=("%",), right=99.4, answer="99.4 %")
TEXT = RoomQuestion("text", "text", "Write a text.")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    moved = Clock()
    monkeypatch.setattr(rooms, "clock", moved)
    yield moved
    end_rooms(lambda room: True)


@pytest.fixture
def room(clock: Clock) -> Room:
    return open_room()


def phones(n: int) -> list[str]:
    return [secrets.token_hex(16) for _ in range(n)]


def refused(status: int, call: Any, *args: Any) -> None:
    with pytest.raises(HTTPException) as error:
        call(*args)
    assert error.value.status_code == status


def test_answers_are_counted_and_shown_to_the_lecturer_only_once_the_question_is_closed(room: Room) -> None:
    room.ask(TEAMS)
    for number, phone in enumerate(phones(5)):
        room.answer(phone, "teams", [number % 2])
    open_ = room.state_for()
    assert (open_["stage"], open_["n"], open_["phones"]) == ("open", 5, 5) and "answers" not in open_
    room.run_command("close")
    assert sorted(room.state_for()["answers"]) == [[0], [0], [0], [1], [1]]


def test_an_answer_can_be_changed_until_the_result_is_shown(room: Room, clock: Clock) -> None:
    (phone,) = phones(1)
    room.ask(TEAMS)
    for option in (0, 1):
        room.answer(phone, "teams", [option])
        clock.now += 1
    assert room.state_for(phone)["mine"] == [1] and room.state_for()["n"] == 1
    room.run_command("close")
    refused(409, room.answer, phone, "teams", [0])
    room.run_command("answer")
    refused(409, room.answer, phone, "teams", [0])
    assert room.state_for()["answers"] == [[1]]


def test_a_phone_learns_the_right_answer_only_when_it_is_shown(room: Room) -> None:
    (phone,) = phones(1)
    room.ask(TEAMS)
    for _ in ("open", "closed"):
        assert not {"right", "answer"} & room.state_for(phone)["question"].keys()
        room.run_command("close")
    room.run_command("answer")
    shown = room.state_for(phone)
    assert shown["stage"] == "answered" and shown["question"]["right"] == ((1,),)
    assert shown["question"]["answer"] == "Rangers"


def test_a_question_asked_again_is_empty_and_an_earlier_one_keeps_its_answers(room: Room, clock: Clock) -> None:
    (phone,) = phones(1)
    room.ask(TEAMS)
    room.answer(phone, "teams", [0])
    room.ask(WEIGHT)
    refused(409, room.answer, phone, "teams", [1])
    room.ask(TEAMS)
    assert (room.state_for()["stage"], room.state_for()["answers"]) == ("closed", [[0]])
    room.run_command("again")
    assert (room.state_for()["stage"], room.state_for()["n"], room.state_for(phone)["mine"]) == ("open", 0, None)
    clock.now += 1
    room.answer(phone, "teams", [1])
    assert room.state_for(phone)["mine"] == [1]


@pytest.mark.parametrize(
    "question, answer",
    [
        *[(TEAMS, answer) for answer in ([2], [-1], [True], ["0"], [0.0], [None], [], [0, 0], 0, "0", {"0": 0}, None)],
        *[(WEIGHT, answer) for answer in (float("nan"), float("inf"), 1e10, True, "5", [5], None)],
        *[(TEXT, answer) for answer in ("", "  \n", "\u202e\u0000", 5, ["a"], None)],
    ],
)
def test_what_is_no_answer_to_the_question_is_refused(room: Room, question: RoomQuestion, answer: Any) -> None:
    (phone,) = phones(1)
    room.ask(question)
    refused(400, room.answer, phone, question.id, answer)
    assert room.state_for()["n"] == 0


def test_a_text_stays_text_without_control_characters_and_is_cut(room: Room) -> None:
    first, second = phones(2)
    room.ask(TEXT)
    room.answer(first, "text", " <img src=x onerror=alert(1)>\u202e\x07 \n [a](javascript:b) \ud800 ")
    room.answer(second, "text", "long " * 1000)
    texts = room.state_for()["texts"]
    assert texts[first[:12]] == "<img src=x onerror=alert(1)> [a](javascript:b)"
    assert len(texts[second[:12]]) == MAX_CHARACTERS - 1  # without the last space
    str(texts).encode("utf-8")


def test_only_the_lecturer_sees_texts_and_a_hidden_phone_stays_hidden(room: Room, clock: Clock) -> None:
    first, second = phones(2)
    room.ask(TEXT)
    for phone in (first, second):
        room.answer(phone, "text", f"text of {phone}")
    assert first not in str(room.state_for(second)) and not room.state_for(second)["texts"]
    room.run_command("hide", first[:12])
    clock.now += 1
    room.answer(first, "text", "once more")
    assert list(room.state_for()["texts"]) == [second[:12]]
    room.ask(None)
    room.ask(TEXT)
    assert room.state_for()["texts"] == {}, "texts are not kept"


def test_a_room_is_gone_an_hour_after_the_last_tap(room: Room, clock: Clock) -> None:
    (phone,) = phones(1)
    room.ask(TEAMS)
    clock.now += rooms.LIFETIME - 1
    room.answer(phone, "teams", [0])
    clock.now += rooms.LIFETIME - 1
    version = room.versions["phone"]
    room.enter(phone)  # a phone that only looks keeps no room
    assert find_room(room.name) is room
    clock.now += 2
    assert find_room(room.name) is None
    assert room.versions["phone"] > version, "waiting requests learn that it has ended"


def test_rooms_are_limited_and_one_that_is_idle_and_empty_makes_room(clock: Clock) -> None:
    opened = [open_room() for _ in range(MAX_ROOMS)]
    refused(503, open_room)
    clock.now += rooms.IDLE_SECONDS + 1
    for room in opened[1:]:
        room.enter(*phones(1))
    new = open_room()
    assert find_room(opened[0].name) is None and find_room(new.name) is new
    refused(503, open_room)


def test_phones_of_a_room_are_limited_and_one_that_has_left_makes_room(room: Room, clock: Clock) -> None:
    room.ask(TEAMS)
    for phone in phones(MAX_PHONES):
        room.answer(phone, "teams", [0])
    (late,) = phones(1)
    refused(503, room.enter, late)
    clock.now += rooms.PRESENT_SECONDS + 1
    room.enter(late)
    assert room.state_for()["phones"] == 1
    refused(503, room.answer, late, "teams", [0])
    assert room.state_for()["n"] == MAX_PHONES, "new numbers do not stuff the ballot beyond the limit"


def test_a_phone_that_taps_too_fast_is_refused(room: Room, clock: Clock) -> None:
    first, second = phones(2)
    room.ask(TEAMS)
    room.answer(first, "teams", [0])
    refused(429, room.answer, first, "teams", [1])
    room.answer(second, "teams", [1])
    clock.now += rooms.TAP_SECONDS + 0.01
    room.answer(first, "teams", [1])


def test_old_questions_are_forgotten(room: Room) -> None:
    (phone,) = phones(1)
    for number in range(2 * MAX_QUESTIONS):
        room.ask(RoomQuestion(str(number), "choice", "?", options=("a", "b")))
    assert len(room._asked) == MAX_QUESTIONS
    room.ask(RoomQuestion("0", "choice", "?", options=("a", "b")))
    room.answer(phone, "0", [1])


@pytest.mark.parametrize("number", ["", "x", "0" * 31, "0" * 33, "G" * 32, "0" * 32 + "\n", "０" * 32])
def test_a_malformed_phone_number_is_refused(room: Room, number: str) -> None:
    refused(400, room.enter, number)
    assert room.state_for()["phones"] == 0


def test_a_room_is_found_with_its_name_and_led_only_with_its_key(room: Room) -> None:
    other = open_room("app1.")
    assert other.name.startswith("app1.") and len(LETTERS) ** 8 > 5e11
    assert find_room(room.name, room.key) is room
    for key in ("", other.key, room.key[:-1], room.key + "x", room.name, "\ud800", "é"):
        assert find_room(room.name, key) is None
    assert find_room("", "") is None
    assert room.key not in str(room.state_for()) and room.key not in str(room.state_for(phones(1)[0]))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(rooms, "POLL_SECONDS", 0.5)
    with TestClient(Starlette(routes=server.ROUTES, middleware=server.MIDDLEWARE)) as started:
        yield started


def header() -> dict[str, str]:
    return {"X-Class": secrets.token_hex(16)}


def test_a_phone_sees_the_question_answers_it_and_is_counted(client: TestClient, room: Room) -> None:
    room.ask(TEAMS)
    headers, address = header(), f"/class/{room.name}/phone"
    shown = client.get(address, headers=headers)
    assert shown.headers["cache-control"] == "no-store" and not shown.headers.get("set-cookie")
    assert shown.json()["question"]["options"] == ["Albion", "Rangers"]
    assert client.post(address, headers=headers, json={"question": "teams", "answer": [1]}).status_code == 204
    assert client.get(address, headers=headers).json()["mine"] == [1]
    lead = client.get(f"/class/{room.name}/lecturer", headers={"X-Class": room.key}).json()
    assert (lead["phones"], lead["n"], lead["stage"]) == (1, 1, "open")


def test_a_request_waits_until_there_is_something_new(client: TestClient, room: Room) -> None:
    headers, address = header(), f"/class/{room.name}/phone"
    version = client.get(address, headers=headers).json()["version"]
    start = time.monotonic()
    assert client.get(f"{address}?seen={version}", headers=headers).json()["version"] == version
    assert time.monotonic() - start >= 0.5
    asked = threading.Timer(0.1, room.ask, [TEAMS])
    asked.start()
    shown = client.get(f"{address}?seen={version}", headers=headers).json()
    asked.join()
    assert shown["version"] > version and shown["question"]["id"] == "teams"


def test_the_page_of_a_phone_has_its_words_and_allows_nothing_from_elsewhere(client: TestClient, room: Room) -> None:
    page = client.get(f"/class/{room.name}")
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    assert len(page.content) < 40_000 and "set-cookie" not in page.headers
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page.text)
    assert policy and "default-src &#x27;none&#x27;" in policy[1] and "connect-src &#x27;self&#x27;" in policy[1]
    words = re.search(r'id="words">(.*?)</script>', page.text)
    assert words and set(json.loads(words[1])) == {file.stem for file in FOLDER.glob("*.yaml")}
    assert room.key not in page.text


@pytest.mark.parametrize("name", ["aaaaaaaa", "..%2f", "app1.aaaaaaaa", "%00", "x" * 500])
def test_a_guessed_room_is_not_found(client: TestClient, room: Room, name: str) -> None:
    for path in (f"/class/{name}", f"/class/{name}/phone", f"/class/{name}/lecturer"):
        assert client.get(path, headers=header()).status_code == 404
    assert client.post(f"/class/{name}/phone", headers=header(), json={}).status_code == 404


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}", b"[" * 2000, b"\xff", b'{"question": {}, "answer": 1}']
)
def test_a_damaged_message_is_refused(client: TestClient, room: Room, body: bytes) -> None:
    room.ask(TEAMS)
    assert client.post(f"/class/{room.name}/phone", headers=header(), content=body).status_code in (400, 409)
    lead = client.post(f"/class/{room.name}/lecturer", headers={"X-Class": room.key}, content=body)
    assert lead.status_code == 400
    assert room.state_for()["n"] == 0
