"""The tables of the Report page, and its parts that list rows: mistakes and the linear baseline."""

import html
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pandas as pd
import streamlit as st

from txcls.app import menu
from txcls.app.pages.report import compute as compute_report
from txcls.app.shell import layout, lecture, table_html, view_state
from txcls.app.shell.markdown import plain
from txcls.data.tables.safe_csv import table_csv
from txcls.errors import TxclsError
from txcls.evaluation.confusions import WORDS_HEAD, words_table
from txcls.evaluation.report import Report, RowPrediction
from txcls.figures import visible, visible_lines
from txcls.wording import percentage, start_of

MAX_SHOWN = 500
"""Maximum number of rows in a table on the page; the download has all."""
MAX_CARDS = 20
"""Maximum number of rows shown on a phone."""
MAX_CELL, MAX_CARD = 180, 400
"""Maximum number of characters of a text that is shown in a table, whose rows have no room for more, and on a phone."""
ROW_COLUMN = st.column_config.NumberColumn("row", width="small", format="localized", help="Row number in your file.")
TEXT_COLUMN = st.column_config.TextColumn("text", width="large")
_OPEN, _WORDS = "_report_open", "_report_words"


def draw_table(
    columns: Mapping[str, Sequence[Any]], *, key: str, percent: Sequence[str], on_phone: str = "", **options: Any
) -> None:
    """Draw a sortable table, and its CSV download, in which no cell is a formula for a spreadsheet.

    `on_phone` is HTML shown instead on phones, where text in such a table is cut and columns are off the screen.
    """
    rows = list(zip(*columns.values(), strict=True))
    shown = [
        [visible(start_of(cell, limit=MAX_CELL)) if isinstance(cell, str) else cell for cell in row]
        for row in rows[:MAX_SHOWN]
    ]
    frame, shares = in_percent(pd.DataFrame(shown, columns=list(columns)), percent)
    column_config = {"row": ROW_COLUMN, "text": TEXT_COLUMN, **shares}
    with st.container(key=f"only_wide_{key}") if on_phone else nullcontext():
        st.dataframe(
            frame, key=f"report_{key}", hide_index=True, column_config=column_config, placeholder="–", **options
        )
    if on_phone:
        with st.container(key=f"only_phone_{key}"):
            st.html(on_phone)
    if not lecture.is_on():
        st.download_button(
            "Download as CSV",
            table_csv(list(columns), rows).encode("utf-8", "backslashreplace"),
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
    """Heights of a row and of the table in pixels.

    If some text is long, rows have room for three lines; Streamlit does not wrap text in rows of less height.
    """
    row_height = 76 if any(len(text) > 60 for text in texts) else 35
    if lecture.is_on():  # larger type
        row_height, limit = 2 * row_height, 2 * limit
    return row_height, min(46 + row_height * max(len(texts), 1), limit)


def _draw_rows(
    rows: Sequence[RowPrediction],
    *,
    key: str,
    row_numbers: Sequence[int],
    extra_columns: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Draw rows with labels and probabilities; a click on one opens its text in Classify.

    `row_numbers` has the number of each classified row in the visitor's file, if there is one.
    """
    texts = [row.text for row in rows]
    columns: dict[str, Sequence[Any]] = {
        **({"row": [row_numbers[row.row] for row in rows]} if row_numbers else {}),
        "label": [row.label for row in rows],
        "predicted": [row.predicted for row in rows],
        **(extra_columns or {}),
        "text": texts,
        "probability": [row.probability for row in rows],
        "label's probability": [row.label_probability for row in rows],
    }
    others = [
        {name: str(columns[name][n]) for name in ("row", *(extra_columns or ())) if name in columns}
        for n in range(len(rows))
    ]
    cards = [_card(row, other) for row, other in zip(rows[:MAX_CARDS], others, strict=False)]
    if len(rows) > MAX_CARDS:
        cards.append(f"<p>The first {MAX_CARDS}; the CSV file has all.</p>")
    row_height, height = heights(texts[:MAX_SHOWN], limit=420)
    draw_table(
        columns,
        key=key,
        percent=("probability", "label's probability"),
        on_phone="".join(cards),
        row_height=row_height,
        height=height,
        on_select=lambda: _choose_row(f"report_{key}", texts[:MAX_SHOWN]),
        selection_mode="single-row",
    )


def _card(row: RowPrediction, others: Mapping[str, str]) -> str:
    """A row as HTML for a phone: predicted class and label with their probabilities, and the text."""
    facts = {
        "predicted": f"{row.predicted} {percentage(row.probability)}",
        "label": f"{row.label} {percentage(row.label_probability)}",
        **others,
    }
    lines = "<br>".join(f"{name}: <b><bdi>{html.escape(visible(fact))}</bdi></b>" for name, fact in facts.items())
    return f"<p>{lines}<br>{_text_html(row.text)}</p>"


def _text_html(text: str) -> str:
    return f'<bdi style="white-space: pre-line">{html.escape(visible_lines(start_of(text, limit=MAX_CARD)))}</bdi>'


def _choose_row(key: str, texts: Sequence[str]) -> None:
    selected = st.session_state[key].selection.rows
    if selected and selected[0] < len(texts):
        st.session_state[_OPEN] = texts[selected[0]]


def open_chosen() -> None:
    """Open Classify with the text of the clicked row, if a row was clicked."""
    text = st.session_state.pop(_OPEN, None)
    if text is not None:
        view_state.change_view(text=text)
        st.switch_page(menu.CLASSIFY.path, query_params=view_state.link_params(view_state.shown_view()))


def draw_words(report: Report) -> None:
    """Draw the words that are more frequent in the rows of each confusion."""
    assert report.predictions is not None
    if report.predictions.right.all():
        return
    words = st.session_state.get(_WORDS)
    if words is None or words[0] is not report.predictions:  # takes up to a second
        words = st.session_state[_WORDS] = report.predictions, words_table(report.predictions)
    lines, caption = words[1]
    st.markdown(f"**The words behind each confusion**, on {plain(report.rows_description)}")
    if lines:
        columns = dict(zip(WORDS_HEAD, zip(*lines, strict=True), strict=True))
        draw_table(columns, key="words", percent=(), on_phone=_words_on_phone(lines))
    st.caption(plain(caption))


def _words_on_phone(lines: Sequence[Sequence[str]]) -> str:
    """The table of words in two columns, which fit a phone."""
    words, shares = "label → predicted: word", "in these errors, in correct rows"
    rows = [
        {words: [label, f"→ {predicted}:", f"“{word}”"], shares: [errors, right]}
        for label, predicted, word, errors, right in lines
    ]
    return table_html.table((words, shares), rows, texts=(words,))


def draw_mistakes(report: Report, row_numbers: Sequence[int]) -> None:
    """Draw the misclassified rows."""
    assert report.predictions is not None
    st.subheader("The most confident mistakes", anchor=False)
    wrong = report.predictions.mistakes()
    if not wrong:
        st.markdown(f"All predictions are right ({plain(report.rows_description)}).")
        return
    limit_sentence = f" The first {MAX_SHOWN} are listed." if len(wrong) > MAX_SHOWN else ""
    st.markdown(
        f"**{len(wrong):,}** predictions are wrong ({plain(report.rows_description)}), most confident first."
        f"{limit_sentence}"
    )
    with st.container(key="only_wide_click"):
        st.markdown("**Click the box at the start of a row to open it in Classify**, with its text in the address.")
    _draw_rows(wrong, key="mistakes", row_numbers=row_numbers)


def draw_baseline(page: layout.Page) -> None:
    """Draw the rows on which only the Transformer, or only the linear baseline, is right."""
    st.subheader("Compared with the linear baseline", anchor=False)
    key = f"report_baseline_{page.source.name}_{page.source.state}"
    if not st.session_state.get(key):
        st.markdown(
            "On which rows does only one of the two models err? TF-IDF with a tuned linear support vector machine is "
            f"fitted here to the rows that are not test rows, at most {compute_report.MAX_TRAINING_ROWS:,}, to take "
            "seconds."
        )
        st.button(
            "Fit the linear baseline", key="report_baseline", on_click=lambda: st.session_state.update({key: True})
        )
        return
    try:
        with st.spinner("fitting the linear baseline …"):
            fitted = compute_report.baseline(page.source)
    except TxclsError as error:
        st.info(f"This needs the training rows. {plain(str(error))}")
        return
    st.markdown(f"{plain(fitted.verdict())}.")
    only_right = {"Transformer": fitted.only_transformer_right(), "linear baseline": fitted.only_baseline_right()}
    tabs = st.tabs([f"Only the {name} is right: {len(rows):,}" for name, rows in only_right.items()])
    for tab, (name, rows) in zip(tabs, only_right.items(), strict=True):
        with tab:
            if rows:
                classes = [fitted.baseline_class(row.row) for row in rows]
                row_numbers = compute_report.row_numbers(page.source)
                key = f"only_{name.split()[0].lower()}"
                _draw_rows(rows, key=key, row_numbers=row_numbers, extra_columns={"linear baseline": classes})
            else:
                st.markdown("There are none.")
