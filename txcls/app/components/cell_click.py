"""Clicks on the cells of a heat map, or on bars; Streamlit only reports clicks on points."""

from collections.abc import Callable

from txcls.app.components.register import register, reported

_cell = register("cell_click")


def listen_to_cells(chart_key: str, on_click: Callable[[int, int], None]) -> None:
    """Call `on_click` with row and column, from 0, of each clicked cell of the heat map with this key.

    A click on a bar gives the bar's `customdata` (an index) and 0.
    """
    key = f"cells_{chart_key}"

    def report_click() -> None:
        if cell := reported(key, "cell"):
            on_click(int(cell[0]), int(cell[1]))

    _cell(data={"key": chart_key}, key=key, on_cell_change=report_click)
