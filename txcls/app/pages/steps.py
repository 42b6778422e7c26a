"""The forward pass, one step at a time: formula, code, shapes, numbers, and how each number is computed."""

import html
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from txcls.app import menu
from txcls.app.components.widgets import listen_to_cells
from txcls.app.lessons import lesson
from txcls.app.shell import cached_results, heads, layout, lecture, token_html, view_state
from txcls.app.shell.charts import chart, window
from txcls.app.shell.markdown import escape
from txcls.app.shell.prediction import classify_text
from txcls.figures import MAX_BARS, minus, number_bars, number_map, operands_map, percent, visible
from txcls.figures.style import SCALE_BELOW
from txcls.inference.predictor import Predictor
from txcls.inspection.steps import Axis, Walk, WalkStep
from txcls.lessons.page_address import CELL, View
from txcls.text.formatting import bounded_percentage, class_title, head_name
from txcls.text.tokenizer import Tokenizer

CHART = "chart_numbers"
MAX_BARS_PER_SLIDE = 10
"""Maximum number of classes drawn as bars in large type."""
MAX_LENS_CLASSES = 6
"""Maximum number of classes shown by the class lens on the first step."""
LETTERS = {
    "B": "batch size",
    "T": "tokens",
    "D": "d_model: numbers per token",
    "H": "heads",
    "E": "head width",
    "F": "d_ff: feed-forward width",
    "C": "classes",
    "V": "vocabulary size",
    "L": "layers",
    "S": "states of the residual stream",
}
SYMBOLS = {r"\tilde S": "S\u0303 scores after the mask", "_{i,j}": "i query · j key"}
"""Symbols in formulas of attention, and their meanings."""
STYLE = """
<style>
.txcls-shape {font-size: 1.05rem; line-height: 1.7; padding-bottom: 0.4rem;}
.txcls-shape b {font-variant-numeric: tabular-nums;}
.txcls-shape small {opacity: 0.8; font-size: 0.85em;}
.txcls-terms {max-height: 300px; overflow: auto;}
.txcls-terms table {border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.95rem;}
.txcls-terms :is(th, td) {text-align: right; padding: 0.12rem 1.2rem 0.12rem 0; white-space: nowrap;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent);}
.txcls-terms :is(th, td):first-child {text-align: left; max-width: 14rem; overflow: hidden; text-overflow: ellipsis;}
.katex-display {overflow-x: auto; overflow-y: hidden; padding: 2px 0;}
.katex-display > .katex {font-size: 1.08em;}
</style>
"""


def main() -> None:
    """Draw the page."""
    page = layout.open_page(menu.STEPS)
    classified = classify_text(page, "every step of the forward pass appears here with its numbers.")
    position = None
    if classified is not None and classified.has_label:
        walk = cached_results.walk_through(page.source, page.view.text)
        page = heads.open_on_head(page, classified.classifier, attention=walk.traced.attention)
        st.html(STYLE)
        index = _find_step(page.view, walk)
        position = index, len(walk.steps)
        with lecture.slide(lecture.step_part(walk.steps[index].name, walk.steps[index].layer)):
            _draw_navigation(page, walk, index)
            following, n_layers = walk.steps[index + 1 : index + 2], walk.sizes["L"]
            if walk.steps[index].layer == 0 and any(step.layer for step in following) and lesson.now() is None:
                others = "Layer 2 does" if n_layers == 2 else f"Layers 2 to {n_layers} do"
                st.markdown(f"{others} the same with other weights, so Next skips {'it' if n_layers == 2 else 'them'}.")
            with st.container(key="step_body"):
                _draw_step(page, classified.classifier, walk, walk.steps[index])
    layout.close_page(page, step=position)


def _draw_step(page: layout.Page, classifier: Predictor, walk: Walk, step: WalkStep) -> None:
    """Draw a step: its description, numbers, formula and code."""
    if step.name == "text" and lesson.now() is None:
        _draw_overview(page, classifier.tokenizer, walk, step)
        return
    with st.container(key="step_heading", horizontal=True, vertical_alignment="center", gap="small"):
        if not lecture.is_on():
            st.subheader(_name_with_head(page.view, step), anchor=False, width="content")
        st.markdown(escape(step.description), width="content")
    selected = (0, 0)
    if step.values is None:
        _draw_text(step, walk, classifier.tokenizer)
        right = st.container()
    else:
        left, right = st.columns([1, 1] if lecture.is_on() else [3, 2], gap="large")
        with left:
            selected = _draw_numbers(page, step, walk)
            if step.by_head and step.layer is not None and not lecture.is_on():  # the map of a slide needs the height
                heads.draw_head_summary(classifier, step.layer, page.view.head)
    with right:
        if step.formula:
            st.latex(step.formula)
        if step.values is not None:
            _draw_arithmetic(step, *selected, head=page.view.head)
        st.html(f'<div class="txcls-shape">{_describe_shape(step, walk)}</div>')
        if not lecture.is_on():
            _draw_code(step)


