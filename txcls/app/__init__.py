"""The Streamlit app: one file per page, and shared parts."""
