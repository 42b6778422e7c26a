"""Typed text survives a lost connection, and the text box is not changed otherwise (live_text.js)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import txcls

PAUSE_MS = 20
SOURCE = Path(txcls.__file__).parent / "app" / "components" / "live_text.js"
PAGE = """
<div id="app" data-test-connection-state="CONNECTED" data-test-script-state="notRunning"></div>
<div class="st-key-text_box_classify"><textarea></textarea></div><button>an example</button>
"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A text box like Streamlit's; `start(text)` mimics what happens after a run, and `type(text)` mimics typing."""
    new_page = browser.new_page()
    new_page.clock.install()
    new_page.set_content(PAGE)
    script = SOURCE.read_text(encoding="utf-8").replace("export default function", "const listen = function")
    new_page.add_script_tag(
        type="module",
        content=script
        + f"""
        const box = document.querySelector("textarea");
        globalThis.asked = 0;
        globalThis.start = (text) => {{
          const data = {{key: "text_box", text, pause: {PAUSE_MS}, most: 1000}};
          listen({{data, setTriggerValue: () => {{ asked++; }}}});
        }};
        globalThis.type = (text) => {{
          box.focus();
          box.value = text;
          box.dispatchEvent(new Event("input", {{bubbles: true}}));
        }};
        globalThis.ready = true;
        """,
    )
    new_page.wait_for_function("globalThis.ready")
    yield new_page
    new_page.close()


def put(page: Page, text: str) -> None:
    """Set the text as Streamlit does when the server has sent one."""
    page.evaluate("(text) => { document.querySelector('textarea').value = text; }", text)


def reconnect(page: Page, *, drawn: str) -> None:
    """Lose and restore the connection; then the server draws the page with its own text."""
    page.evaluate("document.getElementById('app').dataset.testConnectionState = 'PINGING_SERVER'")
    page.clock.run_for(PAUSE_MS)
    page.evaluate("document.getElementById('app').dataset.testConnectionState = 'CONNECTED'")
    page.clock.run_for(PAUSE_MS)
    page.evaluate("document.getElementById('app').dataset.testScriptState = 'running'")
    put(page, drawn)
    page.evaluate("(text) => start(text)", drawn)
    page.clock.run_for(3 * PAUSE_MS)
    page.evaluate("document.getElementById('app').dataset.testScriptState = 'notRunning'")
    page.clock.run_for(5 * PAUSE_MS)


def value(page: Page) -> str:
    return page.locator("textarea").input_value()


@pytest.mark.smoke
def test_a_text_that_the_page_draws_late_does_not_count_as_typed(page: Page) -> None:
    page.evaluate("start('the bank')")  # the box is still empty
    page.clock.run_for(3 * PAUSE_MS)
    put(page, "the bank")
    reconnect(page, drawn="the bank")
    assert value(page) == "the bank"
    assert page.evaluate("asked") == 0


@pytest.mark.smoke
def test_typed_text_is_restored_after_the_server_has_drawn_an_older_one(page: Page) -> None:
    put(page, "the bank")
    page.evaluate("start('the bank')")
    page.clock.run_for(3 * PAUSE_MS)
    page.evaluate("type('the bank raised its rates')")
    reconnect(page, drawn="the bank")
    assert value(page) == "the bank raised its rates"
    assert page.evaluate("asked") == 1


@pytest.mark.smoke
def test_an_example_chosen_after_typing_is_not_overwritten(page: Page) -> None:
    put(page, "the bank")
    page.evaluate("start('the bank')")
    page.evaluate("type('the bank raised')")
    page.locator("button").focus()
    put(page, "an example")
    page.evaluate("start('an example')")
    page.clock.run_for(3 * PAUSE_MS)
    reconnect(page, drawn="an example")
    assert value(page) == "an example"


def test_text_typed_before_the_component_loads_is_kept(page: Page) -> None:
    put(page, "typed early")
    page.locator("textarea").focus()
    page.evaluate("start('the bank')")
    reconnect(page, drawn="the bank")
    assert value(page) == "typed early"
