"""Simulated visitors that speak Streamlit's protocol without a browser, which lets many run on one machine."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from txcls.app import menu
from txcls.app.menu import CLASSIFY

PAGES = tuple("" if page is CLASSIFY else page.name for page in (*menu.PAGES, menu.LESSONS))
"""The path of every page in the address, "" for the first."""


@dataclass(frozen=True)
class Visit:
    """The server's response to one request.

    Attributes:
        sent: all messages, concatenated.
        finished: whether the page was drawn completely.
        seconds: seconds from the request to the end.
        answered: seconds from the request to the first chart; None if there was none.
        exceptions: the texts in the exception boxes on the page.
    """

    sent: bytes
    finished: bool
    seconds: float
    answered: float | None = None
    exceptions: tuple[str, ...] = ()


@dataclass
class _Received:
    messages: list[bytes] = field(default_factory=list)
    answered: float | None = None
    exceptions: list[str] = field(default_factory=list)


class Visitor:
    """One session: a connection that requests pages and types texts, as a browser would.

    Args:
        address: the app's address, http://….
        headers: additional headers for opening the connection, such as cookies.
        session: the id of an earlier session to continue.
        patience: seconds to wait for each message.
    """

    def __init__(
        self,
        address: str,
        *,
        headers: dict[str, str] | None = None,
        session: str | None = None,
        patience: float = 300,
    ) -> None:
        self.session = session
        self._patience = patience
        self._page = ""
        self._params: dict[str, str] = {}
        self._text_area: str | None = None
        self._text: str | None = None
        self._components: dict[str, Any] = {}
        socket = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
        protocols = ["streamlit"] if session is None else ["streamlit", "none", session]
        self.connection: ClientConnection = connect(
            socket,
            subprotocols=protocols,  # type: ignore[arg-type]
            additional_headers=headers,
            max_size=None,
            max_queue=None,  # else closing with unread messages can wait forever
            open_timeout=patience,
            ping_interval=None,  # a busy server responds late
            legacy=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def open(self, page: str = "", **params: str) -> Visit:
        """Request a page with these address parameters, and wait until it is complete."""
        self.ask(page, **params)
        return self.wait()

    def ask(self, page: str = "", **params: str) -> None:
        """Request a page without waiting for it."""
        self._page, self._params, self._text, self._text_area = page, params, None, None
        self._send()

    def type(self, text: str) -> Visit:
        """Submit another text, as the text box does after a pause in typing, and wait until the page is complete."""
        assert self.has_text_box, "the page has no text box"
        self._text = text
        self._send()
        return self.wait()

    def trigger(self, component: str, event: str, value: object) -> Visit:
        """Report an event of one of the app's components, and wait until the page is complete."""
        self._send(self._components[component].id, json.dumps([{"event": event, "value": value}]))
        return self.wait()

    def data_of(self, component: str) -> dict[str, Any]:
        """The data that a component of the page has received last."""
        data: dict[str, Any] = json.loads(self._components[component].json)
        return data

    def wait(self) -> Visit:
        """Receive everything up to the end of the page."""
        received = _Received()
        while True:
            raw = self.connection.recv(timeout=self._patience)
            assert isinstance(raw, bytes)
            received.messages.append(raw)
            message = ForwardMsg()
            message.ParseFromString(raw)
            kind = message.WhichOneof("type")
            if kind == "script_finished":
                status = message.script_finished
                if status == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    continue
                finished = status in (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
                seconds = time.perf_counter() - self._started
                return Visit(
                    b"".join(received.messages), finished, seconds, received.answered, tuple(received.exceptions)
                )
            self._note(kind, message, received)

    def _note(self, kind: str | None, message: ForwardMsg, received: _Received) -> None:
        if kind == "new_session":
            self.session = message.new_session.initialize.session_id or self.session
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            element = message.delta.new_element
            element_type = element.WhichOneof("type")
            if element_type == "exception":
                received.exceptions.append(f"{element.exception.type}: {element.exception.message}")
            elif element_type == "plotly_chart" and received.answered is None:
                received.answered = time.perf_counter() - self._started
            elif element_type == "text_area" and self._text_area is None:
                self._text_area = element.text_area.id
            elif element_type == "bidi_component":
                self._components[element.bidi_component.component_name.split(".")[-1]] = element.bidi_component

    @property
    def has_text_box(self) -> bool:
        """Whether the open page has a text box."""
        return self._text_area is not None

    def leave(self) -> None:
        """Close the connection, even if the page is still being drawn."""
        self.connection.close()

    def _send(self, component: str = "", events: str = "") -> None:
        message = BackMsg()
        message.rerun_script.query_string = urlencode(self._params)
        message.rerun_script.page_name = self._page
        if self._text_area is not None and self._text is not None:
            widget = message.rerun_script.widget_states.widgets.add()
            widget.id, widget.string_value = self._text_area, self._text
        if component:
            widget = message.rerun_script.widget_states.widgets.add()
            widget.id, widget.json_value = component, "{}"
            widget = message.rerun_script.widget_states.widgets.add()
            widget.id, widget.json_trigger_value = f"$$STREAMLIT_INTERNAL_KEY_{component}__events", events
        self._started = time.perf_counter()
        self.connection.send(message.SerializeToString())


def visit_together(address: str, page: str, texts: Sequence[str], *, patience: float = 300) -> list[Visit]:
    """Open the page (its path in the address, "" for the first) with each of the texts, all at the same time."""
    return visit_pages_together(address, [(page, text) for text in texts], patience=patience)


def visit_pages_together(
    address: str,
    visits: Sequence[tuple[str, str]],
    *,
    patience: float = 300,
    leave_after: float | None = None,
    **params: str,
) -> list[Visit]:
    """Open each page with its text, all at the same time, each in its own session.

    A visitor who receives nothing for `patience` seconds records an exception. With `leave_after`, all visitors leave
    that many seconds after their request. `params` are added to every address.
    """
    gate = Barrier(len(visits))

    def visit(request: tuple[str, str]) -> Visit:
        page, text = request
        with Visitor(address, patience=patience) as visitor:
            gate.wait()
            started = time.perf_counter()
            if leave_after is None:
                try:
                    return visitor.open(page, text=text, **params)
                except TimeoutError:
                    silent = (f"{page or 'classify'}: nothing for {patience:g} s",)
                    return Visit(b"", False, time.perf_counter() - started, None, silent)
            visitor.ask(page, text=text, **params)
            time.sleep(leave_after)
            return Visit(b"", False, leave_after)

    with ThreadPoolExecutor(len(visits)) as visitors:
        return list(visitors.map(visit, visits))
