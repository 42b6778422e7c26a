"""What taught it this: placeholder until drawn."""

from typing import TYPE_CHECKING

from txcls.app import layout

if TYPE_CHECKING:
    from txcls.predictor import Predictor


def draw(opened: layout.Page, classifier: "Predictor") -> None:
    """The part of the page about training rows."""
