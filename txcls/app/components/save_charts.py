"""A menu that saves the charts of a page: each as PNG or SVG, and its numbers as CSV."""

from txcls.app.components.register import register

_save = register("save_charts")


def save_menu() -> None:
    """Draw the menu, which finds the page's charts in the browser; it is hidden where there are none."""
    _save(key="save_charts")
