"""Browser code that Streamlit has no command for: one Python file per component, beside its own js, css and html."""
