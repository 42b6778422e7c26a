"""Buttons that save a chart as PNG or SVG, and its numbers as CSV."""

from txcls.app.components.register import register

_save = register("save_chart")


def save_buttons(chart_key: str, *, file_name: str) -> None:
    """Draw buttons that save the Plotly chart with this key as PNG or SVG, and its numbers as CSV."""
    _save(data={"key": chart_key, "file": file_name}, key=f"save_{chart_key}")
