import asyncio
import gzip
import hashlib
import re
import subprocess
import sys
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any, cast

import pytest

from tests.browser.server import BASE_PATH, ROOT, serve
from txcls.app.shell import server
from txcls.web.encoder import packed_encoder


@pytest.mark.attack
def test_a_wrong_setting_keeps_the_server_from_starting_and_is_named() -> None:
    command = [sys.executable, "-m", "streamlit", "run", "streamlit_app.py", "--server.headless=true"]
    ran = subprocess.run(
        ["env", "TXCLS_CACHE_MB=lots", *command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1 and "The app does not start. TXCLS_CACHE_MB=" in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "GET"])
def test_a_request_that_could_carry_a_file_is_refused_before_its_body_is_read(method: str) -> None:
    async def never() -> Any:
        raise AssertionError("the body was read")

    answers: list[Any] = []

    async def send(message: Any) -> None:
        answers.append(message)

    path = f"/demo{server.UPLOAD_PATH}/session/file" if method == "GET" else "/anything"
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    asyncio.run(server.AcceptsNoFiles(cast(Any, never))(scope, never, send))
    assert answers[0]["status"] == 405 and answers[1]["body"] == b"This server accepts no files."


def test_no_page_asks_for_a_file() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "txcls" / "app").rglob("*.py"))
    assert not re.search(
        r"file_uploader|camera_input|audio_input|accept_file|open\(.*[\"'][wax]|write_(text|bytes)", source
    )


@pytest.mark.slow
def test_the_encoder_is_a_file_of_the_app_that_browsers_keep(tmp_path: Path) -> None:
    known = server.encoder_address()
    assert known == f"{server.ENCODER}/{hashlib.sha256(packed_encoder()).hexdigest()[:20]}"

    def answer(address: str, method: str = "GET", accept: str = "identity") -> tuple[int, bytes, Message]:
        request = urllib.request.Request(address, method=method, headers={"Accept-Encoding": accept})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, response.read(), response.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers

    with serve(tmp_path / "log", environment={BASE_PATH: "demo"}) as address:
        status, content, headers = answer(f"{address}/{known}")
        assert status == 200 and content == packed_encoder()
        assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert headers["Content-Type"] == "application/octet-stream" and headers["X-Content-Type-Options"] == "nosniff"
        _, compressed, headers = answer(f"{address}/{known}", accept="gzip, br")
        assert headers["Content-Encoding"] == "gzip" and gzip.decompress(compressed) == content
        for other in ("x", "..%2fconfig.json", "encoder"):
            status, text, _ = answer(f"{address}/{server.ENCODER}/{other}")
            assert status in (400, 404) and len(text) < 200, other
        for method in ("POST", "PUT", "DELETE"):
            assert answer(f"{address}/{known}", method)[0] == 405
