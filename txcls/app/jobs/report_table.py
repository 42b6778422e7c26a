"""Measure a classifier on an uploaded table, and write a table with corrected labels."""

from pathlib import Path
from typing import Any

from txcls.app.jobs.own_files import file_name, guessed, read_kept, read_table
from txcls.app.jobs.queue import Job
from txcls.app.jobs.sessions import write_json
from txcls.app.shell.limits import limits
from txcls.data.hashes import normalised
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.label_errors import corrected_table_csv
from txcls.evaluation.on_file import rows_of_file
from txcls.evaluation.report import report_on, some_rows
from txcls.evaluation.scoring import as_plain_text
from txcls.predictor import Predictor

MAX_ROWS = 1_000
"""Rows that are answered, a random choice where there are more."""
MAX_PROBABILITIES = 1_000_000
"""Rows times classes of the answers, so that the app can hold them."""
REPORT = "report.json"
"""The file of the job in which the answers lie."""


def run(job: Job) -> dict[str, Any]:
    """Notes on the table and how many of its rows were learned, the answers in `REPORT`; or the corrected table."""
    return _corrected(job) if job.kind == "correct" else _measured(job)


def _measured(job: Job) -> dict[str, Any]:
    job.progress("reading the table")
    classifier, name = Predictor.load(Path(job.spec["checkpoint"])), file_name(job.spec)[-60:]
    table = job.session / job.spec["file"]
    try:
        of_file = rows_of_file(classifier.checkpoint, table, name=name)
    finally:
        table.unlink()
    if len(of_file.rows) > limits().rows:
        raise DataError(f"{len(of_file.rows):,} rows; at most {limits().rows:,} are taken here: send a part of them")
    rows = some_rows(of_file.rows, most=min(MAX_ROWS, MAX_PROBABILITIES // len(classifier.classes)))
    rows_are = f"{len(rows):,} rows of {name}"
    if len(rows) < len(of_file.rows):
        rows_are = f"{len(rows):,} of the {len(of_file.rows):,} rows of {name}, drawn at random"

    def on_rows(done: int, total: int) -> None:
        job.progress(f"{done:,} of {total:,} rows", now=False, share=done / total)

    report = report_on(classifier, rows, rows_are=rows_are, on_rows=on_rows)
    answers = report.answers
    assert answers is not None
    write_json(
        job.folder / REPORT,
        {
            "rows_are": report.rows_are,
            "figures": dict(report.figures),
            "texts": [text[: limits().characters] for text in answers.rows.texts],
            "labels": list(answers.rows.labels),
            "probabilities": answers.probabilities.tolist(),
            "lengths": answers.lengths.tolist(),
            "unknown": answers.unknown.tolist(),
        },
    )
    return {"notes": list(of_file.notes), "n_learned": _n_learned(job, rows)}


def _n_learned(job: Job, rows: LabelledTexts) -> int:
    """How many of the rows have a text that the visitor's own classifier learned from."""
    kept = read_kept(job.session / "kept", str(job.spec.get("own", "")))
    learned = set() if kept is None else {normalised(kept.texts[row]) for row in kept.learned}
    return sum(normalised(text) in learned for text in rows.texts)


def _corrected(job: Job) -> dict[str, Any]:
    """Names of two files with the whole table: one to download, one with the cells as they are to train on."""
    job.progress("writing the table")
    table = read_table(job.session, job.spec)
    column = guessed(table, job.spec).label_column
    corrections = {int(place): str(label) for place, label in job.spec["corrections"].items()}
    as_given = f"files/{Path(job.spec['file']).stem}-corrected.csv"
    for file, plain in ((job.folder / "corrected.csv", as_plain_text), (job.session / as_given, str)):
        text = corrected_table_csv(table, corrections, label_column=column, plain=plain)
        file.write_bytes(text.encode("utf-8-sig", "backslashreplace"))
    return {"download": "corrected.csv", "file": as_given}
