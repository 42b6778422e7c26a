"""The Streamlit app: one file or folder per page, and shared parts."""
