"""Text boxes that submit their text while the visitor types."""

from txcls.app.components.register import register
from txcls.app.shell.limits import limits

_live = register("live_text")
PAUSE_MS = 250
"""Milliseconds without a key press after which the text is submitted."""


def submit_while_typing(key_start: str, *, text: str, follows: bool = False) -> None:
    """Submit the text areas with keys that start with `key_start` after each pause in typing, as Ctrl+Enter would.

    Args:
        key_start: the start of their keys.
        text: the last text that the server received; text typed while disconnected is submitted after reconnecting.
        follows: whether the texts follow what is typed in the browser's other windows for which this is set.

    A longer text than `limits().characters` is truncated to one character more, so that the server notices its length.
    """
    data = {"key": key_start, "text": text, "pause": PAUSE_MS, "max": limits().characters, "follows": follows}
    _live(data=data, key=f"live_{key_start}", on_back_change=_redraw)


def _redraw() -> None:
    """Do nothing: after a broken connection, the browser only needs the page to rerun."""
