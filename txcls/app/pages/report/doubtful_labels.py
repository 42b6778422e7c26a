"""The part of the Report page that lists rows with doubtful labels, to correct them and train again."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from txcls.app import menu
from txcls.app.jobs.own_table import READ_OPTIONS, file_name
from txcls.app.jobs.report_table import MAX_DOUBTFUL_CHARACTERS, MAX_LABELS
from txcls.app.pages.report import compute as compute_report
from txcls.app.pages.report.compute import LabelCheck, TableReport
from txcls.app.pages.report.rows import MAX_SHOWN, ROW_COLUMN, TEXT_COLUMN, heights, in_percent
from txcls.app.pages.train import forecast
from txcls.app.shell import checkpoints, layout, own_session, view_state, waiting
from txcls.app.shell.downloads import download_link
from txcls.app.shell.markdown import bullets, plain
from txcls.errors import TxclsError
from txcls.evaluation.label_errors import corrected_csv
from txcls.evaluation.report import RowPredictions
from txcls.figures import visible
from txcls.wording import start_of

ABOUT_LABELS = (
    "Confident learning ([Northcutt et al. 2021](https://arxiv.org/abs/1911.00068)): a label is doubtful if models "
    "that were not trained on the row predict another class with high confidence. These are linear models of the words "
    "and of the shipped encoder's states, each fitted in five folds"
)
_TRAIN = "_report_train"


def draw(page: layout.Page, predictions: RowPredictions, table_report: TableReport | None) -> None:
    """Draw the check of all rows of a visitor's own classifier, or otherwise of the rows that were classified."""
    st.subheader("Doubtful labels", anchor=False)
    if table_report is None and checkpoints.has_stored_rows(page.source):
        check = _check_own_rows(page)
    else:
        check = _check_predictions(page, predictions, table_report)
    if check is None:
        return
    changed = _draw_corrections(check)
    if check.doubtful and check.table is not None:
        _draw_corrected_table(check.table, changed)
    elif check.doubtful and check.rows is not None:
        st.download_button(
            f"Download all {len(check.rows):,} rows with {_correction_counts(changed)}",
            corrected_csv(check.rows, changed, escape_formulas=True).encode("utf-8", "backslashreplace"),
            file_name="corrected.csv",
            mime="text/csv",
            key="report_corrected_csv",
        )


def _check_own_rows(page: layout.Page) -> LabelCheck | None:
    """Draw the button that starts a job; return the job's result, None before it is done."""
    spec = {
        "own": page.source.name.removeprefix(own_session.PREFIX),
        "state": page.source.state,
        "rule": 4,  # results of earlier rules are not shown
    }
    about = (
        f"{ABOUT_LABELS}. **All rows of your table** are checked, including those in the training set (at most "
        f"{MAX_LABELS:,}, drawn at random). The classifier's own predictions are not used, "
        "since it was trained on most of these labels."
    )
    task, button = "The check of the labels", "Find doubtful labels"
    job = waiting.result_of("doubtful", spec, task=task, button=button, key="report_doubtful", about=about)
    return None if job is None else compute_report.check_of_own_rows(job)


def _check_predictions(
    page: layout.Page, predictions: RowPredictions, table_report: TableReport | None
) -> LabelCheck | None:
    """Draw the button that checks the rows; return the result, None before a click or if they cannot be checked."""
    key = f"report_labels_{page.source.name}_{page.source.state}_{table_report is not None}"
    check: LabelCheck | None = st.session_state.get(key)
    if check is not None and check.rows is predictions.rows:
        return check
    st.markdown(f"{ABOUT_LABELS}, and this classifier.")
    was_trained_on_rows = table_report is not None and st.checkbox(
        "This classifier was trained on these rows",
        value=table_report.n_learned > 0,
        key="report_has_learned",
        help="Then its predictions are not used: it has learned these labels, right or wrong.",
    )
    if not st.button("Find doubtful labels", key="report_doubtful"):
        return None
    bar = st.progress(0.0, "reading the rows …")

    def on_fold(done: int, total: int) -> None:
        bar.progress(done / total, f"{done} of {total} folds")

    try:
        result = compute_report.check_row_labels(
            predictions,
            was_trained_on_rows=was_trained_on_rows,
            which="test rows" if table_report is None else "rows of your table",
            on_fold=on_fold,
        )
        row_numbers = () if table_report is None else table_report.report.row_numbers
        st.session_state[key] = replace(result, row_numbers=row_numbers)
    except TxclsError as error:
        bar.empty()
        st.info(plain(str(error)))
        return None
    st.rerun()


