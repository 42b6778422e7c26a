"""The selected cell of a step. The view stores it by axis, so a token stays selected in other steps."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from txcls.address import CELL, View
from txcls.app.shell import lecture, state
from txcls.figures import visible
from txcls.inspection.walk import Axis

MAX_ROWS = 64
"""Maximum number of rows drawn at once; longer texts are shown in parts."""


def chosen_cell(view: View, cells: np.ndarray, rows: Axis, columns: Axis, focus: int) -> tuple[int, int]:
    """The selected cell; by default, the row of the focus token or best class, and its largest magnitude."""
    chosen = _cells(view)
    magnitude = np.where(np.isfinite(cells), np.abs(cells), -1.0)
    usual = focus if rows.what == "token" else int(cells.argmax()) if rows.what == "class" else 0
    row = min(chosen.get(_row_key(rows), usual), rows.size - 1)
    column = chosen.get(columns.letter, columns.size)
    return row, column if column < columns.size else int(magnitude[row].argmax())


def choose(rows: Axis, columns: Axis, row: int, column: int) -> None:
    """Select a cell; its token stays selected in other steps."""
    _select({_row_key(rows): row, columns.letter: column})


def choose_index(axis: Axis, n: int) -> None:
    """Select an element of a vector."""
    _select({_row_key(axis): n})


def _select(change: dict[str, int]) -> None:
    chosen = {**_cells(state.shown_view()), **change}
    state.change_view(cell=tuple(f"{letter}{n}" for letter, n in chosen.items()))


def _cells(view: View) -> dict[str, int]:
    """The selected index on each axis."""
    parts = (CELL.fullmatch(part) for part in view.cell)
    return {match[1]: int(match[2]) for match in parts if match}


def _row_key(rows: Axis) -> str:
    return "row" if rows.what == "token" else rows.letter


def first_row(rows: Axis, row: int) -> int:
    """Index of the first row to draw; draws a selector for long texts."""
    if rows.size <= MAX_ROWS:
        return 0
    starts = range(0, rows.size, MAX_ROWS)
    part: int = st.segmented_control(
        "Rows",
        starts,
        default=row // MAX_ROWS * MAX_ROWS,
        format_func=lambda start: f"{start + 1}–{min(start + MAX_ROWS, rows.size)}",
        key=f"step_rows_{rows.size}_{row}",
        required=True,
    )
    st.caption(f"{rows.size} rows, shown {MAX_ROWS} at a time.")
    return part


def cell_boxes(rows: Axis, columns: Axis, row: int, column: int) -> None:
    boxes = st.container(horizontal=True, gap="small")
    for place, axis, at in (("Row", rows, row), ("Column", columns, column)):
        if axis.what == "text":
            continue
        key = f"step_box_{place}_{axis.letter}"
        st.session_state[key] = at
        change: dict[str, Any] = {
            "on_change": _box_changed,
            "args": (key, place, rows, columns, row, column),
            "label_visibility": "collapsed" if lecture.is_on() else "visible",
        }
        if axis.names:
            boxes.selectbox(
                f"{place}: {axis.what}",
                range(axis.size),
                key=key,
                format_func=partial(_numbered, axis.names),
                width=240,
                **change,
            )
        else:
            boxes.number_input(f"{place}: {axis.what}", 0, axis.size - 1, key=key, width=180, **change)


def _box_changed(key: str, place: str, rows: Axis, columns: Axis, row: int, column: int) -> None:
    index = int(st.session_state[key])
    choose(rows, columns, *((index, column) if place == "Row" else (row, index)))


def _numbered(names: Sequence[str], n: int) -> str:
    return f"{n + 1} · {visible(names[n][:40])}"
