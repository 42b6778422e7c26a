"""The exported page in a real Chromium: it classifies at every keystroke, from disk and without network."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.exported import HOSTILE, Open, bars, expected, write
from tests.browser.visiting import wait_until_steady
from tests.conftest import TEXTS
from txcls.predictor import Predictor
from txcls.web.export import export_page

if TYPE_CHECKING:
    pass


@pytest.fixture(scope="module")
def hosted(classifiers: dict[str, Predictor], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page served as a folder by a static file server."""
    folders = [classifier.checkpoint.path for classifier in classifiers.values() if classifier.checkpoint.path]
    page = export_page(folders, tmp_path_factory.mktemp("hosted") / "page")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(page.parent)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    server.server_close()


@pytest.mark.smoke
def test_it_answers_at_every_key_from_a_disk_without_network(
    single: str, classifiers: dict[str, Predictor], open_page: Open
) -> None:
    page = open_page(single, offline=True)
    page.fill("#text", "")
    for typed in range(1, len(TEXTS[0]) + 1):
        page.locator("#text").press_sequentially(TEXTS[0][typed - 1])
    n = len(classifiers["first"].encoder.encode(TEXTS[0]).tokens)
    page.wait_for_function("(n) => document.querySelectorAll('#tokens span').length === n", arg=n)
    assert [number for _, number in bars(page)] == expected(classifiers["first"], TEXTS[0])


@pytest.mark.smoke
def test_class_names_titles_and_tokens_are_never_markup(single: str, open_page: Open) -> None:
    page = open_page(single)
    write(
        page, "<b onmouseover=alert(3)>bold</b> &lt;img src=x onerror=alert(4)&gt; \u202e\u0000 <svg/onload=alert(5)>"
    )
    page.locator("#card summary").click()
    shown = {name for name, _ in bars(page)}
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2]} <= shown and '"quoted" · backwards' in shown
    assert page.locator("img, main svg :is(image, a), body script:not([type]), #tokens b, .machine-bars b").count() == 0
    assert page.locator("#picture :is(img, script), .machine-word :is(*), .machine-bars .name :is(*)").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE[1]
    for word in page.locator(".machine-word").all():
        word.hover()
        assert page.locator(".machine-bar p :is(img, svg, script)").count() == 0


def test_the_address_carries_text_and_view(hosted: str, classifiers: dict[str, Predictor], open_page: Open) -> None:
    page = open_page(hosted)
    page.locator("#models").select_option("second: a test")
    page.wait_for_function("() => document.querySelectorAll('.head').length === 8")
    write(page, TEXTS[1])
    page.locator(".head button").nth(6).click()
    page.locator(".head input").nth(0).uncheck()
    page.locator("#how").select_option("attend evenly")
    page.locator("#tokens span").nth(2).click()
    page.locator("#theme").click()
    page.wait_for_function("() => location.hash.includes('query') && location.hash.includes('theme')")
    again = open_page(page.url)
    for place in (".machine-bars", "#map-title", "#readout", "#tokens-caption"):
        assert again.locator(place).inner_text() == page.locator(place).inner_text()
    assert again.locator("#text").input_value() == TEXTS[1]
    assert again.locator("#how").input_value() == "uniform"
    assert "head 3 in layer 2" in again.locator("#map-title").inner_text()
    assert again.locator("html").get_attribute("data-theme") == "dark"
    assert "data-theme" in again.content() and again.locator(".head.off").count() == 1


def test_any_text_gets_an_answer_or_a_hint(single: str, open_page: Open) -> None:
    page = open_page(single)
    for text in ("", "   \n ", "\u200b", "the " * 400, "a\u0000b \ud800", "שלום عليكم 日本語", "<cls>"):
        write(page, "the striker")
        before = page.locator("html").get_attribute("data-answered")
        page.evaluate(
            "(text) => { const box = document.getElementById('text'); box.value = text;"
            " box.dispatchEvent(new Event('input')) }",
            text,
        )
        page.wait_for_function("(before) => document.documentElement.dataset.answered !== before", arg=before)
        assert page.locator("#answer").inner_text()
        assert (page.locator(".machine-bars li").count() == 4) == bool(page.locator("#tokens span").count())


def test_nothing_is_wider_than_the_screen(single: str, open_page: Open) -> None:
    page = open_page(single)
    write(page, "x" * 300 + " " + " ".join(TEXTS))
    page.locator("#card summary").click()
    for width in (320, 390, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        wait_until_steady(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
