"""A row of tokens, some of them buttons."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from txcls.app.components.register import register, reported

_strip = register("token_strip")


@dataclass(frozen=True, slots=True)
class StripToken:
    """A token of a strip.

    Attributes:
        text: its label; must be printable (`txcls.figures.visible`).
        number: the value that a click reports; None for a token that cannot be clicked.
        title: its tooltip.
        kind: its style: "", "fixed" (added by the model), "unknown", "added" (to the text), "later" (not read).
        pressed: whether it is selected.
        shade: strength of its colour, 0 to 1.
    """

    text: str
    number: int | None
    title: str = ""
    kind: str = ""
    pressed: bool = False
    shade: float = 0.0


def token_strip(tokens: Sequence[StripToken], *, label: str, key: str, on_choose: Callable[[int], None]) -> None:
    """Draw the tokens; `on_choose` is called with the number of a clicked token before the next run of the page."""

    def chosen() -> None:
        number = reported(key, "chosen")
        if isinstance(number, int):
            on_choose(number)

    _strip(data={"label": label, "tokens": [asdict(token) for token in tokens]}, key=key, on_chosen_change=chosen)