def _draw_code(step: WalkStep) -> None:
    """Draw the lines that compute a step, and which steps it reads."""
    for n, code in enumerate(step.code):
        st.markdown(f"{'**In the code**: ' * (not n)}`{code.file}`, line {code.line}")
        st.code(code.code, language="python", wrap_lines=True)
    if step.input_titles:
        st.caption("Input from: " + ", ".join(escape(title) for title in step.input_titles))


def _find_step(view: View, walk: Walk) -> int:
    if not view.step:
        return 0
    try:
        return walk.find(view.step, view.layer)
    except KeyError:
        st.warning(f"There is no step “{escape(view.step)}” in {escape(view.checkpoint)}; showing the first step.")
        return 0


def _draw_navigation(page: layout.Page, walk: Walk, index: int) -> None:
    """Draw buttons for the previous and next step, and selectors for step, layer and head.

    They are beside the prediction or, in lecture mode, beside the heading.
    """
    view, step, n = page.view, walk.steps[index], len(walk.steps)
    # Streamlit stores the callbacks of a session's widgets, so they must not refer to the walk and its arrays.
    titles, addresses = [*map(_name_step, walk.steps)], [(step.name, step.layer) for step in walk.steps]
    place = st if lecture.is_on() else page.facts
    row = place.container(key="step_controls", horizontal=True, vertical_alignment="center", gap="xsmall")
    if lecture.is_on():
        row.subheader(_name_with_head(view, step) if index else menu.STEPS.question, anchor=False, width="content")
    has_keys = lesson.now() is None  # in a lesson, the keys move between the lesson's steps
    row.button(
        "◀ Back",
        key="step_back",
        help="Key: PageUp" if has_keys else None,
        disabled=index == 0,
        on_click=_open_step,
        args=addresses[max(_find_neighbour(walk, index, -1), 0)],
    )
    row.button(
        "Next ▶",
        key="step_next",
        help="Key: PageDown" if has_keys else None,
        disabled=index == n - 1,
        on_click=_open_step,
        args=addresses[min(_find_neighbour(walk, index, 1), n - 1)],
        type="secondary" if index == n - 1 else "primary",
    )
    st.session_state["step_box"] = index
    row.selectbox(
        "Step",
        range(n),
        key="step_box",
        format_func=lambda number: f"{number + 1} of {n} · {titles[number]}",
        on_change=lambda: _open_step(*addresses[st.session_state["step_box"]]),
        label_visibility="collapsed",
        width=260,
    )
    shown = {"layer": step.layer is not None, "head": step.by_head}
    sizes = {"layer": walk.sizes["L"], "head": walk.sizes["H"]}
    heads.choose_head(view, {field: n for field, n in sizes.items() if shown[field] and n > 1}, row=row)


def _name_step(step: WalkStep) -> str:
    return step.title if step.layer is None else f"Layer {step.layer + 1} · {step.title}"


def _name_with_head(view: View, step: WalkStep) -> str:
    return f"{_name_step(step)} · {head_name(step.layer or 0, view.head)}" if step.by_head else _name_step(step)


def _open_step(name: str, layer: int | None) -> None:
    """Show the step with this name; the layer is None for steps outside the layers."""
    layer_change: dict[str, Any] = {} if layer is None else {"layer": layer}
    view_state.change_view(step=name, **layer_change)


def _find_neighbour(walk: Walk, index: int, direction: int) -> int:
    """The index of the next or previous step; layers after the first, which repeat it, are skipped unless in one."""
    steps = walk.steps
    target = index + direction
    if not steps[index].layer:
        while 0 <= target < len(steps) and steps[target].layer:
            target += direction
    return target


