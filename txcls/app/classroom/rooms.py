"""Rooms in which an audience answers questions on phones: in memory only, with limits, gone an hour after the last tap.

Phones know a room's name; only the lecturer's session and browser know its key. A phone is identified by a random
number that it has chosen for this room. What phones send is plain text. All of it is thread-safe.

Requests: the phones' page at /class/ROOM, and below it what phones and the lecturer see and send. GET waits until there
is something newer than `?seen=VERSION`; POST carries a phone's answer or the lecturer's command. The header X-Class
holds the phone's number or the lecturer's key, which therefore stay out of addresses and logs.
"""

import asyncio
import hmac
import json
import re
import secrets
import time
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from threading import RLock
from time import monotonic as clock
from typing import Any, Literal

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

MAX_ROOMS, MAX_PHONES, MAX_QUESTIONS, MAX_CHARACTERS = 20, 500, 30, 280
"""Limits: rooms per process, phones and questions per room, characters per text."""
LIFETIME, IDLE_SECONDS, PRESENT_SECONDS, TAP_SECONDS = 3600.0, 600.0, 45.0, 0.2
"""In seconds: time without a tap after which a room ends, or after which an empty room may be removed for another; time
for which a phone counts as present after a request; minimum time between two taps of a phone."""
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
PHONE = re.compile(r"[0-9a-f]{32}")
_LOCK = RLock()
_rooms: dict[str, "Room"] = {}


@dataclass(frozen=True, slots=True)
class RoomQuestion:
    """A question for the audience; all its texts are plain."""

    id: str  # the same for the same question whenever it is asked
    kind: Literal["choice", "number", "text"]
    ask: str
    language: str = "en"
    options: tuple[str, ...] = ()  # the options of every row; for a number, its unit
    rows: tuple[str, ...] = ("",)  # words to assign options to; ("",) if there is a single answer
    right: tuple[tuple[int, ...], ...] | float = ()  # the right options of each row, or the right number
    answer: str = ""  # the computed answer, if there is one


@dataclass(slots=True)
class _AskedQuestion:
    """A question, its stage ("open", "closed", "answered"), the answers by phone, and the phones with hidden texts."""

    question: RoomQuestion
    stage: str = "open"
    given: dict[str, Any] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)


