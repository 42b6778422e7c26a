"""The part of the Report page that lists rows whose label looks wrong, to correct them and train again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from txcls.app import pages
from txcls.app.pages.report import compute as compute_report
from txcls.app.pages.report import rows as report_rows
from txcls.app.pages.report.compute import LabelCheck, TableReport
from txcls.app.pages.train import forecast
from txcls.app.shell import checkpoints, layout, own, state, waiting
from txcls.app.shell.downloads import download_link
from txcls.app.shell.markdown import plain
from txcls.data.types import LabelledTexts
from txcls.errors import TxclsError
from txcls.evaluation.label_errors import SuspectRow, corrected_csv
from txcls.evaluation.report import Answers
from txcls.evaluation.scoring import as_plain_text
from txcls.figures import visible

MAX_SHOWN = 500
"""Rows that can be corrected on the page."""
ABOUT = (
    "Confident learning ([Northcutt et al. 2021](https://arxiv.org/abs/1911.00068)): a label is doubtful if models "
    "that were not trained on the row predict another class with more confidence. These are linear models of the words "
    "and of the shipped encoder's states, fitted in five folds"
)
_TRAIN = "_report_train"


@dataclass(frozen=True, eq=False)
class _Doubted:
    """Doubtful rows of `rows`, and the number of each of `rows` in the visitor's file, if there is one."""

    suspects: Sequence[SuspectRow]
    rows: LabelledTexts
    places: Sequence[int] = ()


def draw(opened: layout.Page, answers: Answers, of_table: TableReport | None) -> None:
    """Check all rows of the table of a visitor's own classifier; else the rows that were classified."""
    st.subheader("Rows whose label looks wrong", anchor=False)
    if of_table is None and checkpoints.has_kept_rows(opened.source):
        _of_own_rows(opened)
    else:
        n_learned = 0 if of_table is None else of_table.n_learned
        _of_answers(opened, answers, of_table=of_table is not None, n_learned=n_learned)


# All rows of the table of a visitor's classifier


def _of_own_rows(opened: layout.Page) -> None:
    key = f"report_own_suspects_{opened.source.name}_{opened.source.state}"
    check: LabelCheck | None = st.session_state.get(key)
    if check is None:
        st.markdown(
            f"{ABOUT}. **All rows of your table** are checked, also those in the training set (at most "
            f"{compute_report.MAX_LABELS:,}, drawn at random). The classifier's own predictions are not used, since "
            "it was trained on most of these labels."
        )
        check = _find_on_click(lambda on_fold: compute_report.own_suspects(opened.source, on_fold=on_fold))
        if check is None:
            return
        st.session_state[key] = check
        st.rerun()
    checked = f"{len(check.rows):,} labels"
    if len(check.rows) < check.total:
        checked += f" (drawn at random from {check.total:,})"
    changed = _correct(_Doubted(check.suspects, check.rows, check.places), checked)
    if check.suspects and check.file_name:
        _corrected_table(check, changed)
    elif check.suspects:
        _download_rows(check.rows, changed)


def _corrected_table(check: LabelCheck, changed: Mapping[int, str]) -> None:
    """The whole table with the corrections, to download or to train on."""
    session, job = own.session(), own.job("correct")
    if not changed or session is None:
        st.caption("After you change a label, you can download your whole corrected table, or train on it.")
        return
    spec = {**check.spec, "corrections": {str(place): label for place, label in changed.items()}}
    if job.is_active:
        waiting.watch("correct", lambda job: waiting.line(job, "The corrected table"), key="watch_correct")
    elif job.status == "done" and job.spec == spec:
        name = f"{Path(check.file_name).stem}-corrected.csv"
        with st.container(horizontal=True):
            file = session.job("correct") / str(job.result["download"])
            download_link(f"Download {name[:60]}", file, name=name, key="report_corrected_csv")
            st.button(
                "Train again on the corrected table",
                key="report_train_corrected",
                on_click=lambda: st.session_state.update({_TRAIN: (check.spec, str(job.result["file"]), name)}),
            )
    else:
        if job.spec == spec:
            waiting.failure(job)
        if st.button("Write the corrected table", key="report_correct_table"):
            waiting.start("correct", spec)
            st.rerun()
    dropped = sum(not name for name in changed.values())
    st.caption(
        f"Your whole table with all its columns: {_counted(len(changed) - dropped, 'label')} corrected, "
        f"{_counted(dropped, 'row')} dropped. In the download, cells that a spreadsheet would run as formulas begin "
        "with an apostrophe."
    )


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def train_chosen() -> None:
    """Open the page Train with the corrected table, if that button was clicked."""
    if (chosen := st.session_state.pop(_TRAIN, None)) is None:
        return
    spec, file, name = chosen
    columns = {key: spec[key] for key in ("text_column", "label_column") if key in spec}
    corrected = {"file": file, "names": {file: name}, **columns}
    if waiting.start("read", corrected):
        forecast.measure_early(corrected)
        st.switch_page(pages.TRAIN.path, query_params=state.link_params(state.shown_view()))


