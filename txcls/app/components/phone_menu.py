"""The menu on a phone, where it covers the page."""

from txcls.app.components.register import register

_menu = register("phone_menu", js="phone_menu.js")


def close_menu_on_phones(page: str) -> None:
    """Close the menu when this page has been chosen or loaded."""
    _menu(data={"page": page}, key="phone_menu")
