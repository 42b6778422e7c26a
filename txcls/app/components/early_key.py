"""Presses of PageDown and PageUp before the page is drawn."""

from txcls.app.components.register import register

_keys = register("early_key", js="early_key.js")


def keep_page_keys(*, on: bool) -> None:
    """Store a press of PageDown or PageUp until `lecture.js` runs, if the page has slides or steps to turn.

    Called before the page is drawn; several presses count once.
    """
    _keys(data={"on": on}, key="early_key")
