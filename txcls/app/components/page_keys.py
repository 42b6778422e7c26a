"""Page keys that are pressed before the page is drawn."""

from txcls.app.components.register import register

_keys = register("page_keys", js="page_keys.js")


def keep_page_keys(*, on: bool) -> None:
    """Keep a PageDown or PageUp that is pressed before `lecture.js` can take it, if the page has anything to turn.

    Called before the page is drawn; a key that is pressed several times is kept once.
    """
    _keys(data={"on": on}, key="page_keys")
