"""The app in an https frame of another site, as a Space of Hugging Face shows it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.app.tiny import save_tiny_checkpoints
from tests.browser.conftest import PATIENCE_MS
from tests.browser.secure import make_certificate, over_https
from tests.browser.server import serve, serve_folder

TABLE = "text,kind\n" + "".join(f"please refund bill {n},money\nmy parcel {n} is late,post\n" for n in range(20))
AROUND = """<!doctype html><title>Around</title>
<script>sent = []; addEventListener("message", ({data}) => sent.push(data));</script>
<iframe src="ADDRESS" width="1200" height="900"></iframe>"""
"""A page that shows the app in a frame, and collects what it sends."""

pytestmark = pytest.mark.timeout(400)


@dataclass
class Framed:
    """The app's address, and that of a page on another site that shows the page Train in a frame."""

    app: str
    around: str


@pytest.fixture(scope="module")
def framed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Framed]:
    """Both over https with the settings of a Space; 127.0.0.1 and localhost are different sites."""
    folder = tmp_path_factory.mktemp("framed")
    save_tiny_checkpoints(folder / "checkpoints")
    certificate = make_certificate(folder)
    environment = {
        "TXCLS_CHECKPOINTS": str(folder / "checkpoints"),
        "TXCLS_JOBS": str(folder / "jobs"),
        "STREAMLIT_SERVER_XSRF_COOKIE_SAME_SITE": "none",
    }
    with (
        serve_folder(folder) as folder_port,
        serve(folder / "server.log", environment=environment) as app,
        over_https(app, certificate) as app_port,
        over_https(f"http://127.0.0.1:{folder_port}", certificate) as platform_port,
    ):
        address = f"https://127.0.0.1:{app_port}"
        (folder / "course.html").write_text(AROUND.replace("ADDRESS", f"{address}/train"), "utf-8")
        yield Framed(address, f"https://localhost:{platform_port}/course.html")


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, ignore_https_errors=True)
    context.set_default_timeout(3 * PATIENCE_MS)  # the server's first visitor waits for its imports
    yield context.new_page()
    context.close()


def test_a_file_is_uploaded_though_third_party_cookies_are_blocked(visitor: Page, framed: Framed) -> None:
    visitor.goto(framed.around)
    inside = visitor.frame_locator("iframe")
    file = {"name": "letters.csv", "mimeType": "text/csv", "buffer": TABLE.encode()}
    inside.locator('input[type="file"]').first.set_input_files(file)  # type: ignore[arg-type]
    expect(inside.get_by_text("letters.csv · 40 rows")).to_be_visible()
    cookie = next(cookie for cookie in visitor.context.cookies() if cookie["name"] == "_streamlit_xsrf")
    assert cookie["secure"] and cookie["partitionKey"] == "https://localhost", "this site alone gets the cookie back"
    assert visitor.evaluate("sent.filter(({queryString}) => queryString !== undefined)") == [], "it is no Space"
    visitor.reload()  # the frame's address names no session; a cookie of the app does
    expect(inside.get_by_text("letters.csv · 40 rows")).to_be_visible()
    job = next(cookie for cookie in visitor.context.cookies() if cookie["name"] == "txcls_job")
    assert job["secure"] and job["partitionKey"] == "https://localhost"


def test_the_address_around_a_space_shows_the_view(visitor: Page, framed: Framed) -> None:
    space = "https://huggingface.co/spaces/somebody/txcls"
    page = AROUND.replace("ADDRESS", f"{framed.app}/?text=the+bank")
    visitor.route(f"{space}*", lambda route: route.fulfill(body=page, content_type="text/html"))
    visitor.context.grant_permissions(["local-network-access"], origin="https://huggingface.co")
    visitor.goto(space)
    box = visitor.frame_locator("iframe").locator('[class*="st-key-text_box"] textarea')
    expect(box).to_have_value("the bank")
    box.fill("the bank raised its rates")
    visitor.wait_for_function(
        "sent.some(({queryString}) => new URLSearchParams(queryString).get('text') === 'the bank raised its rates')"
    )
    assert visitor.frames[1].evaluate("document.documentElement.translate") is False
