"""The app on Streamlit Community Cloud, which installs the requirements.txt beside the file that it runs."""

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from txcls.app.shell.server import MIDDLEWARE, ROUTES, check_settings, lifespan  # noqa: E402

check_settings()
app = st.App(ROOT / "txcls/app/shell/main.py", lifespan=lifespan, middleware=MIDDLEWARE, routes=ROUTES)
