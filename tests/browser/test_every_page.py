"""Every page at its address, wide in light and as on a phone in dark."""

import pytest
from playwright.sync_api import Page, expect

from tests.app.tiny import PAIRS, PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, visit
from txcls.app.pages import PAGES

VIEWS: list[tuple[str, str, dict[str, object]]] = [
    *((page.name, CHART, {}) for page in PAGES if page.name not in ("tokens", "steps", "language")),
    *(("tokens", ".txcls-merges", {"checkpoint": name}) for name in (PLAIN, PAIRS)),
    *(("steps", "pre", {"step": step}) for step in ("tokens", "norm_attn", "softmax", "calibrated")),
    *(("language", CHART, {"part": p, "added": "20.21.22", "top_k": 5}) for p in ("fill", "continue", "masks")),
]
"""Page, what to wait for, and what the link brings."""
QUESTIONS = {page.name: page.question for page in PAGES}


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
def test_every_page_has_its_heading_and_never_scrolls_sideways(
    page: Page, server: Server, scheme: str, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    for name, wait_for, params in VIEWS:
        visit(page, server, "" if name == "classify" else name, wait_for=wait_for, **params)
        expect(page.locator("h1")).to_have_text(QUESTIONS[name])
        needed = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert needed <= width, f"{name} {params} needs {needed} pixels"
