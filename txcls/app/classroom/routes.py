"""The requests of a class: the phones' page at /class/ROOM, and below it what phones and the lecturer see and send.

GET waits until there is something newer than `?seen=VERSION`; POST has a phone's answer or the lecturer's command.
The header X-Class has the phone's number or the lecturer's key, which so stay out of addresses and logs.
"""

import asyncio
import json
import time
from functools import cache

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from txcls.app.classroom.rooms import find_room

PATH = f"/{st.get_option('server.baseUrlPath').strip('/')}/class/".replace("//", "/")
"""Path of all rooms."""
MAX_BYTES, POLL_SECONDS, BODY_SECONDS = 2048, 10.0, 5.0
"""Maximum size of a message, and seconds that a GET waits and that a message may take."""
LOOK_SECONDS = {"phone": 0.5, "lecturer": 0.2}  # between two looks at whether there is something new


def is_message(scope: Scope) -> bool:
    """Whether a request is a message to a class, and says that it is small enough."""
    size = dict(scope["headers"]).get(b"content-length", b"")
    is_small = size.isdigit() and len(size) < 5 and int(size) <= MAX_BYTES
    return scope["method"] == "POST" and scope["path"].startswith(PATH) and is_small


def class_words(language: str) -> dict[str, str]:
    """The texts of a class in a language."""
    from txcls.lessons.markup import (
        words_in,
    )  # here and below: torch, before the server has set how memory is returned

    return {key.removeprefix("class_"): text for key, text in words_in(language).items() if key.startswith("class_")}


@cache
def _page() -> bytes:
    from txcls.lessons.markup import FOLDER
    from txcls.web.assemble import fill_page, page_json, script

    words = page_json({file.stem: class_words(file.stem) for file in FOLDER.glob("*.yaml")}).decode("utf-8")
    return fill_page(
        "phone/phone.html", code=script("phone/phone"), sheets=("page/theme", "picture/buttons", "phone/phone"),
        sources={"connect-src": "'self'"}, values={"WORDS": words},
    )  # fmt: skip


async def _send_page(request: Request) -> Response:
    if find_room(request.path_params["room"]) is None:
        return PlainTextResponse("There is no such class, or it has ended.", status_code=404)
    return HTMLResponse(await run_in_threadpool(_page), headers={"X-Content-Type-Options": "nosniff"})


async def _exchange(request: Request) -> Response:
    """Answer a request of a phone, or of the lecturer's browser, whose key is checked first."""
    name, audience, who = request.path_params["room"], request.path_params["who"], request.headers.get("X-Class", "")
    room = find_room(name, who if audience == "lecturer" else None)
    if room is None or audience not in LOOK_SECONDS:
        return PlainTextResponse("There is no such class, or this is not its lecturer.", status_code=404)
    try:
        if request.method == "POST":
            message = json.loads(await asyncio.wait_for(request.body(), BODY_SECONDS))
            if audience == "lecturer":
                room.command(str(message["command"]), str(message.get("mark", "")))
            else:
                room.answer(who, message["question"], message["answer"])
            return Response(status_code=204)
        if audience == "phone":
            room.enter(who)
        seen, end = request.query_params.get("seen", ""), time.monotonic() + POLL_SECONDS
        while str(room.versions[audience]) == seen and time.monotonic() < end:
            await asyncio.sleep(LOOK_SECONDS[audience])
        return JSONResponse(room.shown(who if audience == "phone" else ""), headers={"Cache-Control": "no-store"})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, TimeoutError):
        return PlainTextResponse("This is not a message to a class.", status_code=400)


ROUTES = [Route(f"{PATH}{{room}}", _send_page), Route(f"{PATH}{{room}}/{{who}}", _exchange, methods=["GET", "POST"])]
