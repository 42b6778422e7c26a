"""The part of the Report page that lists rows whose label looks wrong, to be corrected and trained on again."""

import secrets
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
from txcls.app.shell.markdown import plain
from txcls.data.types import LabelledTexts
from txcls.errors import TxclsError
from txcls.evaluation.label_errors import SuspectRow, corrected_csv
from txcls.evaluation.report import Answers
from txcls.evaluation.scoring import as_plain_text
from txcls.figures import visible

MOST_SHOWN = 500
"""Rows that can be corrected on the page."""
ABOUT = (
    "Confident learning ([Northcutt et al. 2021](https://arxiv.org/abs/1911.00068)): a label is doubted where "
    "models that have not learned from this row find another class likelier: linear models over the words and over the "
    "shipped encoder's states, fitted to the other rows in five folds"
)
_TRAIN = "_report_train"


@dataclass(frozen=True, eq=False)
class _Doubted:
    """Doubted rows of `rows`, and the number of each of `rows` in the visitor's file, where there is one."""

    suspects: Sequence[SuspectRow]
    rows: LabelledTexts
    places: Sequence[int] = ()


def draw(opened: layout.Page, answers: Answers, of_table: TableReport | None) -> None:
    """Of a visitor's own classifier all rows of the table that it was made of; else the rows that were answered."""
    st.subheader("Rows whose label looks wrong", anchor=False)
    if of_table is None and checkpoints.has_kept_rows(opened.source):
        _of_own_rows(opened)
    else:
        n_learned = 0 if of_table is None else of_table.n_learned
        _of_answers(opened, answers, of_table=of_table is not None, n_learned=n_learned)


# The rows that a visitor's classifier was made of


def _of_own_rows(opened: layout.Page) -> None:
    key = f"report_own_suspects_{opened.source.name}_{opened.source.state}"
    found: LabelCheck | None = st.session_state.get(key)
    if found is None:
        st.markdown(
            f"{ABOUT}. **All rows of your table** are looked at, those that were trained on too (of more than "
            f"{compute_report.MOST_LABELS:,}, that many drawn at random). The classifier itself is not asked, since it "
            "has learned most of these labels."
        )
        found = _looked(lambda on_fold: compute_report.own_suspects(opened.source, on_fold=on_fold))
        if found is None:
            return
        st.session_state[key] = found
        st.rerun()
    looked_at = f"{len(found.rows):,} labels"
    if len(found.rows) < found.total:
        looked_at += f" (drawn at random from {found.total:,})"
    changed = _correct(_Doubted(found.suspects, found.rows, found.places), looked_at)
    if found.suspects and found.file_name:
        _take_away(found, changed)
    elif found.suspects:
        _download_rows(found.rows, changed)


def _take_away(found: LabelCheck, changed: Mapping[int, str]) -> None:
    """The whole table with the corrections: to download, and to train on again."""
    desk = own.desk()
    if not changed or desk is None:
        st.caption("Once a label is changed, your whole table can be downloaded with it, or trained on again.")
        return
    try:
        corrected = compute_report.corrected_table(desk.folder, found.spec, changed)
    except TxclsError as error:
        st.error(plain(str(error)))
        return
    dropped = sum(not name for name in changed.values())
    name = f"{Path(found.file_name).stem}-corrected.csv"
    with st.container(horizontal=True):
        st.download_button(
            f"Download {plain(name[:60])}",
            corrected,
            file_name=name,
            mime="text/csv",
            key="report_corrected_csv",
            on_click="ignore",
        )
        st.button(
            "Train again on the corrected table",
            key="report_train_corrected",
            on_click=lambda: st.session_state.update({_TRAIN: (found.spec, name, dict(changed))}),
        )
    st.caption(
        f"Your whole table with all its columns: {_counted(len(changed) - dropped, 'label')} corrected, "
        f"{_counted(dropped, 'row')} dropped. In the download, cells that a spreadsheet would run as formulas begin "
        "with an apostrophe."
    )


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'s' * (n != 1)}"


