"""The parts of the Train page about the table: classes, lengths, and rows to check."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from txcls.app.shell import own_session, table_html
from txcls.app.shell.charts import chart
from txcls.app.shell.downloads import download_link
from txcls.app.shell.markdown import plain
from txcls.figures import class_counts, length_histogram
from txcls.wording import percentage

KINDS = {
    "conflict": (
        "Same text, different labels",
        "A text gets one label, so the others count as errors. Correct your file, unless such texts have several.",
    ),
    "near": (
        "Almost the same text",
        "At least four fifths of the words and word pairs are the same. Training keeps such rows in the same split (in "
        "tables of up to 25 million characters), since the accuracy would otherwise be higher than on new texts.",
    ),
    "same": (
        "Repeated rows",
        "The same text with the same label, ignoring case and whitespace; each text is listed once.",
    ),
    "empty": ("No text or no label", "Rows without a text or without a label are left out."),
}
"""The kinds of rows to check: heading and explanation."""
MAX_GROUPS = 50
"""Maximum number of groups of rows listed of each kind; the download has all."""


def draw_charts(survey: Mapping[str, Any]) -> None:
    """Draw the class counts and the lengths."""
    left, right = st.columns(2, gap="large")
    counts: dict[str, int] = survey["classes"]
    with left:
        st.subheader(f"{len(counts):,} classes", anchor=False)
        largest, smallest = next(iter(counts.items()), ("", 0)), next(reversed(counts.items()), ("", 0))
        chart(
            class_counts(counts),
            key="chart_classes",
            alt=f"Bar chart of rows per class, {len(counts)} classes: from {largest[0][:40]} with {largest[1]:,} to "
            f"{smallest[0][:40]} with {smallest[1]:,}",
        )
        if n_empty := survey["n_empty"]:
            rows = f"{n_empty:,} rows" if n_empty > 1 else "1 row"
            st.caption(f"Not counted: {rows} without a text or without a label.")
        if small := survey["small_classes"]:
            names = ", ".join(plain(name[:40]) for name in small[:5])
            st.caption(
                f"{len(small)} {'class has' if len(small) == 1 else 'classes have'} fewer than 5 rows ({names}"
                f"{', …' if len(small) > 5 else ''}): too few to measure."
            )
    with right:
        st.subheader("Lengths", anchor=False)
        unit = survey.get("length_unit", "words")  # an older version counted only words
        description = _describe_lengths(survey["lengths"], unit)
        chart(length_histogram(survey["lengths"], unit=unit), key="chart_rows_by_length", alt=description)
        st.caption(f"{description}. The longest 1 % are in the last bar.")


def _describe_lengths(lengths: Sequence[tuple[int, int]], unit: str) -> str:
    """The histogram of `lengths`; each is a pair (number of words or characters, number of texts)."""
    total = sum(n for _, n in lengths)
    if not total:
        return "Histogram of 0 texts"
    median = np.repeat([length for length, _ in lengths], [n for _, n in lengths])[(total - 1) // 2]
    return (
        f"Histogram of {total:,} texts: {lengths[0][0]:,} to {lengths[-1][0]:,} {unit}, half of them {median:,} or "
        "fewer"
    )


def draw_problems(survey: Mapping[str, Any], *, unit: str) -> None:
    """Draw the rows to check, one kind at a time, and a download of all of them."""
    counts = {kind: int(survey[f"n_{kind}"]) for kind in KINDS}
    st.subheader("Rows to check", anchor=False)
    if not any(counts.values()):
        st.markdown("No row is empty or repeated, and no text has two labels.")
        return
    kinds = [kind for kind in KINDS if counts[kind]]
    chosen = st.segmented_control(
        "Kind",
        kinds,
        default=kinds[0],
        required=True,
        format_func=lambda kind: f"{KINDS[kind][0]} · {counts[kind]:,}",
        key="problem_kind",
        label_visibility="collapsed",
    )
    kind = chosen if chosen in kinds else kinds[0]
    listed: list[dict[str, Any]] = survey["problems"][kind]
    groups = listed[:MAX_GROUPS]
    st.caption(
        f"{KINDS[kind][1]} "
        + ("" if kind == "empty" else "The count is of rows that repeat an earlier one. ")
        + f"Numbers refer to the {unit}s in your file."
        + (f" The first {MAX_GROUPS} are shown." if len(listed) > MAX_GROUPS else "")
    )
    with st.container(height=320 if len(groups) > 5 else "content", border=False):
        st.html(_groups_html(kind, unit, groups))
    if (session := own_session.session()) is not None:
        file = session.job("read") / "rows.csv"
        download_link("Download all of them as CSV", file, name="rows-to-look-at.csv", key="rows_file")


def _groups_html(kind: str, unit: str, groups: Sequence[Mapping[str, Any]]) -> str:
    """A table of groups of rows as HTML: their numbers, labels and texts."""
    rows: list[dict[str, object]] = []
    continued_rows: list[int] = []
    for group in groups:
        similarity = {"alike": percentage(group["similarity"], 0)} if kind == "near" else {}
        if len(set(group["texts"])) == 1:
            labels = " / ".join(dict.fromkeys(label or "(none)" for label in group["labels"][:10]))
            text = group["texts"][0] or "(empty)"
            rows.append(
                {f"{unit}s": _joined_numbers(group["row_numbers"]), "labels": labels, "text": text, **similarity}
            )
            continue
        members = list(zip(group["row_numbers"], group["labels"], group["texts"], strict=False))[:10]
        continued_rows += range(len(rows), len(rows) + len(members) - 1)
        for number, label, text in members:
            rows.append({f"{unit}s": f"{number:,}", "labels": label or "(none)", "text": text, **similarity})
            similarity = {}
        if len(group["row_numbers"]) > len(members):
            rows[-1][f"{unit}s"] = f"{rows[-1][f'{unit}s']}, …"
    columns = [f"{unit}s", "labels", "text", *(["alike"] if kind == "near" else [])]
    heading = KINDS[kind][0]
    return table_html.table(
        columns,
        rows,
        numbers=(f"{unit}s", "alike"),
        named=("labels",),
        texts=("text",),
        continued_rows=continued_rows,
        caption=heading,
    )


def _joined_numbers(numbers: Sequence[int]) -> str:
    joined = ", ".join(f"{number:,}" for number in numbers[:8])
    return f"{joined}, …" if len(numbers) > 8 else joined


def draw_preview(survey: Mapping[str, Any]) -> None:
    """Draw the first rows of a table."""
    rows: list[dict[str, Any]] = survey["preview"]
    if rows:
        columns = [name for name in rows[0] if name != "row"]
        texts, named = ([survey[field]] if survey.get(field) else [] for field in ("text_column", "label_column"))
        st.html(table_html.table(columns, rows, texts=texts, named=named, caption="The first rows"))
