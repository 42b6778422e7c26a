"""Classify the rows of an uploaded file, and return it with labels and probabilities added."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from txcls.app.jobs.own_table import file_name, refuse_many
from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import limits
from txcls.data.tables.safe_csv import escape_formula
from txcls.data.tables.table import Table, Values, flatten, row_text
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
    suffix = {".txt": ".csv", ".xlsm": ".xlsx"}.get(table.suffix, table.suffix)
    target = job.folder / f"scored{suffix}"

    first: tuple[float, int] | None = None  # when the first part was done, which took longer, and its rows

    def on_rows(done: int, total: int) -> None:
        nonlocal first
        refuse_many(total, name=file_name(job.spec))
        now, end = time.monotonic(), 0.0
        if first is None:
            first = (now, done) if done else None
        elif done > first[1]:
            end = now + (now - first[0]) * (total - done) / (done - first[1])
        stage = "classifying" if done < total else "preparing the download"
        job.progress(stage, now=False, share=done / max(total, 1), done=done, rows=total, end=end)

    # In a workbook, text is never run as a formula.
    is_escaped = bool(job.spec["safe"]) and suffix in (".csv", ".tsv", ".tab")
    summary = _Summary(str(job.spec["text_column"]))
    classified = predict_file(
        classifier,
        table.path,
        target,
        text_column=summary.text_column,
        sheet=table.sheet,
        top_k=int(job.spec["top_k"]),
        review_below=job.spec.get("review_below"),
        spreadsheet_safe=is_escaped,
        marks_unicode=True,
        on_rows=on_rows,
        on_labelled=summary.add,
        should_stop=lambda: job.is_stopped,
    )
    if not classified.n_rows:
        raise DataError(f"no row was classified in {limits().minutes} minutes (TXCLS_MAX_MINUTES); use a smaller model")
    return {
        "rows": classified.checked.n_rows,
        "done": classified.n_rows,
        "warning": " ".join(filter(None, [classified.checked.warning, classified.unlike])),
        "file": target.name,
        "labels": dict(summary.labels.most_common()),
        "preview": summary.preview,
        "n_escaped": summary.n_formulas if is_escaped else 0,
        "review": classified.review,
    }


class _Summary:
    """The number of rows with each label, the number of cells to escape, and the first rows."""

    def __init__(self, text_column: str) -> None:
        self.text_column = text_column
        self.labels: Counter[str] = Counter()
        self.preview: list[dict[str, Any]] = []
        self.n_formulas = 0

    def add(self, rows: Sequence[Values]) -> None:
        """Count labelled rows."""
        for row in rows:
            self.labels[row[LABEL]] += 1
            self.n_formulas += sum(isinstance(cell, str) and escape_formula(cell) != cell for cell in row.values())
            if len(self.preview) < PREVIEW_ROWS:
                text = row_text(flatten(row), self.text_column, where="a row")
                added = {name: row[name] for name in row if name.startswith((LABEL, PROBABILITY, REVIEW))}
                self.preview.append({"text": start_of(text, limit=_PREVIEW_LENGTH), **added})