def _draw_overview(page: layout.Page, tokenizer: Tokenizer, walk: Walk, text: WalkStep) -> None:
    """Draw the answer, the parts of the model in order, and the class lens."""
    sizes, best = walk.sizes, walk.traced.prediction.ranked[0]
    answer = f"{class_title(best.label)} {bounded_percentage(best.probability)}"
    layout.draw_answer(
        page,
        f"Its **{sizes['T']} tokens** become vectors, **{sizes['L']} layers** change them, and pooled into one vector "
        f"they give **{escape(answer)}**.",
        question="",  # the slide's heading
    )
    _draw_parts(walk, answer)
    lens = walk.steps[walk.find("lens")]
    shown = np.argsort(-lens.cells()[-1], kind="stable")[:MAX_LENS_CLASSES]
    assert lens.rows is not None and lens.columns is not None
    classes = [lens.columns.names[index] for index in shown]
    st.markdown(
        "**Class probabilities read off after each block**: the class head was trained only on the last row.",
        help=escape(lens.description),
    )
    figure = number_map(
        lens.cells()[:, shown],
        rows=lens.rows.names,
        columns=list(map(class_title, classes)),
        row_title="block",
        column_title="class",
        quantity=lens.quantity,
        row_height=28,
    )
    # The cells show their numbers, and the names of rows and columns need no titles.
    figure.data[0].text = [list(map(percent, row)) for row in lens.cells()[:, shown]]
    figure.layout.annotations = ()
    figure.update_layout(coloraxis_showscale=False, height=60 + 26 * lens.rows.size)
    figure.update_xaxes(range=[-0.5, len(shown) - 0.5], tickangle=None)
    after = ", ".join(
        f"{state} {class_title(lens.columns.names[row.argmax()])} {bounded_percentage(row.max())}"
        for state, row in zip(lens.rows.names, lens.cells(), strict=True)
    )
    chart(figure, key="chart_lens", alt=f"Heat map of the class lens; most probable after {after}", grows=True)
    if not lecture.is_on():
        with st.expander("The first step: the text"):
            st.markdown(escape(text.description))
            _draw_text(text, walk, tokenizer)
            _draw_code(text)


def _draw_parts(walk: Walk, answer: str) -> None:
    """Draw the parts of the model in order, each with its result, as buttons that open it.

    On a slide they are only names: the bar below it has the buttons.
    """
    parts: dict[str, tuple[str, int | None]] = {}
    for step in walk.steps:
        part = lecture.step_part(step.name, None) if step.layer is None else f"layer {step.layer + 1}"
        parts.setdefault("pooling" if part == lecture.POOLING else part, (step.name, step.layer))
    sizes = walk.sizes
    results = {
        lecture.WORDS: f"{sizes['T']} tokens",
        lecture.VECTORS: f"{sizes['T']} × {sizes['D']} numbers",
        "pooling": "1 vector",
        lecture.CLASSES: answer,
    }
    of_layer = f"{sizes['H']} heads"
    if lecture.is_on():
        cells = (f"<div><b>{part}</b><br>{html.escape(results.get(part, of_layer))}</div>" for part in parts)
        st.html(f'<div class="txcls-parts">{"".join(cells)}</div>')
        return
    row = st.container(key="step_parts", horizontal=True, gap="small")
    for part, address in parts.items():
        column = row.container(width="stretch", gap=None, horizontal_alignment="center")
        column.button(f"{part} →", key=f"part_{part}", on_click=_open_step, args=address, width="stretch")
        column.markdown(escape(results.get(part, of_layer)))


def _describe_shape(step: WalkStep, walk: Walk) -> str:
    """The step's shape in letters and in numbers, and what the letters mean, as HTML."""
    sizes = walk.sizes
    if step.values is None or step.rows is None or step.columns is None:
        letters = ["B", "T"] if step.name == "ids" else []
    else:
        letters = ["B", *(["H"] if step.by_head else [])]
        letters += [axis.letter for axis in (step.rows, step.columns) if axis.kind != "text"]
    if not letters:
        return f"<b>T = {sizes['T']}</b> tokens" if step.name == "tokens" else ""
    meanings = " · ".join(
        [f"{letter} {LETTERS[letter]}" for letter in dict.fromkeys(letters)]
        + [meaning for symbol, meaning in SYMBOLS.items() if symbol in step.formula]
    )
    return (
        f"Shape <b>{' × '.join(letters)} = {' × '.join(f'{sizes[letter]:,}' for letter in letters)}</b>"
        f"<br><small>{meanings}</small>"
    )


