"""The app: `streamlit run streamlit_app.py`."""

# First of all, so that it is whole before a page is drawn: plotly looks for pandas among the loaded modules, and would
# find it half imported while another visitor's run imports it.
import pandas  # noqa: F401
import streamlit as st

from txcls.app import layout
from txcls.app.components.scrollers import scroll_by_keyboard
from txcls.app.memory import give_back_freed_memory
from txcls.app.pages import PAGES
from txcls.app.turns import BusyError

give_back_freed_memory()
page = st.navigation(
    [st.Page(one.path, title=one.title, url_path=one.name, default=one is PAGES[0]) for one in PAGES],
    position="top",
)
st.set_page_config(page_title=f"{page.title} · txcls", page_icon=layout.ICON, layout="wide")
scroll_by_keyboard()
try:
    page.run()
except BusyError as busy:
    layout.say_busy(busy)
