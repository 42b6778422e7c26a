"""Rows of words that can be dragged into an order or into groups."""

from collections.abc import Callable, Mapping, Sequence

from txcls.app.components.register import register, reported

_bins = register("word_bins", modules=("page/bins",), sheets=("page/bins",))


def word_bins(
    rows: Mapping[str, Sequence[str]], *, label: str, key: str, on_move: Callable[[list[list[str]]], None]
) -> None:
    """Draw rows of words below their names, which may be empty.

    `on_move` is called with the words of all rows before the next run; `label` is for screen readers.
    """

    def move() -> None:
        moved_rows = reported(key, "moved") or []
        if sorted(word for row in moved_rows for word in row) == sorted(word for row in rows.values() for word in row):
            on_move(moved_rows)

    data = {"label": label, "rows": [{"name": name, "words": list(words)} for name, words in rows.items()]}
    _bins(data=data, key=key, on_moved_change=move)
