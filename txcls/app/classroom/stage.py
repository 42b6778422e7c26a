"""The lecturer's side of a class, in lecture mode: a room for this session, and the question of the slide."""

import html
import re
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urljoin

import numpy as np
import streamlit as st
from starlette.exceptions import HTTPException

from txcls.app.classroom.rooms import PATH, RoomQuestion, classroom_words, end_rooms, find_room, open_room
from txcls.app.components.widgets import register, reported
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, checkpoints, view_state
from txcls.errors import TxclsError
from txcls.inspection.ablation import Means, OutputAblation
from txcls.lessons import SolvedStep
from txcls.lessons.format import Drag, Heads, Number
from txcls.lessons.markup import in_notation, to_html
from txcls.text.formatting import percentage

_KEY, _ROOM, _ASKED = "classroom", "_class_room", "_class_asked"
_component = register("classroom")


def draw(page: str) -> None:
    """Ask the question of this slide, and draw the class above it: the code, the numbers, the bars and the answer."""
    position, room = lesson.now(), find_room(*st.session_state.get(_ROOM, ("", "")))
    language = "en" if position is None else position.language
    step = None if position is None else f"{position.name} {language} {position.index} {position.lesson.version}"
    own, of_step = st.session_state.get(_ASKED, (None, step))
    question: RoomQuestion | None = own if of_step == step else None  # the lecturer's own question lasts for a step
    data: dict[str, Any] = {"language": language, "words": classroom_words(language), "own": question is not None}
    if room is not None and question is None and position is not None and position.step.question is not None:
        data["looks"] = position.step.question.look
        with suppress(TxclsError):  # the slide shows the error
            question = _with_answer(lesson.solved(position), str(step), language)
    if room is not None:
        room.ask(question)
        link = urljoin(st.context.url or "", f"{PATH}{room.name}")
        data["room"] = {"name": room.name, "key": room.key, "link": link, "code": view_state.qr_code(link)}
        data["question"] = question and question.id
    _component(data=data, key=_KEY, on_act_change=partial(_act, page, step, language))


def _act(page: str, step: str | None, language: str) -> None:
    """Do what the lecturer's browser reports: open, resume or end the room, ask a question, or pick a text."""
    room, action = find_room(*st.session_state.get(_ROOM, ("", ""))), reported(_KEY, "act")
    try:
        match action:
            case {"do": "open"} if room is None:
                # A proxy names this process, and sends phones to it by the room's name (deploy/haproxy.cfg).
                process = re.fullmatch(r"[A-Za-z0-9_-]{1,32}", st.context.headers.get("X-Txcls-Process", ""))
                room = open_room(f"{process[0]}." if process else "")
                st.session_state[_ROOM] = (room.name, room.key)
            case {"do": "resume", "name": str(name), "key": str(key)} if room is None:
                st.session_state[_ROOM] = (name, key)
            case {"do": "end"} if room is not None:
                end_rooms(lambda other: other is room)
                st.session_state.pop(_ASKED, None)
            case {"do": "pick", "mark": str(mark)} if room is not None:
                text = room.state_for()["texts"].get(mark, view_state.shown_view().text)
                view_state.put_text(text, f"{view_state.TEXT_BOX}_{page}")
            case {"do": "ask", "kind": "heads", "id": str(name)}:
                st.session_state[_ASKED] = (_heads_question(name[:80], language), step)
            case {"do": "ask", "kind": "text", "id": str(name), "ask": str(ask)}:
                ask = ask[:280] or classroom_words(language)["text_ask"]
                st.session_state[_ASKED] = (RoomQuestion(name[:80], "text", ask, language), step)
            case {"do": "ask"}:
                st.session_state.pop(_ASKED, None)
    except (HTTPException, TxclsError) as error:
        view_state.add_note(getattr(error, "detail", str(error)))


def _heads_question(name: str, language: str) -> RoomQuestion:
    """The question which head lowers the answer's probability most if removed; TxclsError if it cannot be measured."""
    view, ask = view_state.shown_view(), classroom_words(language)["heads_ask"]
    source = checkpoints.source(view.checkpoint)
    how: OutputAblation = "zero" if Means.of(checkpoints.classifier(source)) is None else "mean"
    parts = cached_results.ablate_each(source, view.text, heads=how, feed_forward=how)
    heads = tuple(f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(parts.heads.shape))
    if not heads:
        raise TxclsError("This model has no heads.")
    best, before = int(parts.heads.argmin()), parts.original.max()
    fall = in_notation(f"{percentage(before)} → {percentage(before + parts.heads.min())}", language)
    return RoomQuestion(name, "choice", ask, language, heads, right=((best,),), answer=f"{heads[best]} ({fall})")


def _with_answer(solved: SolvedStep, name: str, language: str) -> RoomQuestion:
    """A step's question for phones, with the computed answer."""
    question, offered = solved.step.question, solved.offered
    assert question is not None
    asked = RoomQuestion(name, "choice", question.ask, language, offered, right=((solved.right,),))
    if isinstance(question, Number):
        asked = replace(asked, kind="number", options=(question.unit,), right=solved.right)
    elif isinstance(question, Heads):
        asked = replace(asked, right=(tuple(map(offered.index, solved.right)),))
    elif isinstance(question, Drag):
        right = tuple(tuple(n for n, group in enumerate(solved.right) if word in group) for word in offered)
        asked = replace(asked, rows=offered, options=tuple(question.groups), right=right)
    options = tuple(map(_plain, asked.options))
    return replace(asked, ask=_plain(asked.ask), options=options, answer=_plain(solved.answer))


def _plain(markdown: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", to_html(markdown)))