def _draw_text(step: WalkStep, walk: Walk, tokenizer: Tokenizer) -> None:
    """Draw the text, tokens or ids, which are not matrices."""
    prediction, tokens = walk.traced.prediction, walk.traced.tokens
    if step.name == "text":
        st.html(token_html.edits(prediction.text, tokenizer.config.cleaning))
    elif step.name == "tokens":
        truncated_at = prediction.truncated_at
        st.html(token_html.marked_text(prediction.text, tokens, truncated_at=truncated_at, limit=tokenizer.max_length))
    else:
        st.html(token_html.ids([token.label for token in tokens], tokens))


def _draw_numbers(page: layout.Page, step: WalkStep, walk: Walk) -> tuple[int, int]:
    """Draw the heat map, or bars for a vector; return the selected cell."""
    rows, columns = step.rows, step.columns
    assert rows is not None and columns is not None
    head = page.view.head if step.by_head else 0
    cells = step.cells(head)
    focus = _find_informative_row(walk.traced.attention[page.view.layer, page.view.head], walk.focus)
    row, column = _find_cell(page.view, cells, rows, columns, focus)
    shows_operands = lecture.is_on() and step.operands
    has_matrix = any(min(operand.cells().shape) > 1 for operand in step.operands)
    if "text" in (rows.kind, columns.kind) and not (shows_operands and has_matrix and rows.size <= MAX_BARS):
        _draw_bars(step, rows if columns.kind == "text" else columns, cells.ravel(), max(row, column))
        return row, column
    shown = window(rows.size, key="step_rows", holding=row)
    first, last = shown.start, shown.stop
    finite = np.abs(step.values[np.isfinite(step.values)]) if step.values is not None else cells
    settings: dict[str, Any] = {
        "rows": [rows.names[n] if rows.names else str(n) for n in range(first, last)],
        "columns": list(columns.names) if columns.names else None,
        "row_title": "query" if columns.kind == "token" and rows.kind == "token" else rows.kind,
        "column_title": {rows.kind: "key", "text": ""}.get(columns.kind, columns.kind),
        "quantity": step.quantity,
        "bound": float(finite.max(initial=0.0)) or None,
        "chosen": (row - first, column) if first <= row < last else None,
    }
    if shows_operands:
        operands = [(operand.name, operand.cells(head), operand.used) for operand in step.operands]
        figure = operands_map(
            cells[first:last],
            result=step.meaning,
            operands=[
                (name, values if used == "column" else values[first:last], used) for name, values, used in operands
            ],
            **settings,
        )
    else:
        figure = number_map(cells[first:last], row_height=28 if rows.kind == "state" else 15, **settings)
        if not lecture.is_on():
            figure.update_layout(coloraxis_colorbar=SCALE_BELOW)
    chart(
        figure,
        key=CHART,
        alt=f"Heat map of {_name_step(step)}: {rows.size} by {columns.size} numbers from {_find_min(cells):.4f} to "
        f"{float(cells.max()):.4f}; selected: row {row + 1}, column {column + (columns.kind != 'dimension')}, "
        f"{cells[row, column]:.4f}",
        grows=True,
    )
    listen_to_cells(CHART, lambda r, c: _select_cell(rows, columns, first + r, c))
    if np.isneginf(cells).any():
        st.caption("Blank cells are −∞.")
    return row, column


def _draw_bars(step: WalkStep, axis: Axis, values: np.ndarray, selected: int) -> None:
    """Draw a vector as bars, one per class, token or dimension; with many classes, only the largest values."""
    is_ranked = axis.kind == "class"
    n, limit = axis.size, MAX_BARS_PER_SLIDE if lecture.is_on() else MAX_BARS
    chart(
        number_bars(
            values,
            names=axis.names or None,
            axis_title=axis.kind,
            quantity=step.quantity,
            chosen=selected,
            ranked=is_ranked,
            limit=limit,
        ),
        key=CHART,
        alt=f"Bars of {_name_step(step)}: {n} numbers from {_find_min(values):.4f} to {float(values.max()):.4f}; "
        f"selected: {axis.kind} {selected + (axis.kind != 'dimension')}, {values[selected]:.4f}",
    )
    listen_to_cells(CHART, lambda n, _: _select_index(axis, n))
    if is_ranked and n > limit:
        st.caption(f"The {limit} largest of {n}; any other can be selected under “Row”.")
    if np.isneginf(values).any():
        st.caption("Missing bars are −∞.")