def _draw_corrections(check: LabelCheck) -> dict[int, str]:
    """Draw a table of the doubtful rows to correct; return the new labels, keyed by `DoubtfulRow.row`."""
    drawn = f" They were drawn at random from {check.n_rows:,}." if check.n_checked < check.n_rows else ""
    how = ""
    if check.doubtful:
        how = (
            " The most doubtful come first. They need not be wrong: read the text (double-click it to see more of it), "
            "then choose another label in the column **corrected**, or clear the cell to drop the row."
        )
    st.markdown(f"{plain(check.sentence)}{drawn}{how}")
    if not check.doubtful:
        return {}
    if check.advice:
        st.markdown(bullets(check.advice))
    shown = check.doubtful[:MAX_SHOWN]
    numbers = [row.row for row in shown]
    row_numbers = [check.row_numbers[number] for number in numbers] if check.row_numbers else []
    if check.table and "file" in check.table:
        row_numbers = numbers
    columns = {
        **({"row": row_numbers} if row_numbers else {}),
        "text": [visible(start_of(row.text, limit=MAX_DOUBTFUL_CHARACTERS)) for row in shown],
        "label": [visible(row.label) for row in shown],
        "suggested": [visible(row.suggested) for row in shown],
        "label's probability": [row.label_probability for row in shown],
        "corrected": [row.label for row in shown],
    }
    frame, shares = in_percent(pd.DataFrame(columns), ("label's probability",))
    row_height, height = heights([row.text for row in shown], limit=440)
    edited = st.data_editor(
        frame,
        key="report_correct",
        hide_index=True,
        disabled=[name for name in columns if name != "corrected"],
        row_height=row_height,
        height=height,
        column_config={
            "row": ROW_COLUMN,
            "text": TEXT_COLUMN,
            **shares,
            "corrected": st.column_config.SelectboxColumn("corrected", options=list(check.classes)),
        },
    )
    labels = ["" if value is None or value != value else str(value) for value in edited["corrected"]]
    return {number: name for number, name, row in zip(numbers, labels, shown, strict=True) if name != row.label}


def _correction_counts(changed: Mapping[int, str]) -> str:
    dropped = sum(not name for name in changed.values())
    return f"{len(changed) - dropped:,} corrected and {dropped:,} dropped"


def _draw_corrected_table(table: Mapping[str, Any], changed: Mapping[int, str]) -> None:
    """Offer the visitor's whole table with the corrections, to download it or to train on it."""
    session = own_session.session()
    if not changed or session is None:
        st.caption("After you change a label, you can download your whole corrected table, or train on it.")
        return
    spec = {**table, "corrections": {str(number): label for number, label in changed.items()}}
    task, button = "The corrected table", "Write the corrected table"
    if (job := waiting.result_of("correct", spec, task=task, button=button, key="report_correct_table")) is not None:
        name = f"{Path(file_name(table) or 'rows').stem}-corrected.csv"
        with st.container(horizontal=True):
            file = session.job("correct") / str(job.result["download"])
            download_link(f"Download {name[:60]}", file, name=name, key="report_corrected_csv")
            st.button(
                "Train again on the corrected table",
                key="report_train_corrected",
                on_click=lambda: st.session_state.update({_TRAIN: (table, str(job.result["file"]), name)}),
            )
    st.caption(
        f"Your whole table with all its columns: {_correction_counts(changed)}. In the download, cells that a "
        "spreadsheet would run as formulas begin with an apostrophe."
    )


def open_training() -> None:
    """Open the Train page with the corrected table, if the button to train again was clicked."""
    if (correction := st.session_state.pop(_TRAIN, None)) is None:
        return
    table, file, name = correction
    columns = {key: table[key] for key in READ_OPTIONS if key in table}
    corrected = {"file": file, "names": {file: name}, **columns}
    if waiting.start("read", corrected):
        forecast.measure_early(corrected)
        st.switch_page(menu.TRAIN.path, query_params=view_state.link_params(view_state.shown_view()))
