"""Browser code for features that Streamlit lacks; components with data or events also have a Python function."""