def train_chosen() -> None:
    """Take the corrected table to the page Train, if that was asked for."""
    asked, desk = st.session_state.pop(_TRAIN, None), own.desk()
    if asked is None or desk is None:
        return
    spec, name, changed = asked
    try:
        data = compute_report.corrected_table(desk.folder, spec, changed, spreadsheet_safe=False)
    except TxclsError as error:
        st.error(plain(str(error)))
        return
    file = f"files/table-{secrets.token_hex(4)}.csv"
    own.save_upload(Path(file).name, data)
    columns = {key: spec[key] for key in ("text_column", "label_column") if key in spec}
    wanted = {"file": file, "names": {file: name}, **columns}
    if waiting.start("read", wanted):
        forecast.measure_early(wanted)
        st.switch_page(pages.TRAIN.path, query_params=state.link_params(state.shown_view()))


# Rows that were answered


def _of_answers(opened: layout.Page, answers: Answers, *, of_table: bool, n_learned: int) -> None:
    key = f"report_suspects_{opened.source.name}_{opened.source.state}_{of_table}"
    found: tuple[Any, list[SuspectRow]] | None = st.session_state.get(key)
    if found is None or found[0] is not answers.rows:
        st.markdown(f"{ABOUT}, and this classifier.")
        has_learned = of_table and st.checkbox(
            "This classifier was trained on these rows",
            value=n_learned > 0,
            key="report_has_learned",
            help="Then it has learned their labels, right or wrong, and is not asked.",
        )
        rows = _looked(lambda on_fold: compute_report.suspects(answers, has_learned=has_learned, on_fold=on_fold))
        if rows is None:
            return
        st.session_state[key] = (answers.rows, rows)
        st.rerun()
    changed = _correct(_Doubted(found[1], answers.rows), f"{len(answers):,} labels")
    if found[1]:
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


def _looked(look: Callable[[compute_report.OnRows], Any]) -> Any:
    """What is found once the button is pressed; None before, and where it cannot be done."""
    if not st.button("Look for wrong labels", key="report_suspects"):
        return None
    bar = st.progress(0.0, "reading the rows …")
    try:
        return look(lambda done, total: bar.progress(done / total, f"{done} of {total} folds"))
    except TxclsError as error:
        bar.empty()
        st.info(plain(str(error)))
        return None


def _correct(found: _Doubted, looked_at: str) -> dict[int, str]:
    """The doubtful rows as a table to correct. Returns the new labels by the row's number in the file, or in `rows`."""
    if not found.suspects:
        st.markdown(f"No label looks wrong; {looked_at} were looked at.")
        return {}
    st.markdown(
        f"**{len(found.suspects):,}** of {looked_at} look wrong, the likeliest first. A doubt is not a proof: read the "
        "text, and choose another label in the column **corrected**, or empty it to drop the row."
    )
    shown = list(found.suspects)[:MOST_SHOWN]
    numbers = [found.places[one.row] if found.places else one.row for one in shown]
    columns = {
        "row": numbers,
        "text": [visible(one.text)[:400] for one in shown],
        "label": [visible(one.label) for one in shown],
        "suggested": [visible(one.suggested) for one in shown],
        "label's probability": [one.label_probability for one in shown],
        "corrected": [one.label for one in shown],
    }
    if not found.places:
        del columns["row"]
    frame, shares = report_rows.in_percent(pd.DataFrame(columns), ("label's probability",))
    row_height, height = report_rows.tall([one.text for one in shown], most=440)
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
            "corrected": st.column_config.SelectboxColumn("corrected", options=list(found.rows.classes)),
        },
    )
    chosen = ["" if value is None or value != value else str(value) for value in edited["corrected"]]
    return {number: name for number, name, one in zip(numbers, chosen, shown, strict=True) if name != one.label}
