"""The requests of a class: phones' page, long polling, small messages, and the lecturer's key."""

import json
import re
import secrets
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from txcls.app.classroom import routes
from txcls.app.classroom.rooms import Question, Room, end_rooms, open_room
from txcls.app.shell import server
from txcls.lessons.markup import FOLDER

TEAMS = Question("teams", "choice", "Which team won?", options=("Albion", "Rangers"), right=((1,),), answer="Rangers")


@pytest.fixture
def room() -> Iterator[Room]:
    opened = open_room()
    yield opened
    end_rooms(lambda other: other is opened)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(routes, "POLL_SECONDS", 0.5)
    with TestClient(Starlette(routes=server.ROUTES, middleware=server.MIDDLEWARE)) as started:
        yield started


def phone() -> dict[str, str]:
    return {"X-Class": secrets.token_hex(16)}


def test_a_phone_sees_the_question_answers_it_and_is_counted(client: TestClient, room: Room) -> None:
    room.ask(TEAMS)
    headers, address = phone(), f"/class/{room.name}/phone"
    shown = client.get(address, headers=headers)
    assert shown.headers["cache-control"] == "no-store" and not shown.headers.get("set-cookie")
    assert shown.json()["question"]["options"] == ["Albion", "Rangers"]
    assert client.post(address, headers=headers, json={"question": "teams", "answer": [1]}).status_code == 204
    assert client.get(address, headers=headers).json()["mine"] == [1]
    lead = client.get(f"/class/{room.name}/lecturer", headers={"X-Class": room.key}).json()
    assert (lead["phones"], lead["n"], lead["stage"]) == (1, 1, "open")


def test_a_request_waits_until_there_is_something_new(client: TestClient, room: Room) -> None:
    headers, address = phone(), f"/class/{room.name}/phone"
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
        assert client.get(path, headers=phone()).status_code == 404
    assert client.post(f"/class/{name}/phone", headers=phone(), json={}).status_code == 404


def test_a_phone_cannot_lead(client: TestClient, room: Room) -> None:
    room.ask(TEAMS)
    other, address = open_room(), f"/class/{room.name}/lecturer"
    for key in ("", secrets.token_hex(16), other.key, room.name, room.key.swapcase()):
        assert client.get(address, headers={"X-Class": key}).status_code == 404
        for command in ("close", "answer", "again", "hide"):
            refusal = client.post(address, headers={"X-Class": key}, json={"command": command})
            assert refusal.status_code == 404
    end_rooms(lambda opened: opened is other)
    assert room.shown()["stage"] == "open"
    assert client.post(f"/class/{room.name}/phone", headers=phone(), json={"command": "close"}).status_code == 400
    assert client.post(f"/class/{room.name}/phone", headers={"X-Class": room.key}, json={}).status_code == 400
    assert client.post(address, headers={"X-Class": room.key}, json={"command": "close"}).status_code == 204
    assert room.shown()["stage"] == "closed"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}", b"[" * 2000, b"\xff", b'{"question": {}, "answer": 1}']
)
def test_a_damaged_message_is_refused(client: TestClient, room: Room, body: bytes) -> None:
    room.ask(TEAMS)
    assert client.post(f"/class/{room.name}/phone", headers=phone(), content=body).status_code in (400, 409)
    lead = client.post(f"/class/{room.name}/lecturer", headers={"X-Class": room.key}, content=body)
    assert lead.status_code == 400
    assert room.shown()["n"] == 0


def test_only_small_messages_to_a_class_are_read(client: TestClient, room: Room) -> None:
    address = f"/class/{room.name}/phone"
    assert client.post(address, headers=phone(), content=b"x" * 2048).status_code == 400
    assert client.post(address, headers=phone(), content=b"x" * 2049).status_code == 405
    assert client.post(address, headers=phone(), content=iter([b"x"])).status_code == 405, "of unknown length"
    for method in ("PUT", "DELETE", "PATCH"):
        assert client.request(method, address, headers=phone(), content=b"x").status_code == 405
    for path in ("/", "/classify", "/class", f"/x/class/{room.name}/phone", "/_stcore/upload_file/class/x"):
        assert client.post(path, headers=phone(), content=b"x").status_code == 405
    assert client.post(f"/class/{room.name}{server.UPLOAD_PATH}", content=b"x").status_code == 404
    assert client.get(f"/class/{room.name}/other", headers=phone()).status_code == 404
