"""The script that Streamlit runs at each visit and each click: draws the menu and the selected page."""

# Imported before any page is drawn: plotly looks for pandas in sys.modules, where it might be half imported by another
# session's thread.
import pandas  # noqa: F401
import streamlit as st

from txcls.app.components.every_page import (
    buffer_early_page_key,
    close_menu_on_phones,
    keep_one_entry_per_step,
    refuse_translation,
    scroll_by_keyboard,
    send_address_to_spaces,
    store_own_token,
)
from txcls.app.lessons import lesson
from txcls.app.menu import CLASSIFY, MENU
from txcls.app.shell import layout, own
from txcls.app.shell.limits import BusyError, limits

page = st.navigation(
    {
        section: [st.Page(info.path, title=info.title, url_path=info.name, default=info is CLASSIFY) for info in pages]
        for section, pages in MENU.items()
    },
    position="hidden" if st.context.is_embedded else "top",  # a frame has no room for a menu
)
section = next(n for n, pages in enumerate(MENU.values(), 1) if page.title in {info.title for info in pages})
st.html(
    f"<style>[data-testid=stTopNav] > :nth-child({section}) p {{font-weight: 650; text-decoration: underline}}</style>"
)
st.set_page_config(page_title=f"{page.title} · txcls", page_icon=layout.ICON, layout="wide")
scroll_by_keyboard()
keep_one_entry_per_step()
send_address_to_spaces()
refuse_translation()
if token := own.cookie_token():
    store_own_token(own.COOKIE, token, seconds=limits().keep_seconds)
close_menu_on_phones(page.title)
buffer_early_page_key(on="lesson" in st.query_params or st.query_params.get("mode") == "lecture")
try:
    lesson.arrive(next(info for pages in MENU.values() for info in pages if info.title == page.title))
    page.run()
except BusyError as busy:
    layout.show_busy(busy)
