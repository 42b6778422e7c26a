"""The app: `streamlit run streamlit_app.py`."""

# First of all, so that it is whole before a page is drawn: plotly looks for pandas among the loaded modules, and would
# find it half imported while another visitor's run imports it.
import pandas  # noqa: F401
import streamlit as st

from txcls.app import page as shared
from txcls.app.browser import scroll_by_keyboard
from txcls.app.memory import give_back_freed_memory
from txcls.app.turns import BusyError

give_back_freed_memory()
page = st.navigation(
    [
        st.Page("txcls/app/classify.py", title="Classify", url_path="classify", default=True),
        st.Page("txcls/app/tokens_page.py", title="Tokens", url_path="tokens"),
        st.Page("txcls/app/steps.py", title="Step by step", url_path="steps"),
        st.Page("txcls/app/attention.py", title="Attention", url_path="attention"),
        st.Page("txcls/app/switchboard.py", title="Switchboard", url_path="switchboard"),
        st.Page("txcls/app/explanation.py", title="Explanation?", url_path="explanation"),
        st.Page("txcls/app/lens.py", title="Class lens", url_path="lens"),
        st.Page("txcls/app/positions.py", title="Positions", url_path="positions"),
        st.Page("txcls/app/whatif.py", title="What if", url_path="whatif"),
        st.Page("txcls/app/neighbourhood.py", title="Neighbourhood", url_path="neighbourhood"),
        st.Page("txcls/app/language.py", title="Language model", url_path="language"),
    ],
    position="top",
)
st.set_page_config(page_title=f"{page.title} · txcls", page_icon=shared.ICON, layout="wide")
scroll_by_keyboard()
try:
    page.run()
except BusyError as busy:
    shared.say_busy(busy)
