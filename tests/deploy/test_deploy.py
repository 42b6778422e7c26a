"""The configuration in deploy/ with a real HAProxy: sticky sessions, headers, limits, a process that crashes."""

import http.client
import os
import signal
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from tests.browser.phones import Phone, answer_all
from tests.browser.visitors import Visitor
from tests.deploy.conftest import Deployed, proxy

Answer = tuple[int, dict[str, str], str]


def ask(address: str, path: str = "/", *, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
    """Status, lower-case headers, and the process name in the cookie that keeps a visitor on one process."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        cookies = [cookie for name, cookie in answer.getheaders() if name.lower() == "set-cookie"]
        sticky_cookie = next((cookie for cookie in cookies if cookie.startswith("txcls=")), "")
        lower_headers = {name.lower(): value for name, value in answer.getheaders()}
        lower_headers["set-cookie"] = sticky_cookie
        return answer.status, lower_headers, sticky_cookie.partition("=")[2].partition(";")[0]
    finally:
        connection.close()


def cookie(name: str) -> dict[str, str]:
    return {"Cookie": f"txcls={name}"}


def test_a_visitor_stays_on_one_process_across_reconnects(site: Deployed) -> None:
    for name in site.apps:
        with Visitor(site.address, headers=cookie(name)) as visitor:
            assert visitor.open("", text="the bank raised its rates").finished
            session = visitor.session
        assert session
        # Only the process that knows a session continues it; any other assigns a new id.
        with Visitor(site.address, headers=cookie(name), session=session) as reconnected:
            assert reconnected.open("attention", text="the bank raised its rates").finished
            assert reconnected.session == session
        other = next(app for app in site.apps if app != name)
        with Visitor(site.address, headers=cookie(other), session=session) as elsewhere:
            elsewhere.open("", text="the bank raised its rates")
            assert elsewhere.session != session


def test_new_visitors_are_distributed_over_the_processes_and_get_a_cookie(site: Deployed) -> None:
    visitors = [Visitor(site.address) for _ in range(6)]
    try:
        response = [visitor.connection.response for visitor in visitors]
        names = [answer.headers["Set-Cookie"].split(";")[0] for answer in response if answer is not None]
        assert sorted(names) == ["txcls=app1"] * 3 + ["txcls=app2"] * 3
    finally:
        for visitor in visitors:
            visitor.leave()
    status, headers, name = ask(site.address)
    assert status == 200 and name in site.apps
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=Lax" in headers["set-cookie"]
    status, headers, _ = ask(site.address, **cookie(name))
    assert (status, headers["set-cookie"]) == (200, "")


def test_every_answer_carries_the_security_headers(site: Deployed) -> None:
    for path in ("/", "/_stcore/health", "/no/such/page.js"):
        _, headers, _ = ask(site.address, path)
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["content-security-policy"].startswith("frame-ancestors 'self';")
        assert headers["x-frame-options"] == "SAMEORIGIN"
        assert "camera=()" in headers["permissions-policy"] and "server" not in headers


def test_the_proxy_refuses_requests_that_the_app_does_not_need(site: Deployed) -> None:
    assert ask(site.address, "/_stcore/upload_file/session/file", method="PUT", body=b"x" * 1000)[0] == 405
    # Refused because of its Content-Length; a client that sends the body anyway is disconnected.
    assert ask(site.address, "/_stcore/upload_file/session/file", content_length="23000000")[0] == 413
    assert ask(site.address, "/", method="PUT", body=b"x")[0] == 405
    assert ask(site.address, "/", method="POST", body=b"x")[0] == 405
    assert ask(site.address, "/", body=b"x" * 70_000)[0] == 413
    assert ask(site.address, "/_stcore/metrics")[0] == 403
    assert ask(site.address)[0] == 200


def test_phones_without_a_cookie_reach_the_process_of_their_room(site: Deployed) -> None:
    name = "app2"
    headers = cookie(name) | {"X-Txcls-Process": "app9"}
    with Visitor(site.address, headers=headers) as lecturer:
        lecturer.open("", text="the bank raised its rates", mode="lecture")
        lecturer.trigger("txcls_classroom", "act", {"do": "open"})
        lecturer.trigger("txcls_classroom", "act", {"do": "ask", "kind": "text", "id": "own", "ask": "Write."})
        room = lecturer.data_of("txcls_classroom")["room"]["name"]
        assert room.startswith(f"{name}.")
        phones = [Phone(f"{site.address}/class/{room}") for _ in range(8)]
        answer_all(phones, "Write.", ["the bank"] * 8)
        for cookies in ({}, cookie("app1"), cookie("app2")):
            status, answered, _ = ask(site.address, f"/class/{room}", **cookies)
            assert status == 200 and answered["set-cookie"] == ""
            assert answered["content-security-policy"].startswith("frame-ancestors 'self';")
        assert Phone(f"{site.address}/class/{room}", leads=phones[0].number).request("GET")[0] == 404
        assert phones[0].request("POST", body=b"x" * 2048)[0] == 400
        assert phones[0].request("POST", body=b"x" * 2049)[0] == 413
        assert ask(site.address, f"/class/{room}/phone", method="PUT", body=b"x")[0] == 405
        other = room.replace(name, "app1")
        assert ask(site.address, f"/class/{other}")[0] == 404
        lecturer.trigger("txcls_classroom", "act", {"do": "end"})
        assert phones[0].request("GET")[0] == 404


def test_connections_and_requests_from_one_address_are_limited_and_the_host_can_allow_frames(
    site: Deployed, tmp_path: Path
) -> None:
    apps = list(site.apps.values())
    settings = {"TXCLS_CONNECTIONS_PER_ADDRESS": "5", "TXCLS_FRAME_ANCESTORS": "https://example.org"}
    with proxy(apps, tmp_path / "proxy.log", **settings, TXCLS_COOKIE="secure attr SameSite=None") as address:
        _, headers, _ = ask(address)
        assert headers["content-security-policy"].startswith("frame-ancestors https://example.org;")
        assert "x-frame-options" not in headers
        assert "SameSite=None" in headers["set-cookie"] and "Secure" in headers["set-cookie"]
        visitors: list[Visitor] = []
        try:
            with pytest.raises(InvalidStatus) as refused:
                visitors.extend(Visitor(address) for _ in range(8))
            assert refused.value.response.status_code == 429
        finally:
            for visitor in visitors:
                visitor.leave()
    with proxy(apps, tmp_path / "proxy.log", TXCLS_REQUESTS_PER_ADDRESS="20") as address:
        statuses = [ask(address, "/_stcore/health")[0] for _ in range(40)]
    assert statuses[:20] == [200] * 20
    assert statuses[-1] == 429


def test_when_one_process_dies_the_other_serves_its_visitors(site: Deployed) -> None:
    """The last test in this file: the process stays dead."""
    with Visitor(site.address, headers=cookie("app2")) as stays:
        assert stays.open("", text="the bank raised its rates").finished
        os.kill(site.apps["app1"].pid, signal.SIGKILL)
        assert stays.type("a probe sent pictures of the comet").finished
        end = time.monotonic() + 30
        answered = []
        while time.monotonic() < end and answered[-3:] != [200] * 3:
            status, _, name = ask(site.address, **cookie("app1"))
            answered.append(status)
            time.sleep(0.2)
        assert answered[-3:] == [200] * 3
        assert name == "app2", "the visitor does not notice the new process"
        with Visitor(site.address, headers=cookie("app1"), session="gone") as moved:
            assert moved.open("", text="the bank raised its rates").finished
