"""The Streamlit app: one file per page, and what the pages share."""
