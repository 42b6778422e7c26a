"""Every page opened by its address."""

import pytest
from playwright.sync_api import Page, expect

from tests.app.film import FILMED
from tests.app.tiny import PAIRS
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, visit
from txcls.app.menu import MENU, PAGES

WITHOUT_CHART = ("tokens", "steps", "explanation", "film", "language", "playground")
"""Pages without a chart, or with one only if the link has further parameters."""
VIEWS: list[tuple[str, str, dict[str, object]]] = [
    *((page.name, CHART, {}) for page in PAGES if page.name not in WITHOUT_CHART),
    ("heads", CHART, {"checkpoint": "reports"}),
    ("explanation", ".txcls-ways", {}),
    ("film", ".film canvas", {"checkpoint": FILMED, "training_step": 3}),
    ("tokens", ".txcls-merges", {"checkpoint": PAIRS, "section": "merges"}),
    ("steps", "pre", {"step": "softmax"}),
    ("language", CHART, {"part": "fill"}),
    ("playground", "iframe", {}),
]
"""Each page once: its name, the selector to wait for, and the parameters of the link."""
TITLES = {page.name: page.title for section in MENU.values() for page in section}


@pytest.mark.smoke
def test_every_page_has_its_heading_and_does_not_scroll_sideways(page: Page, server: Server) -> None:
    """Phones: test_accessibility.py."""
    for name, wait_for, params in VIEWS:
        visit(page, server, "" if name == "classify" else name, wait_for=wait_for, **params)
        expect(page.locator("h1")).to_have_text(TITLES[name])
        needed = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert needed <= 1280, f"{name} {params} needs {needed} pixels"
