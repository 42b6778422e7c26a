"""The tables of the Report page, and its parts that list rows: mistakes and the linear baseline."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from txcls.app import menu
from txcls.app.pages.report import compute as compute_report
from txcls.app.shell import layout, lecture, state
from txcls.app.shell.markdown import plain
from txcls.errors import TxclsError
from txcls.evaluation.label_errors import table_csv
from txcls.evaluation.predict_file import as_plain_text
from txcls.evaluation.report import Report, RowPrediction
from txcls.figures import visible

MAX_SHOWN = 500
"""Maximum number of rows in a table on the page; the download has all."""
ROW_COLUMN = st.column_config.NumberColumn("row", width="small", format="localized", help="Its number in your file.")
TEXT_COLUMN = st.column_config.TextColumn("text", width="large")
_OPEN = "_report_open"


def table(columns: Mapping[str, Sequence[Any]], *, key: str, percent: Sequence[str], **options: Any) -> None:
    """Draw a sortable table and a CSV download in which spreadsheets read no cell as a formula."""
    lines = list(zip(*columns.values(), strict=True))
    shown = [[visible(cell)[:400] if isinstance(cell, str) else cell for cell in line] for line in lines[:MAX_SHOWN]]
    frame, shares = in_percent(pd.DataFrame(shown, columns=list(columns)), percent)
    options.setdefault("height", min(42 + 35 * max(len(shown), 1), 320))
    config = {"row": ROW_COLUMN, "text": TEXT_COLUMN, **shares}
    st.dataframe(frame, key=f"report_{key}", hide_index=True, column_config=config, **options)
    if not lecture.is_on():
        st.download_button(
            "Download as CSV",
            table_csv(list(columns), lines, plain=as_plain_text).encode("utf-8", "backslashreplace"),
            file_name=f"{key}.csv",
            mime="text/csv",
            key=f"report_{key}_csv",
            type="tertiary",
        )


def in_percent(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The table with these columns as percentages, and column settings that format them as on all pages.

    Streamlit's own percent format varies the number of digits: 78.74%, 83.3%, 100%.
    """
    scaled = frame.assign(**{name: 100 * frame[name] for name in names})
    return scaled, {name: st.column_config.NumberColumn(name, format="%.1f %%") for name in names}


def heights(texts: Sequence[str], *, limit: int) -> tuple[int, int]:
    """Heights of the rows and of the table in pixels.

    If some text is long, rows have room for three lines; Streamlit does not wrap text in lower rows.
    """
    row = 76 if any(len(text) > 60 for text in texts) else 35
    if lecture.is_on():  # larger type
        row, limit = 2 * row, 2 * limit
    return row, min(42 + row * max(len(texts), 1), limit)


def _rows_table(
    rows: Sequence[RowPrediction], *, key: str, places: Sequence[int], beside: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Draw rows with labels and probabilities; a click on one opens its text in Classify.

    `places` has the number of each classified row in the visitor's file, if there is one; `beside` adds columns.
    """
    texts = [row.text for row in rows]
    columns: dict[str, Sequence[Any]] = {
        **({"row": [places[row.row] for row in rows]} if places else {}),
        "text": texts,
        "label": [row.label for row in rows],
        "predicted": [row.predicted for row in rows],
        **(beside or {}),
        "probability": [row.probability for row in rows],
        "label's probability": [row.label_probability for row in rows],
    }
    row_height, height = heights(texts[:MAX_SHOWN], limit=420)
    table(
        columns,
        key=key,
        percent=("probability", "label's probability"),
        row_height=row_height,
        height=height,
        on_select=lambda: _choose(f"report_{key}", texts[:MAX_SHOWN]),
        selection_mode="single-row",
    )


def _choose(key: str, texts: Sequence[str]) -> None:
    chosen = st.session_state[key].selection.rows
    if chosen and chosen[0] < len(texts):
        st.session_state[_OPEN] = texts[chosen[0]]


def open_chosen() -> None:
    """Open Classify with the text of the clicked row, if a row was clicked."""
    text = st.session_state.pop(_OPEN, None)
    if text is not None:
        state.change_view(text=text)
        st.switch_page(menu.CLASSIFY.path, query_params=state.link_params(state.shown_view()))


def mistakes(report: Report, places: Sequence[int]) -> None:
    """Draw the wrong predictions."""
    assert report.predictions is not None
    st.subheader("The most confident mistakes", anchor=False)
    wrong = report.predictions.mistakes()
    if not wrong:
        st.markdown(f"All predictions are right ({plain(report.rows_description)}).")
        return
    shown = f" The first {MAX_SHOWN} are listed." if len(wrong) > MAX_SHOWN else ""
    st.markdown(
        f"**{len(wrong):,}** predictions are wrong ({plain(report.rows_description)}), most confident first. **Click "
        f"the box at the start of a row to open it in Classify.**{shown}"
    )
    _rows_table(wrong, key="mistakes", places=places)


def baseline(opened: layout.Page) -> None:
    """Draw the rows on which only the Transformer, or only the linear baseline, is right."""
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
            fitted = compute_report.baseline(opened.source)
    except TxclsError as error:
        st.info(f"This needs the training rows. {plain(str(error))}")
        return
    part = ""
    if fitted.n_training < fitted.n_available:
        part = f" It was fitted to {fitted.n_training:,} of the {fitted.n_available:,} training rows."
    st.markdown(f"{plain(fitted.verdict())}.{part}")
    only_right = {"Transformer": fitted.only_transformer_right(), "linear baseline": fitted.only_baseline_right()}
    tabs = st.tabs([f"Only the {name} is right: {len(rows):,}" for name, rows in only_right.items()])
    for tab, (name, rows) in zip(tabs, only_right.items(), strict=True):
        with tab:
            if rows:
                classes = [fitted.baseline_class(row.row) for row in rows]
                places = compute_report.places(opened.source)
                key = f"only_{name.split()[0].lower()}"
                _rows_table(rows, key=key, places=places, beside={"linear baseline": classes})
            else:
                st.markdown("There are none.")
