"""Helpers for tests of exported pages: enter a text, read the bars."""

from collections.abc import Callable

from playwright.sync_api import Page

from txcls.inference.predictor import Predictor

HOSTILE_NAMES = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "a & b",
    '"quoted" \u202e backwards',
)
"""Names that contain markup."""
Open = Callable[..., Page]


def write(page: Page, text: str) -> None:
    """Enter a text and wait for its prediction."""
    before = page.locator("html").get_attribute("data-answered")
    page.fill("#text", text)
    page.wait_for_function("(before) => document.documentElement.dataset.answered !== before", arg=before)


def bars(page: Page) -> list[tuple[str, str]]:
    names, numbers = (
        page.locator(".machine-bars .name").all_inner_texts(),
        page.locator(".machine-bars .number").all_inner_texts(),
    )
    return list(zip(names, numbers, strict=True))


def expected(classifier: Predictor, text: str) -> list[str]:
    ranked = classifier.predict([text])[0].ranked
    return [f"{score.probability:.1%}".replace("%", "\u00a0%") for score in ranked]
