"""Browser code that runs on every page."""

from txcls.app.components.register import register

_early_key, _phone_menu, _scrollers = register("early_key"), register("phone_menu"), register("scrollers")
_lesson_history = register("lesson_history")
_frame_address, _untranslated, _own_cookie = map(register, ("frame_address", "untranslated", "own_cookie"))


def buffer_early_page_key(*, on: bool) -> None:
    """Store a press of PageDown or PageUp until `lecture.js` runs, if `on`; several presses count as one.

    Called before the page is drawn.
    """
    _early_key(data={"on": on}, key="early_key")


def close_menu_on_phones(page: str) -> None:
    """Close the menu, which covers the page on a phone, when a page is chosen or loaded."""
    _phone_menu(data={"page": page}, key="phone_menu")


def scroll_by_keyboard() -> None:
    """Make each scrolling formula, table and list a tab stop with an accessible name."""
    _scrollers(key="scrollers")


def keep_one_entry_per_step() -> None:
    """Make the browser's Back and Forward buttons go from step to step in a lesson."""
    _lesson_history(key="lesson_history")


def send_address_to_spaces() -> None:
    """In a Space of Hugging Face, show the view's query in the address of the page around the frame."""
    _frame_address(key="frame_address")


def refuse_translation() -> None:
    """Keep browsers from translating the page, which breaks it."""
    _untranslated(key="untranslated")


def store_own_token(name: str, token: str, *, seconds: int) -> None:
    """Store the token of the visitor's files in a cookie with this name, for that long."""
    _own_cookie(data={"name": name, "token": token, "seconds": seconds}, key="own_cookie")
