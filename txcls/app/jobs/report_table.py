"""Measure a classifier on an uploaded table, check its labels, and write a table with corrected labels."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from txcls.app.jobs.own_files import StoredRows, file_name, guessed, read_rows, read_table
from txcls.app.jobs.queue import Job
from txcls.app.jobs.sessions import write_json
from txcls.app.shell.limits import limits
from txcls.checkpoint.load import load_checkpoint
from txcls.data.hashes import normalised
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.evaluate_file import rows_of_file
from txcls.evaluation.label_errors import (
    corrected_csv,
    corrected_table_csv,
    held_out_probabilities,
    suspect_rows,
)
from txcls.evaluation.learning_curve import linear_learning_curve
from txcls.evaluation.predict_file import as_plain_text
from txcls.evaluation.report import report_on, sample_indices, sample_rows
from txcls.predictor import Predictor

MAX_ROWS = 1_000
"""Maximum number of rows classified; a random sample if there are more."""
MAX_PROBABILITIES = 1_000_000
"""Maximum number of rows times classes, so that the app can hold the predictions in memory."""
MAX_LABELS = 10_000
"""Maximum number of rows whose labels are checked; a random sample if there are more."""
MAX_SUSPECTS, MAX_SUSPECT_CHARACTERS = 500, 400
"""Maximum number of rows that can be corrected on the page, and maximum length of each in characters."""
REPORT = "report.json"
"""The file in the job's folder that holds the predictions."""


def run(job: Job) -> dict[str, Any]:
    """Do the job: measure on a table (writes `REPORT`; returns notes and how many of its rows were trained on), check
    labels (returns the suspect rows), correct labels (returns the names of the corrected tables), or fit the linear
    baseline to parts of the rows (returns the learning curve)."""
    work = {"suspects": _suspects, "correct": _corrected, "report": _measured, "curve": _curve}
    return work[job.kind](job)


