"""The parts of the Report page that list rows: mistakes and the linear baseline."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from txcls.app import pages
from txcls.app.pages.report import compute as compute_report
from txcls.app.shell import layout, lecture, state
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError
from txcls.evaluation.baseline import BaselineAnswers
from txcls.evaluation.label_errors import table_csv
from txcls.evaluation.report import Answers, Report, RowAnswer
from txcls.evaluation.scoring import as_plain_text
from txcls.figures import visible

MAX_SHOWN = 500
"""Most rows of a table on the page; the download has all."""
_OPEN = "_report_open"


def table(
    title: str, head: Sequence[str], lines: Sequence[Sequence[Any]], *, key: str, percent: Sequence[str] = ()
) -> None:
    """A sortable table, and a CSV download with cells that no spreadsheet runs as formulas."""
    if title and not lecture.is_on():
        st.markdown(f"**{title}**")
    shown = [[visible(cell) if isinstance(cell, str) else cell for cell in line] for line in lines[:MAX_SHOWN]]
    frame, columns = in_percent(pd.DataFrame(shown, columns=list(head)), percent)
    st.dataframe(
        frame,
        key=f"report_{key}",
        hide_index=True,
        column_config=columns,
        height=min(42 + 35 * max(len(shown), 1), 320),
    )
    _download(head, lines, key=key)


def in_percent(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table with these columns as percentages, and the settings to format them as on all pages.

    Streamlit's own percent format varies the number of digits: 78.74%, 83.3%, 100%.
    """
    scaled = frame.assign(**{name: 100 * frame[name] for name in names})
    return scaled, {name: st.column_config.NumberColumn(name, format="%.1f %%") for name in names}


def _download(head: Sequence[str], lines: Sequence[Sequence[Any]], *, key: str) -> None:
    if lecture.is_on():
        return
    st.download_button(
        "Download as CSV",
        table_csv(head, lines, plain=as_plain_text).encode("utf-8", "backslashreplace"),
        file_name=f"{key}.csv",
        mime="text/csv",
        key=f"report_{key}_csv",
        type="tertiary",
    )


def heights(texts: Sequence[str], *, most: int) -> tuple[int, int]:
    """Heights of the rows and of their table in pixels.

    Three lines of text fit into a row if some text is long; Streamlit does not break lines in lower rows.
    """
    row = 76 if any(len(text) > 60 for text in texts) else 35
    if lecture.is_on():  # larger type
        row, most = 2 * row, 2 * most
    return row, min(42 + row * max(len(texts), 1), most)


def rows_table(
    rows: Sequence[RowAnswer],
    *,
    key: str,
    more: tuple[str, Sequence[str]] | None = None,
    places: Sequence[int] = (),
) -> None:
    """Rows with labels and probabilities; a click on one opens its text in Classify.

    Args:
        rows: the rows to list.
        key: of the table.
        more: the name of another column, and its values.
        places: for each classified row its number in the visitor's file, if there is one.
    """
    head = ["text", "label", "predicted", "probability", "label's probability"]
    lines = [[row.text, row.label, row.predicted, row.probability, row.label_probability] for row in rows]
    if more is not None:
        head.insert(3, more[0])
        for line, value in zip(lines, more[1], strict=True):
            line.insert(3, value)
    if places:
        head.insert(0, "row")
        for line, row in zip(lines, rows, strict=True):
            line.insert(0, places[row.row])
    shown = [[visible(row)[:400] if isinstance(row, str) else row for row in line] for line in lines[:MAX_SHOWN]]
    frame, shares = in_percent(pd.DataFrame(shown, columns=head), ("probability", "label's probability"))
    row_height, height = heights([row.text for row in rows[:MAX_SHOWN]], most=420)
    st.dataframe(
        frame,
        key=f"report_{key}",
        hide_index=True,
        row_height=row_height,
        height=height,
        on_select=lambda: _choose(f"report_{key}", [row.text for row in rows[:MAX_SHOWN]]),
        selection_mode="single-row",
        column_config={
            "row": st.column_config.NumberColumn(
                "row", width="small", format="localized", help="Its number in your file."
            ),
            "text": st.column_config.TextColumn("text", width="large"),
            **shares,
        },
    )
    _download(head, lines, key=key)


def _choose(key: str, texts: Sequence[str]) -> None:
    chosen = st.session_state[key].selection.rows
    if chosen and chosen[0] < len(texts):
        st.session_state[_OPEN] = texts[chosen[0]]


def open_chosen() -> None:
    """Open Classify with the text of the clicked row, if a row was clicked."""
    text = st.session_state.pop(_OPEN, None)
    if text is not None:
        state.change_view(text=text)
        st.switch_page(pages.CLASSIFY.path, query_params=state.link_params(state.shown_view()))


def draw(opened: layout.Page, report: Report, *, of_table: bool) -> None:
    """Draw both parts; `of_table` means that the rows are of an uploaded table."""
    answers = report.answers
    assert answers is not None
    with lecture.slide(lecture.CLASSES):
        _mistakes(answers, report.rows_are, [] if of_table else compute_report.places(opened.source))
    if not of_table and not lecture.is_on():
        _baseline(opened)


def _mistakes(answers: Answers, rows_are: str, places: Sequence[int]) -> None:
    st.subheader("The most confident mistakes", anchor=False)
    mistakes = answers.mistakes()
    if not mistakes:
        st.markdown(f"All predictions are right ({plain(rows_are)}).")
        return
    shown = f" The first {MAX_SHOWN} are listed." if len(mistakes) > MAX_SHOWN else ""
    st.markdown(
        f"**{len(mistakes):,}** predictions are wrong ({plain(rows_are)}), most confident first. **Click the box at "
        f"the start of a row to open it in Classify.**{shown}"
    )
    rows_table(mistakes, key="mistakes", places=places)


def _baseline(opened: layout.Page) -> None:
    st.subheader("Compared with the linear baseline", anchor=False)
    key = f"report_baseline_{opened.source.name}_{opened.source.state}"
    if not st.session_state.get(key):
        st.markdown(
            "TF-IDF with a tuned linear support vector machine is the standard baseline. It is fitted to the training "
            f"rows (at most {compute_report.MAX_TRAINING_ROWS:,}) and classifies the same rows."
        )
        st.button(
            "Fit the linear baseline", key="report_baseline", on_click=lambda: st.session_state.update({key: True})
        )
        return
    try:
        with st.spinner("fitting the linear baseline …"):
            baseline = compute_report.baseline(opened.source)
    except TxclsError as error:
        st.info(f"This needs the training rows. {plain(str(error))}")
        return
    _baseline_rows(baseline, compute_report.places(opened.source))


def _baseline_rows(baseline: BaselineAnswers, places: Sequence[int]) -> None:
    part = ""
    if baseline.n_training < baseline.n_available:
        part = f" It was fitted to {baseline.n_training:,} of the {baseline.n_available:,} training rows."
    st.markdown(f"{plain(baseline.verdict())}.{part}")
    only_transformer, only_baseline = baseline.only_transformer_right(), baseline.only_baseline_right()
    tabs = st.tabs(
        [
            f"Only the Transformer is right: {len(only_transformer):,}",
            f"Only the linear baseline is right: {len(only_baseline):,}",
        ]
    )
    for tab, rows, key in zip(
        tabs, (only_transformer, only_baseline), ("only_transformer", "only_linear"), strict=True
    ):
        with tab:
            if rows:
                classes = [baseline.baseline_class(row.row) for row in rows]
                rows_table(rows, key=key, more=("linear baseline", classes), places=places)
            else:
                st.markdown("There are none.")