# Rows that were classified


def _of_answers(opened: layout.Page, answers: Answers, *, of_table: bool, n_learned: int) -> None:
    key = f"report_suspects_{opened.source.name}_{opened.source.state}_{of_table}"
    stored: tuple[Any, list[SuspectRow]] | None = st.session_state.get(key)
    if stored is None or stored[0] is not answers.rows:
        st.markdown(f"{ABOUT}, and this classifier.")
        has_learned = of_table and st.checkbox(
            "This classifier was trained on these rows",
            value=n_learned > 0,
            key="report_has_learned",
            help="Then its predictions are not used: it has learned these labels, right or wrong.",
        )
        rows = _find_on_click(
            lambda on_fold: compute_report.suspects(answers, has_learned=has_learned, on_fold=on_fold)
        )
        if rows is None:
            return
        st.session_state[key] = (answers.rows, rows)
        st.rerun()
    changed = _correct(_Doubted(stored[1], answers.rows), f"{len(answers):,} labels")
    if stored[1]:
        _download_rows(answers.rows, changed)


def _download_rows(rows: LabelledTexts, changed: Mapping[int, str]) -> None:
    """Text and label of all rows, with the corrections."""
    dropped = sum(not name for name in changed.values())
    st.download_button(
        f"Download all {len(rows):,} rows with {len(changed) - dropped} corrected and {dropped} dropped",
        corrected_csv(rows, changed, plain=as_plain_text).encode("utf-8", "backslashreplace"),
        file_name="corrected.csv",
        mime="text/csv",
        key="report_corrected_csv",
    )


# Both


def _find_on_click(find: Callable[[compute_report.OnRows], Any]) -> Any:
    """The doubtful rows, once the button is clicked; None before, or if they cannot be found."""
    if not st.button("Find wrong labels", key="report_suspects"):
        return None
    bar = st.progress(0.0, "reading the rows …")
    try:
        return find(lambda done, total: bar.progress(done / total, f"{done} of {total} folds"))
    except TxclsError as error:
        bar.empty()
        st.info(plain(str(error)))
        return None


def _correct(doubted: _Doubted, checked: str) -> dict[int, str]:
    """A table of the doubtful rows to correct; returns the new labels by the row's number in the file, or in `rows`."""
    if not doubted.suspects:
        st.markdown(f"No label looks wrong, of {checked}.")
        return {}
    st.markdown(
        f"**{len(doubted.suspects):,}** of {checked} look wrong, most probable first. They need not be wrong: read the "
        "text, then choose another label in the column **corrected**, or clear the cell to drop the row."
    )
    shown = list(doubted.suspects)[:MAX_SHOWN]
    numbers = [doubted.places[suspect.row] if doubted.places else suspect.row for suspect in shown]
    columns = {
        "row": numbers,
        "text": [visible(suspect.text)[:400] for suspect in shown],
        "label": [visible(suspect.label) for suspect in shown],
        "suggested": [visible(suspect.suggested) for suspect in shown],
        "label's probability": [suspect.label_probability for suspect in shown],
        "corrected": [suspect.label for suspect in shown],
    }
    if not doubted.places:
        del columns["row"]
    frame, shares = report_rows.in_percent(pd.DataFrame(columns), ("label's probability",))
    row_height, height = report_rows.heights([suspect.text for suspect in shown], most=440)
    edited = st.data_editor(
        frame,
        key="report_correct",
        hide_index=True,
        disabled=[name for name in columns if name != "corrected"],
        row_height=row_height,
        height=height,
        column_config={
            "row": st.column_config.NumberColumn(
                "row", width="small", format="localized", help="Its number in your file."
            ),
            "text": st.column_config.TextColumn("text", width="large"),
            **shares,
            "corrected": st.column_config.SelectboxColumn("corrected", options=list(doubted.rows.classes)),
        },
    )
    chosen = ["" if value is None or value != value else str(value) for value in edited["corrected"]]
    return {number: name for number, name, suspect in zip(numbers, chosen, shown, strict=True) if name != suspect.label}
