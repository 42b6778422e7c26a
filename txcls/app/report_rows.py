"""The parts of the Report page that list rows: mistakes, the linear peer, and labels to correct."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from txcls.app import compute_report, layout, lecture, pages, state
from txcls.app.markdown import plain
from txcls.errors import TxclsError
from txcls.figures import visible

if TYPE_CHECKING:
    from txcls.report import Answers, PeerAnswers, Report, RowAnswer, SuspectRow

MOST_SHOWN = 500
"""Rows that a table on the page holds at most; the download has all."""
_OPEN = "_report_open"


def table(
    title: str, head: Sequence[str], lines: Sequence[Sequence[Any]], *, key: str, percent: Sequence[str] = ()
) -> None:
    """A sortable table with a download as CSV, whose cells no spreadsheet runs."""
    if title and not lecture.is_on():
        st.markdown(f"**{title}**")
    columns: dict[str, Any] = {name: st.column_config.NumberColumn(name, format="percent") for name in percent}
    shown = [[visible(one) if isinstance(one, str) else one for one in line] for line in lines[:MOST_SHOWN]]
    st.dataframe(
        pd.DataFrame(shown, columns=list(head)),
        key=f"report_{key}",
        hide_index=True,
        column_config=columns,
        height=min(42 + 35 * max(len(shown), 1), 320),
    )
    _download(head, lines, key=key)


def _download(head: Sequence[str], lines: Sequence[Sequence[Any]], *, key: str) -> None:
    if lecture.is_on():
        return
    from txcls.report.labels import table_csv
    from txcls.scoring import as_plain_text

    st.download_button(
        "Download as CSV",
        table_csv(head, lines, plain=as_plain_text).encode("utf-8", "backslashreplace"),
        file_name=f"{key}.csv",
        mime="text/csv",
        key=f"report_{key}_csv",
        type="tertiary",
    )


def rows_table(rows: "Sequence[RowAnswer]", *, key: str, more: tuple[str, Sequence[str]] | None = None) -> None:
    """Rows with labels and probabilities; a click on one opens its text in Classify."""
    head = ["text", "label", "predicted", "probability", "label's probability"]
    lines = [[one.text, one.label, one.predicted, one.probability, one.label_probability] for one in rows]
    if more is not None:
        head.insert(3, more[0])
        for line, value in zip(lines, more[1], strict=True):
            line.insert(3, value)
    shown = [[visible(one)[:400] if isinstance(one, str) else one for one in line] for line in lines[:MOST_SHOWN]]
    share = st.column_config.NumberColumn
    st.dataframe(
        pd.DataFrame(shown, columns=head),
        key=f"report_{key}",
        hide_index=True,
        height=min(42 + 35 * max(len(shown), 1), 360),
        on_select=lambda: _choose(f"report_{key}", [one.text for one in rows[:MOST_SHOWN]]),
        selection_mode="single-row",
        column_config={
            "text": st.column_config.TextColumn("text", width="large"),
            "probability": share("probability", format="percent"),
            "label's probability": share("label's probability", format="percent"),
        },
    )
    _download(head, lines, key=key)


def _choose(key: str, texts: Sequence[str]) -> None:
    chosen = st.session_state[key].selection.rows
    if chosen and chosen[0] < len(texts):
        st.session_state[_OPEN] = texts[chosen[0]]


def open_chosen() -> None:
    """Open Classify with the text of the row that was clicked, if one was."""
    text = st.session_state.pop(_OPEN, None)
    if text is not None:
        state.change_view(text=text)
        st.switch_page(pages.CLASSIFY.path, query_params=state.link_params(state.shown_view()))


def draw(opened: layout.Page, report: "Report", *, of_table: bool) -> None:
    """All parts that need rows."""
    answers = report.answers
    assert answers is not None
    with lecture.slide(lecture.CLASSES):
        _mistakes(answers, report.rows_are)
    if lecture.is_on():
        return
    if not of_table:
        _peer(opened)
    _labels(opened, answers, of_table=of_table)


def _mistakes(answers: "Answers", rows_are: str) -> None:
    st.subheader("The most confident mistakes", anchor=False)
    mistakes = answers.mistakes()
    if not mistakes:
        st.markdown(f"No answer differs from the label ({plain(rows_are)}).")
        return
    shown = f" Listed are the first {MOST_SHOWN}." if len(mistakes) > MOST_SHOWN else ""
    st.markdown(
        f"**{len(mistakes):,}** answers differ from the label ({plain(rows_are)}), the surest first. **Mark a "
        f"row to open it in Classify.**{shown}"
    )
    rows_table(mistakes, key="mistakes")


def _peer(opened: layout.Page) -> None:
    st.subheader("Beside a linear model", anchor=False)
    key = f"report_peer_{opened.source.name}_{opened.source.state}"
    if not st.session_state.get(key):
        st.markdown(
            "TF-IDF of words and pairs with a linear support vector machine is what one would try first. Fitted to the "
            f"training rows, at most {compute_report.MOST_TRAINING_ROWS:,} of them, it answers the same rows."
        )
        st.button("Fit the linear model", key="report_peer", on_click=lambda: st.session_state.update({key: True}))
        return
    try:
        with st.spinner("fitting the linear model …"):
            found = compute_report.peer(opened.source)
    except TxclsError as error:
        st.info(f"This needs the training rows. {plain(str(error))}")
        return
    _peer_found(found)


def _peer_found(found: "PeerAnswers") -> None:
    part = ""
    if found.n_training < found.n_available:
        part = f" It learned from {found.n_training:,} of the {found.n_available:,} training rows."
    st.markdown(f"{plain(found.verdict())}.{part}")
    own, other = found.alone(peer=False), found.alone(peer=True)
    tabs = st.tabs([f"Only the Transformer is right: {len(own):,}", f"Only the linear model is right: {len(other):,}"])
    for tab, rows, key in zip(tabs, (own, other), ("only_transformer", "only_linear"), strict=True):
        with tab:
            if rows:
                rows_table(rows, key=key, more=("linear model", [found.peer_class(one.row) for one in rows]))
            else:
                st.markdown("No row.")


def _labels(opened: layout.Page, answers: "Answers", *, of_table: bool) -> None:
    st.subheader("Rows whose label looks wrong", anchor=False)
    key = f"report_suspects_{opened.source.name}_{opened.source.state}_{of_table}"
    found: tuple[Any, list[SuspectRow]] | None = st.session_state.get(key)
    if found is None or found[0] is not answers.rows:
        st.markdown(
            "Confident learning ([Northcutt et al. 2021](https://arxiv.org/abs/1911.00068)): a label is doubted where "
            "models that have not learned from this row find another class likelier: linear models over the words and "
            "over the shipped encoder's states, fitted to the other rows in five folds, and this classifier."
        )
        has_learned = of_table and st.checkbox(
            "This classifier was trained on these rows",
            key="report_has_learned",
            help="Then it has learned their labels, right or wrong, and is not asked.",
        )
        if not st.button("Look for wrong labels", key="report_suspects"):
            return
        bar = st.progress(0.0, "fitting …")
        try:
            rows = compute_report.suspects(
                answers,
                has_learned=has_learned,
                on_fold=lambda done, total: bar.progress(done / total, f"{done} of {total} folds"),
            )
        except TxclsError as error:
            bar.empty()
            st.info(plain(str(error)))
            return
        st.session_state[key] = (answers.rows, rows)
        st.rerun()
    _correct(answers, found[1])


def _correct(answers: "Answers", suspects: "Sequence[SuspectRow]") -> None:
    """The doubtful rows as a table to correct, and all rows with the corrections to download."""
    from txcls.report import corrected_csv
    from txcls.scoring import as_plain_text

    if not suspects:
        st.markdown("No label looks wrong.")
        return
    st.markdown(
        f"**{len(suspects):,}** of {len(answers):,} labels look wrong, the likeliest first. A doubt is not a proof: "
        "read the text, and choose another label in the column **corrected**, or empty it to drop the row."
    )
    shown = list(suspects)[:MOST_SHOWN]
    edited = st.data_editor(
        pd.DataFrame(
            {
                "text": [visible(one.text)[:400] for one in shown],
                "label": [visible(one.label) for one in shown],
                "suggested": [visible(one.suggested) for one in shown],
                "label's probability": [one.label_probability for one in shown],
                "corrected": [one.label for one in shown],
            }
        ),
        key="report_correct",
        hide_index=True,
        disabled=["text", "label", "suggested", "label's probability"],
        height=min(42 + 35 * len(shown), 400),
        column_config={
            "text": st.column_config.TextColumn("text", width="large"),
            "label's probability": st.column_config.NumberColumn(format="percent"),
            "corrected": st.column_config.SelectboxColumn("corrected", options=list(answers.rows.classes)),
        },
    )
    chosen = ["" if value is None or value != value else str(value) for value in edited["corrected"]]
    changed = {one.row: name for one, name in zip(shown, chosen, strict=True) if name != one.label}
    dropped = sum(not name for name in changed.values())
    st.download_button(
        f"Download all {len(answers):,} rows with {len(changed) - dropped} corrected and {dropped} dropped",
        corrected_csv(answers.rows, changed, plain=as_plain_text).encode("utf-8", "backslashreplace"),
        file_name="corrected.csv",
        mime="text/csv",
        key="report_corrected_csv",
    )
