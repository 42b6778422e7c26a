"""Simulated visitors that speak Streamlit's protocol without a browser, which lets many run on one machine."""

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Self
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from txcls.app import menu
from txcls.app.menu import CLASSIFY

PAGES = tuple("" if page is CLASSIFY else page.name for page in (*menu.PAGES, menu.LESSONS))
"""The path of every page in the address, "" for the first."""
PATIENCE_SECONDS = 300.0
"""Timeout of a connection, and of each message."""


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


class Visitor:
    """One session: a connection that requests pages and types texts, as a browser would.

    Args:
        address: the app's address, http://….
        headers: additional headers for opening the connection, such as cookies.
        session: the id of an earlier session to continue.
    """

    def __init__(self, address: str, *, headers: dict[str, str] | None = None, session: str | None = None) -> None:
        self.session = session
        self._page = ""
        self._params: dict[str, str] = {}
        self._text_area: str | None = None
        self._text: str | None = None
        self._components: dict[str, Any] = {}
        protocols = ["streamlit"] if session is None else ["streamlit", "none", session]
        self.connection: ClientConnection = connect(
            f"{address.replace('http', 'ws', 1)}/_stcore/stream",
            subprotocols=protocols,  # type: ignore[arg-type]
            additional_headers=headers,
            max_size=None,
            max_queue=None,  # else closing with unread messages can wait forever
            open_timeout=PATIENCE_SECONDS,
            ping_interval=None,  # a busy server responds late
            legacy=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        messages: list[bytes] = []
        exceptions: list[str] = []
        answered = None
        while True:
            raw = self.connection.recv(timeout=PATIENCE_SECONDS)
            assert isinstance(raw, bytes)
            messages.append(raw)
            message = ForwardMsg()
            message.ParseFromString(raw)
            kind, seconds = message.WhichOneof("type"), time.perf_counter() - self._started
            if kind == "script_finished":
                status = message.script_finished
                if status == ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    continue
                finished = status in (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
                return Visit(b"".join(messages), finished, seconds, answered, tuple(exceptions))
            if kind == "new_session":
                self.session = message.new_session.initialize.session_id or self.session
            elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
                element = message.delta.new_element
                element_type = element.WhichOneof("type")
                if element_type == "exception":
                    exceptions.append(f"{element.exception.type}: {element.exception.message}")
                elif element_type == "plotly_chart" and answered is None:
                    answered = seconds
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


def visit_together(
    address: str, page: str, texts: Sequence[str], *, leave_after: float | None = None, **params: str
) -> list[Visit]:
    """Open the page (its path, "" for the first) with each of the texts, all at the same time, each in its own session.

    With `leave_after`, all visitors leave that many seconds after their request.
    """
    gate = Barrier(len(texts))

    def visit(text: str) -> Visit:
        with Visitor(address) as visitor:
            gate.wait()
            if leave_after is None:
                return visitor.open(page, text=text, **params)
            visitor.ask(page, text=text, **params)
            time.sleep(leave_after)
            return Visit(b"", False, leave_after)

    with ThreadPoolExecutor(len(texts)) as visitors:
        return list(visitors.map(visit, texts))
