"""Every page opened by its address."""

import pytest
from playwright.sync_api import Page, expect

from tests.app.film import FILMED
from tests.app.tiny import PAIRS, PLAIN
from tests.browser.conftest import Server
from tests.browser.visiting import CHART, visit
from txcls.app.menu import MENU, PAGES

View = tuple[str, str, dict[str, object]]
WITHOUT_CHART = ("tokens", "steps", "explanation", "film", "language", "playground")
"""Pages without a chart, or with one only if the link has further parameters."""
VIEWS: list[View] = [
    *((page.name, CHART, {}) for page in PAGES if page.name not in WITHOUT_CHART),
    ("heads", CHART, {"checkpoint": "reports"}),
    ("explanation", ".txcls-ways", {}),
    ("film", ".film canvas", {"checkpoint": FILMED, "training_step": 3}),
    ("tokens", ".txcls-merges", {"checkpoint": PLAIN, "section": "merges"}),
    ("steps", "pre", {"step": "softmax"}),
    ("language", CHART, {"part": "fill"}),
    ("playground", "iframe", {}),
]
"""Each page once: its name, the selector to wait for, and the parameters of the link."""
MORE: list[View] = [
    ("tokens", ".txcls-merges", {"checkpoint": PAIRS, "section": "merges"}),
    *(("steps", "pre", {"step": step}) for step in ("tokens", "norm_attn", "calibrated")),
    ("language", CHART, {"part": "continue", "added": "20.21.22", "top_k": 5}),
]
TITLES = {page.name: page.title for section in MENU.values() for page in section}


@pytest.mark.parametrize(
    "views, scheme, width",
    [
        pytest.param(VIEWS, "light", 1280, marks=pytest.mark.smoke, id="light-1280"),
        pytest.param(MORE, "dark", 390, id="dark-390"),
    ],
)
def test_every_page_has_its_heading_and_never_scrolls_sideways(
    page: Page, server: Server, views: list[View], scheme: str, width: int
) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": width, "height": 850})
    for name, wait_for, params in views:
        visit(page, server, "" if name == "classify" else name, wait_for=wait_for, **params)
        expect(page.locator("h1")).to_have_text(TITLES[name])
        needed = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert needed <= width, f"{name} {params} needs {needed} pixels"