def _measured(job: Job) -> dict[str, Any]:
    job.progress("reading the table")
    classifier, name = Predictor.load(Path(job.spec["checkpoint"])), file_name(job.spec)[-60:]
    table = job.session / job.spec["file"]
    try:
        own_rows, notes, _, _, learned = rows_of_file(classifier.checkpoint, table, name=name)
    finally:
        table.unlink()
    if len(own_rows) > limits().rows:
        raise DataError(f"{len(own_rows):,} rows; at most {limits().rows:,} are taken here: send a part of them")
    rows = sample_rows(own_rows, limit=min(MAX_ROWS, MAX_PROBABILITIES // len(classifier.classes)))
    rows_description = f"{len(rows):,} rows of {name}"
    if len(rows) < len(own_rows):
        rows_description = f"{len(rows):,} of the {len(own_rows):,} rows of {name}, drawn at random"

    def on_rows(done: int, total: int) -> None:
        job.progress(f"{done:,} of {total:,} rows", now=False, share=done / total)

    report = report_on(classifier, rows, rows_description=rows_description, on_rows=on_rows)
    predictions = report.predictions
    assert predictions is not None
    write_json(
        job.folder / REPORT,
        {
            "rows_are": report.rows_description,
            "figures": dict(report.metrics),
            "texts": [text[: limits().characters] for text in predictions.rows.texts],
            "labels": list(predictions.rows.labels),
            "probabilities": predictions.probabilities.tolist(),
            "lengths": predictions.lengths.tolist(),
            "unknown": predictions.unknown.tolist(),
        },
    )
    return {"notes": notes, "n_learned": max(_n_learned(job, rows), round(learned * len(rows)))}


def _n_learned(job: Job, rows: LabelledTexts) -> int:
    """How many of the rows have the same text as a training row of the visitor's own classifier."""
    kept_rows = read_rows(job.session / "kept", str(job.spec.get("own", "")))
    learned = set() if kept_rows is None else {normalised(kept_rows.texts[row]) for row in kept_rows.learned}
    return sum(normalised(text) in learned for text in rows.texts)


def _suspects(job: Job) -> dict[str, Any]:
    """Check the labels of all rows that a classifier was made from, without its own predictions: most are training
    rows."""
    job.progress("reading the rows")
    kept_rows = read_rows(job.session / "kept", str(job.spec["own"]))
    if kept_rows is None:
        raise DataError("The rows that this classifier was trained on are no longer on this server.")
    classes = load_checkpoint(job.session / "own" / job.spec["own"]).classes
    known = [row for row, label in enumerate(kept_rows.labels) if label in classes]
    checked = [known[row] for row in sample_indices(len(known), limit=MAX_LABELS)]
    rows = _labelled(kept_rows, checked, classes)

    def on_fold(done: int, total: int) -> None:
        job.progress(f"{done} of {total} folds")

    found = suspect_rows(rows, held_out_probabilities(rows, on_fold=on_fold))
    places = [kept_rows.places[row] if kept_rows.places else row for row in checked]
    return {
        "suspects": [
            asdict(replace(row, row=places[row.row], text=row.text[:MAX_SUSPECT_CHARACTERS]))
            for row in found[:MAX_SUSPECTS]
        ],
        "n_suspects": len(found),
        "n_checked": len(rows),
        "n_rows": len(kept_rows.texts),
        "classes": list(rows.classes),
        "table": {**kept_rows.spec, "own": job.spec["own"]},
    }


def _labelled(kept_rows: StoredRows, rows: Sequence[int], classes: Sequence[str]) -> LabelledTexts:
    texts, labels = ([values[row] for row in rows] for values in (kept_rows.texts, kept_rows.labels))
    return _of_classes(texts, labels, classes)


def _of_classes(texts: Sequence[str], labels: Sequence[str], classes: Sequence[str]) -> LabelledTexts:
    index = {name: number for number, name in enumerate(classes)}
    return LabelledTexts(texts, [index[label] for label in labels], tuple(classes))


def _curve(job: Job) -> dict[str, Any]:
    """The linear baseline's learning curve on the rows that a classifier was made from."""
    job.progress("reading the rows")
    kept_rows = read_rows(job.session / "kept", str(job.spec["own"]))
    if kept_rows is None:
        raise DataError("The rows that this classifier was trained on are no longer on this server.")
    classes = sorted({*kept_rows.labels, *kept_rows.test_labels})
    test = _of_classes(kept_rows.test_texts, kept_rows.test_labels, classes)

    def on_part(done: int, total: int) -> None:
        job.progress(f"{done} of {total} parts of the rows")

    curve = linear_learning_curve(_labelled(kept_rows, kept_rows.learned, classes), test, on_part=on_part)
    return {"points": [point.cells for point in curve.points], "verdict": curve.verdict, "n_test": curve.n_test}


def _corrected(job: Job) -> dict[str, Any]:
    """Write the whole table twice and return both names: for download, with cells safe for spreadsheets, and for
    training, with unchanged cells."""
    job.progress("writing the table")
    corrections = {int(place): str(label) for place, label in job.spec["corrections"].items()}
    as_given = f"files/{Path(job.spec.get('file', 'rows')).stem}-corrected.csv"
    for file, plain in ((job.folder / "corrected.csv", as_plain_text), (job.session / as_given, str)):
        if "file" in job.spec:
            table = read_table(job.session, job.spec)
            column = guessed(table, job.spec).label_column
            text = corrected_table_csv(table, corrections, label_column=column, plain=plain)
        else:
            kept_rows = read_rows(job.session / "kept", str(job.spec["own"]))
            assert kept_rows is not None
            rows = _labelled(kept_rows, range(len(kept_rows.texts)), list(dict.fromkeys(kept_rows.labels)))
            text = corrected_csv(rows, corrections, plain=plain)
        file.write_bytes(text.encode("utf-8-sig", "backslashreplace"))
    return {"download": "corrected.csv", "file": as_given}
