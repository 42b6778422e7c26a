"""Visitors without a browser: they speak the app's own protocol, so that many fit on one machine."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect


@dataclass(frozen=True)
class Visit:
    """What a visitor was sent, as one string of bytes, whether its page was drawn to the end, and after how long."""

    sent: bytes
    finished: bool
    seconds: float


def visit_together(address: str, page: str, texts: Sequence[str], *, patience: float = 300) -> list[Visit]:
    """Open the page (its path in the address, "" for the first) with each of the texts, all at the same moment."""
    gate = Barrier(len(texts))
    with ThreadPoolExecutor(len(texts)) as visitors:
        return list(visitors.map(lambda text: _visit(address, page, text, gate, patience), texts))


def _visit(address: str, page: str, text: str, gate: Barrier, patience: float) -> Visit:
    ask = BackMsg()
    ask.rerun_script.query_string = urlencode({"text": text})
    ask.rerun_script.page_name = page
    received: list[bytes] = []
    socket = f"{address.replace('http', 'ws', 1)}/_stcore/stream"
    with connect(socket, subprotocols=["streamlit"], max_size=None, open_timeout=patience) as connection:  # type: ignore[list-item]
        gate.wait()
        started = time.perf_counter()
        connection.send(ask.SerializeToString())
        while True:
            message = connection.recv(timeout=patience)
            assert isinstance(message, bytes)
            received.append(message)
            told = ForwardMsg()
            told.ParseFromString(message)
            if told.WhichOneof("type") == "script_finished":
                finished = told.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY
                return Visit(b"".join(received), finished, time.perf_counter() - started)