class Room:
    """A room: its phones, and the questions asked in it. `versions` count changes for phones and for the lecturer."""

    def __init__(self, name: str) -> None:
        self.name, self.key, self.used = name, secrets.token_urlsafe(32), clock()
        self.versions = {"phone": 1, "lecturer": 1}
        self._seen: dict[str, float] = {}  # the time of each phone's last request
        self._tapped: dict[str, float] = {}
        self._asked: dict[str, _AskedQuestion] = {}  # by the question's id
        self._now: _AskedQuestion | None = None

    def present_phones(self) -> dict[str, float]:
        """The phones that have sent a request recently, with the time of the last one."""
        with _LOCK:
            return {phone: seen for phone, seen in self._seen.items() if clock() - seen < PRESENT_SECONDS}

    def enter(self, phone: str) -> None:
        """Count a phone as present; HTTPException if its number is malformed or the room is full."""
        if not PHONE.fullmatch(phone):
            raise HTTPException(400, "This is not a valid phone ID.")
        with _LOCK:
            seen = self.present_phones()
            if phone not in seen and len(seen) >= MAX_PHONES:
                raise HTTPException(503, "The room is full.")
            self.versions["lecturer"] += phone not in seen
            self._seen = {**seen, phone: clock()}

    def answer(self, phone: str, question: str, answer: Any) -> None:
        """Store a phone's answer (the option of each row or None, a number, or a text), replacing its earlier one.

        HTTPException if it does not fit the question, the question is not open, or answers come too fast.
        """
        with _LOCK:
            self.enter(phone)
            asked, now = self._now, clock()
            if asked is None or asked.question.id != question or asked.stage != "open":
                raise HTTPException(409, "This question is no longer open.")
            if phone in self._tapped and now - self._tapped[phone] < TAP_SECONDS:
                raise HTTPException(429, "Too fast.")
            if phone not in asked.given and len(asked.given) >= MAX_PHONES:
                raise HTTPException(503, "The room is full.")
            asked.given[phone] = _check_answer(asked.question, answer)
            self._tapped[phone] = self.used = now
            self.versions["lecturer"] += 1

    def state_for(self, phone: str = "") -> dict[str, Any]:
        """What a phone is shown: the question, its own answer, and the right one once it is revealed; for the lecturer:
        the number of answers, all answers to a closed question, and texts by the start of each phone's number.
        """
        with _LOCK:
            shown: dict[str, Any] = {"version": self.versions["phone" if phone else "lecturer"], "question": None}
            shown |= {"phones": len(self.present_phones()), "texts": {}}
            if (asked := self._now) is not None:
                shown |= {"question": asdict(asked.question), "stage": asked.stage}
                if phone and asked.stage != "answered":
                    del shown["question"]["right"], shown["question"]["answer"]
                if phone:
                    return {**shown, "mine": asked.given.get(phone)}
                shown["n"] = len(asked.given)
                if asked.question.kind == "text":
                    texts = {number[:12]: text for number, text in asked.given.items()}
                    shown["texts"] = {mark: text for mark, text in texts.items() if mark not in asked.hidden}
                elif asked.stage != "open":
                    shown["answers"] = list(asked.given.values())
            return shown

    def ask(self, question: RoomQuestion | None) -> None:
        """Ask a question, or none; one that was asked before keeps its answers and stays closed."""
        with _LOCK:
            if self._now is not None:
                if question is not None and question.id == self._now.question.id:
                    return
                self.run_command("close")
                if self._now.question.kind == "text":
                    self._now.given.clear()
            if question is not None and question.id not in self._asked and len(self._asked) >= MAX_QUESTIONS:
                del self._asked[next(iter(self._asked))]
            self._now = None if question is None else self._asked.setdefault(question.id, _AskedQuestion(question))
            self.tell_all()

    def run_command(self, name: str, mark: str = "") -> None:
        """Close the question, show its answer, ask it again, or hide a text; HTTPException for anything else."""
        with _LOCK:
            asked = self._now
            if asked is None or name not in ("close", "answer", "again", "hide"):
                raise HTTPException(400, "There is nothing to do.")
            if name == "hide":
                asked.hidden.add(mark[:12])
            elif name == "again":
                self._now = self._asked[asked.question.id] = _AskedQuestion(asked.question)
            elif name == "answer" or asked.stage == "open":
                asked.stage = "answered" if name == "answer" else "closed"
            self.tell_all()

    def tell_all(self) -> None:
        """Tell phones and the lecturer that something has changed."""
        self.used = clock()
        self.versions = {audience: version + 1 for audience, version in self.versions.items()}


def _check_answer(question: RoomQuestion, answer: Any) -> Any:
    """An answer as it is stored; HTTPException if it does not fit the question."""
    if question.kind == "choice" and isinstance(answer, list) and len(answer) == len(question.rows):
        chosen = [n for n in answer if n is not None]
        if chosen and all(type(n) is int and 0 <= n < len(question.options) for n in chosen):
            return answer
    if question.kind == "number" and type(answer) in (int, float) and abs(answer) <= 1e9:
        return float(answer)
    if question.kind == "text" and isinstance(answer, str):
        # Without control characters, which could reverse the text around them, and without lone surrogates.
        kept = (c for c in " ".join(answer.split()) if c in "\u200c\u200d" or unicodedata.category(c)[0] != "C")
        if text := "".join(kept)[:MAX_CHARACTERS].strip():
            return text
    raise HTTPException(400, "This is not an answer to the question.")


def open_room(process: str = "") -> Room:
    """Open a room whose name begins with that of the process; HTTPException if there are too many."""
    with _LOCK:
        if len(_rooms) >= MAX_ROOMS:
            end_rooms(lambda room: clock() - room.used > IDLE_SECONDS and not room.present_phones())
        if len(_rooms) >= MAX_ROOMS:
            raise HTTPException(503, "There are too many classes on this server now. Try again later.")
        name = process + "".join(secrets.choice(LETTERS) for _ in range(8))
        room = _rooms[name] = Room(name)
        return room


