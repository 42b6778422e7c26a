"""The app: `streamlit run streamlit_app.py`. The pages are drawn by txcls/app/shell/main.py."""

import streamlit as st

from txcls.app.shell.server import MIDDLEWARE, ROUTES, check_settings, lifespan

check_settings()
app = st.App("txcls/app/shell/main.py", lifespan=lifespan, middleware=MIDDLEWARE, routes=ROUTES)