def _find_min(cells: np.ndarray) -> float:
    return float(cells[np.isfinite(cells)].min(initial=np.inf))


def _draw_arithmetic(step: WalkStep, row: int, column: int, *, head: int) -> None:
    """Draw the arithmetic of the selected cell, and controls to select another."""
    rows, columns = step.rows, step.columns
    assert rows is not None and columns is not None
    if not lecture.is_on():
        st.markdown("**How one number is computed.** Click a cell, or select it:")
    _draw_cell_boxes(rows, columns, row, column)
    explanation = step.explain(row, column, head=head if step.by_head else 0)
    st.latex(r"\begin{aligned} " + r" \\ ".join(explanation.lines) + r" \end{aligned}")
    if explanation.note:
        st.caption(explanation.note)
    if explanation.terms is None:
        return
    rows_of_table = [
        f"<tr><td>{token_html.escape(name)}</td>"
        + "".join(f"<td>{_format_number(value)}</td>" for value in row)
        + "</tr>"
        for name, row in zip(explanation.labels, explanation.terms, strict=True)
    ]
    headings = "".join(f"<th>{html.escape(name)}</th>" for name in ("", *explanation.headers))
    table = f"<table><thead><tr>{headings}</tr></thead><tbody>{''.join(rows_of_table)}</tbody></table>"
    with st.expander(f"All {len(rows_of_table):,} terms"):
        st.html(f'<div class="txcls-terms">{table}</div>')


def _format_number(value: float) -> str:
    return "−∞" if np.isneginf(value) else minus(f"{value:.4f}")


# The selected cell of a step: the view stores one index per axis, so a token stays selected in other steps.


def _find_cell(view: View, cells: np.ndarray, rows: Axis, columns: Axis, focus: int) -> tuple[int, int]:
    """The selected cell; by default, the largest magnitude in the row of the focus token or of the best class."""
    selected = _read_cells(view)
    magnitude = np.where(np.isfinite(cells), np.abs(cells), -1.0)
    default_row = focus if rows.kind == "token" else int(cells.argmax()) if rows.kind == "class" else 0
    row = min(selected.get(_name_row(rows), default_row), rows.size - 1)
    column = selected.get(columns.letter, columns.size)
    return row, column if column < columns.size else int(magnitude[row].argmax())


def _find_informative_row(pattern: NDArray[np.floating], focus: int) -> int:
    """The row to show as an example: the focus token's if its attention is divided, or else the most divided row.

    Attention is divided if the row's largest weight in `pattern` (T, T) is from 0.2 to 0.8: with a weight near 1, the
    arithmetic shows nothing but 1 / 1.
    """
    largest = pattern.max(axis=1)  # T
    distance = np.abs(largest - 0.5)
    return focus if distance[focus] <= 0.3 else int(distance.argmin())


def _select_cell(rows: Axis, columns: Axis, row: int, column: int) -> None:
    """Select a cell; its token stays selected in other steps."""
    _select({_name_row(rows): row, columns.letter: column})


def _select_index(axis: Axis, n: int) -> None:
    """Select an element of a vector."""
    _select({_name_row(axis): n})


def _select(change: dict[str, int]) -> None:
    selected = {**_read_cells(view_state.shown_view()), **change}
    view_state.change_view(cell=tuple(f"{letter}{n}" for letter, n in selected.items()))


def _read_cells(view: View) -> dict[str, int]:
    """The selected index on each axis, keyed by the axis's letter."""
    parts = (CELL.fullmatch(part) for part in view.cell)
    return {match[1]: int(match[2]) for match in parts if match}


def _name_row(rows: Axis) -> str:
    return "row" if rows.kind == "token" else rows.letter


def _draw_cell_boxes(rows: Axis, columns: Axis, row: int, column: int) -> None:
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
                format_func=partial(_number_name, axis.names),
                **options,
            )
        else:
            boxes.number_input(f"{side}: {axis.kind}", 0, axis.size - 1, key=key, **options)


def _select_from_box(key: str, side: str, rows: Axis, columns: Axis, row: int, column: int) -> None:
    index = int(st.session_state[key])
    _select_cell(rows, columns, *((index, column) if side == "Row" else (row, index)))


def _number_name(names: Sequence[str], n: int) -> str:
    return f"{n + 1} · {visible(names[n][:40])}"


if __name__ == "__main__":
    main()
