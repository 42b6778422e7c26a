"""The selected cell of a step. The view stores one index per axis, so a token stays selected in other steps."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app.shell import lecture, view_state
from txcls.figures import visible
from txcls.inspection.steps import Axis
from txcls.lessons.page_address import CELL, View

ROWS_PER_PAGE = 64
"""Maximum number of rows drawn at once; longer texts are shown in parts."""


def chosen_cell(view: View, cells: np.ndarray, rows: Axis, columns: Axis, focus: int) -> tuple[int, int]:
    """The selected cell; by default, the row of the focus token or best class, and the largest magnitude in it."""
    selected = _cells(view)
    magnitude = np.where(np.isfinite(cells), np.abs(cells), -1.0)
    default_row = focus if rows.kind == "token" else int(cells.argmax()) if rows.kind == "class" else 0
    row = min(selected.get(_row_key(rows), default_row), rows.size - 1)
    column = selected.get(columns.letter, columns.size)
    return row, column if column < columns.size else int(magnitude[row].argmax())


def informative_row(pattern: NDArray[np.floating], focus: int) -> int:
    """The token to show as an example: the focus token if its attention is divided, or else the most divided one's row.

    Attention is divided if the row's largest weight in `pattern` (T, T) is from 0.2 to 0.8: with a weight near 1, the
    arithmetic shows nothing but 1 / 1.
    """
    largest = pattern.max(axis=1)  # T
    distance = np.abs(largest - 0.5)
    return focus if distance[focus] <= 0.3 else int(distance.argmin())


def select_cell(rows: Axis, columns: Axis, row: int, column: int) -> None:
    """Select a cell; its token stays selected in other steps."""
    _select({_row_key(rows): row, columns.letter: column})


def select_index(axis: Axis, n: int) -> None:
    """Select an element of a vector."""
    _select({_row_key(axis): n})


def _select(change: dict[str, int]) -> None:
    selected = {**_cells(view_state.shown_view()), **change}
    view_state.change_view(cell=tuple(f"{letter}{n}" for letter, n in selected.items()))


def _cells(view: View) -> dict[str, int]:
    """The selected index on each axis."""
    parts = (CELL.fullmatch(part) for part in view.cell)
    return {match[1]: int(match[2]) for match in parts if match}


def _row_key(rows: Axis) -> str:
    return "row" if rows.kind == "token" else rows.letter


def choose_first_row(rows: Axis, row: int) -> int:
    """Draw a selector of rows if there are too many; return the index of the first row to draw."""
    if rows.size <= ROWS_PER_PAGE:
        return 0
    starts = range(0, rows.size, ROWS_PER_PAGE)
    start: int = st.segmented_control(
        "Rows",
        starts,
        default=row // ROWS_PER_PAGE * ROWS_PER_PAGE,
        format_func=lambda first: f"{first + 1}–{min(first + ROWS_PER_PAGE, rows.size)}",
        key=f"step_rows_{rows.size}_{row}",
        required=True,
    )
    st.caption(f"{rows.size} rows, shown {ROWS_PER_PAGE} at a time.")
    return start


def draw_cell_boxes(rows: Axis, columns: Axis, row: int, column: int) -> None:
    """Draw a control for the row and one for the column of the selected cell."""
    boxes = st.container(horizontal=True, gap="small")
    for side, axis, index in (("Row", rows, row), ("Column", columns, column)):
        if axis.kind == "text":
            continue
        key = f"step_box_{side}_{axis.letter}"
        st.session_state[key] = index
        options: dict[str, Any] = {
            "on_change": _select_from_box,
            "args": (key, side, rows, columns, row, column),
            "label_visibility": "collapsed" if lecture.is_on() else "visible",
        }
        if axis.names:
            boxes.selectbox(
                f"{side}: {axis.kind}",
                range(axis.size),
                key=key,
                format_func=partial(_numbered_name, axis.names),
                **options,
            )
        else:
            boxes.number_input(f"{side}: {axis.kind}", 0, axis.size - 1, key=key, **options)


def _select_from_box(key: str, side: str, rows: Axis, columns: Axis, row: int, column: int) -> None:
    index = int(st.session_state[key])
    select_cell(rows, columns, *((index, column) if side == "Row" else (row, index)))


def _numbered_name(names: Sequence[str], n: int) -> str:
    return f"{n + 1} · {visible(names[n][:40])}"