def find_room(name: str, key: str | None = None) -> Room | None:
    """The room with this name; None if there is none, or if `key` is given and is not the room's."""
    end_rooms(lambda room: clock() - room.used > LIFETIME)
    room = _rooms.get(name)
    is_led = key is None or (room and hmac.compare_digest(room.key.encode(), key.encode("utf-8", "replace")))
    return room if is_led else None


def end_rooms(is_over: Callable[[Room], bool]) -> None:
    """End the rooms for which `is_over` is true: phones can no longer find them."""
    with _LOCK:
        for room in [room for room in _rooms.values() if is_over(room)]:
            del _rooms[room.name]
            room.tell_all()


PATH = f"/{st.get_option('server.baseUrlPath').strip('/')}/class/".replace("//", "/")
"""The URL path below which the rooms are."""
MAX_BYTES, POLL_SECONDS, BODY_SECONDS = 2048, 10.0, 5.0
"""Maximum size of a message in bytes, seconds that a GET waits, and seconds that a message may take."""
LOOK_SECONDS = {"phone": 0.5, "lecturer": 0.2}  # between two checks for something new


def is_message(scope: Scope) -> bool:
    """Whether a request is a message to a class whose declared size is small enough."""
    size = dict(scope["headers"]).get(b"content-length", b"")
    is_small = size.isdigit() and len(size) < 5 and int(size) <= MAX_BYTES
    return scope["method"] == "POST" and scope["path"].startswith(PATH) and is_small


def classroom_words(language: str) -> dict[str, str]:
    """The texts of a class in a language."""
    # Imported here and below, since it imports torch, before which the server must set how memory is returned.
    from txcls.lessons.markup import words_in

    return {key.removeprefix("class_"): text for key, text in words_in(language).items() if key.startswith("class_")}


@cache
def _page() -> bytes:
    from txcls.lessons.markup import FOLDER
    from txcls.web.assemble import fill_page, page_json, script

    words = page_json({file.stem: classroom_words(file.stem) for file in FOLDER.glob("*.yaml")}).decode("utf-8")
    return fill_page(
        "phone/phone.html", code=script("phone/phone"), sheets=("page/theme", "picture/buttons", "phone/phone"),
        sources={"connect-src": "'self'"}, values={"WORDS": words},
    )  # fmt: skip


async def _send_page(request: Request) -> Response:
    if find_room(request.path_params["room"]) is None:
        return PlainTextResponse("There is no such class, or it has ended.", status_code=404)
    return HTMLResponse(await run_in_threadpool(_page), headers={"X-Content-Type-Options": "nosniff"})


async def _exchange(request: Request) -> Response:
    """Answer a request from a phone, or from the lecturer's browser, whose key is checked first."""
    name, audience, who = request.path_params["room"], request.path_params["who"], request.headers.get("X-Class", "")
    room = find_room(name, who if audience == "lecturer" else None)
    if room is None or audience not in LOOK_SECONDS:
        return PlainTextResponse("There is no such class, or this is not its lecturer.", status_code=404)
    try:
        if request.method == "POST":
            message = json.loads(await asyncio.wait_for(request.body(), BODY_SECONDS))
            if audience == "lecturer":
                room.run_command(str(message["command"]), str(message.get("mark", "")))
            else:
                room.answer(who, message["question"], message["answer"])
            return Response(status_code=204)
        if audience == "phone":
            room.enter(who)
        seen, end = request.query_params.get("seen", ""), time.monotonic() + POLL_SECONDS
        while str(room.versions[audience]) == seen and time.monotonic() < end:
            await asyncio.sleep(LOOK_SECONDS[audience])
        return JSONResponse(room.state_for(who if audience == "phone" else ""), headers={"Cache-Control": "no-store"})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, TimeoutError):
        return PlainTextResponse("This is not a message to a class.", status_code=400)


ROUTES = [Route(f"{PATH}{{room}}", _send_page), Route(f"{PATH}{{room}}/{{who}}", _exchange, methods=["GET", "POST"])]
