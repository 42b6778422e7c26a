"""Browser code for features that Streamlit lacks: one Python file per component, next to its js, css and html files."""
