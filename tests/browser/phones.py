"""Simulated phones of a class, which speak its protocol without a browser."""

import http.client
import json
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit


class Phone:
    """One phone in the room with this address; with `leads`, a browser that leads it with this key."""

    def __init__(self, room: str, *, leads: str | None = None) -> None:
        parts = urlsplit(room)
        self.number = secrets.token_hex(16) if leads is None else leads
        self._host, self._path = parts.netloc, f"{parts.path}/{'phone' if leads is None else 'lecturer'}"

    def look(self, seen: object = "") -> dict[str, Any]:
        """What the phone is shown, once it is newer than the version seen."""
        status, body = self.request("GET", f"?seen={seen}")
        assert status == 200, (status, body)
        shown: dict[str, Any] = json.loads(body)
        return shown

    def answer(self, question: str, answer: Any) -> int:
        """Answer a question, and return the response's status."""
        return self.request("POST", body=json.dumps({"question": question, "answer": answer}).encode())[0]

    def request(self, method: str, query: str = "", *, body: bytes | None = None) -> tuple[int, bytes]:
        """The status and the body of the response to any request, over a connection of its own."""
        connection = http.client.HTTPConnection(self._host, timeout=60)
        try:
            connection.request(method, self._path + query, body, {"X-Class": self.number})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


def answer_all(phones: Sequence[Phone], question: str, answers: Sequence[Any]) -> None:
    """All phones answer the current question, whose wording must contain `question`."""

    def tap(phone: Phone, answer: Any) -> None:
        shown = phone.look()
        assert question in shown["question"]["ask"], shown
        assert phone.answer(shown["question"]["id"], answer) == 204

    with ThreadPoolExecutor(len(phones)) as crowd:
        for done in [crowd.submit(tap, *pair) for pair in zip(phones, answers, strict=True)]:
            done.result()
