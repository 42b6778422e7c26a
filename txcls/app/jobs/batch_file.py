"""Classify the rows of an uploaded file, and return it with labels and probabilities added."""

import operator
import time
from collections import Counter
from pathlib import Path
from typing import Any

from txcls.app.jobs.own_table import file_name, refuse_many
from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import limits
from txcls.data.tables.safe_csv import unescape_formula
from txcls.data.tables.table import EXCEL, Table, row_text
from txcls.errors import DataError
from txcls.evaluation.predict_file import LABEL, PROBABILITY, REVIEW, predict_file
from txcls.inference.predictor import Predictor
from txcls.wording import start_of

PREVIEW_ROWS = 20
_PREVIEW_LENGTH = 200


def run(job: Job) -> dict[str, Any]:
    """Classify the file; return the result's file name, the number of rows (total, per label) and the first rows."""
    job.progress("loading the model", share=0.0)
    classifier = Predictor.load(Path(job.spec["checkpoint"]))
    job.progress("reading the file", share=0.0)
    table = Table(job.session / job.spec["file"], sheet=job.spec.get("sheet"))
    target = job.folder / f"scored{'.csv' if table.suffix in ('.txt', *EXCEL) else table.suffix}"

    first: tuple[float, int] | None = None  # when the first part was done, which took longer, and its rows

    def on_rows(done: int, total: int) -> None:
        nonlocal first
        refuse_many(total, name=file_name(job.spec))
        now, end = time.monotonic(), 0.0
        if first is None:
            first = (now, done) if done else None
        elif done > first[1]:
            end = now + (now - first[0]) * (total - done) / (done - first[1])
        job.progress("classifying", now=False, share=done / max(total, 1), done=done, rows=total, end=end)

    # The cells of a workbook are marked as text instead.
    is_escaped = bool(job.spec["safe"]) and table.suffix not in EXCEL and target.suffix in (".csv", ".tsv", ".tab")
    done, checked = predict_file(
        classifier,
        table.path,
        target,
        text_column=str(job.spec["text_column"]),
        sheet=table.sheet,
        top_k=int(job.spec["top_k"]),
        review_below=job.spec.get("review_below"),
        spreadsheet_safe=is_escaped,
        on_rows=on_rows,
        should_stop=lambda: job.is_stopped,
    )
    if not done:
        raise DataError(f"no row was classified in {limits().minutes} minutes (TXCLS_MAX_MINUTES); use a smaller model")
    job.progress("preparing the download", share=1.0)
    found = {"rows": checked.n_rows, "done": done, "warning": checked.warning}
    result = {**found, **_summary(target, checked.text_column, is_escaped=is_escaped)}
    if table.suffix in EXCEL:
        target = _as_workbook(target, job.folder / "scored.xlsx")
    return {**result, "file": target.name}


def _as_workbook(table: Path, path: Path) -> Path:
    """Convert a CSV file to an Excel workbook; all cells except probabilities are text, so no formula runs."""
    import openpyxl
    from openpyxl.cell import WriteOnlyCell

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("classified")
    scored = Table(table)
    sheet.append([_as_text(WriteOnlyCell, sheet, name) for name in scored.columns])
    for row in scored.rows():
        sheet.append(
            [
                float(value) if name.startswith(PROBABILITY) and value else _as_text(WriteOnlyCell, sheet, value)
                for name, value in row.values.items()
            ]
        )
    book.save(path)
    return path


def _as_text(cell_class: Any, sheet: Any, value: str) -> Any:
    """A text cell, even if the value looks like a number or formula; characters that a workbook forbids are removed."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell = cell_class(sheet, value="")
    cell.value = ILLEGAL_CHARACTERS_RE.sub("", value)[:32_767]
    cell.data_type = "s"
    return cell


def _summary(target: Path, text_column: str, *, is_escaped: bool) -> dict[str, Any]:
    """The number of rows with each label, the numbers of rows to review and of escaped cells, and the first rows.

    If `is_escaped`, the apostrophes before formulas are removed from the labels and the first rows.
    """
    n_review, n_escaped, has_review = 0, 0, False
    counts: Counter[str] = Counter()
    preview: list[dict[str, Any]] = []
    for _, values in Table(target).rows():
        if is_escaped:
            written, values = values, {unescape_formula(name): unescape_formula(values[name]) for name in values}
            n_escaped += sum(map(operator.ne, written.values(), values.values()))
        counts[str(values[LABEL])] += 1
        has_review = REVIEW in values
        n_review += values.get(REVIEW) == "yes"
        if len(preview) < PREVIEW_ROWS:
            added = {name: values[name] for name in values if name.startswith((LABEL, PROBABILITY, REVIEW))}
            preview.append(
                {"text": start_of(row_text(values, text_column, where="a row"), limit=_PREVIEW_LENGTH), **added}
            )
    return {
        "labels": dict(counts.most_common()),
        "preview": preview,
        "n_escaped": n_escaped,
        **({"n_review": n_review} if has_review else {}),
    }
