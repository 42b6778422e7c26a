"""Keyboard access to everything that scrolls."""

from txcls.app.components.register import register

_scrollers = register("scrollers", js="scrollers.js")


def scroll_by_keyboard() -> None:
    """Make each scrolling formula, table and list on the page a tab stop with an accessible name."""
    _scrollers(key="scrollers")
