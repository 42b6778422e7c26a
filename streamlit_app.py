"""The app: `streamlit run streamlit_app.py`."""

import streamlit as st

from txcls.app.loaders import ICON

page = st.navigation(
    [
        st.Page("txcls/app/classify.py", title="Classify", url_path="classify", default=True),
        st.Page("txcls/app/tokens_page.py", title="Tokens", url_path="tokens"),
        st.Page("txcls/app/attention.py", title="Attention", url_path="attention"),
        st.Page("txcls/app/switchboard.py", title="Switchboard", url_path="switchboard"),
        st.Page("txcls/app/explanation.py", title="Explanation?", url_path="explanation"),
        st.Page("txcls/app/lens.py", title="Class lens", url_path="lens"),
        st.Page("txcls/app/positions.py", title="Positions", url_path="positions"),
    ],
    position="top",
)
st.set_page_config(page_title=f"{page.title} · txcls", page_icon=ICON, layout="wide")
page.run()
