"""Evaluate a classifier on an uploaded table, check the table's labels, and write a corrected copy."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from txcls.app.jobs.json_lines import write_json
from txcls.app.jobs.own_table import StoredRows, file_name, guessed, read_rows, read_table, refuse_many
from txcls.app.jobs.worker import Job
from txcls.app.shell.limits import limits
from txcls.checkpoint.load import load_checkpoint
from txcls.data.hashes import repeats
from txcls.data.rows_in_classes import labelled_texts
from txcls.data.tables.table import Table
from txcls.errors import DataError
from txcls.evaluation.confusions import label_advice
from txcls.evaluation.evaluate_file import rows_of_file
from txcls.evaluation.label_errors import corrected_csv, corrected_table_csv, doubtful_labels, held_out_probabilities
from txcls.evaluation.learning_curve import linear_learning_curve
from txcls.evaluation.report import report_on, sample_indices
from txcls.inference.predictor import Predictor
from txcls.wording import start_of

MAX_REPORT_ROWS = 1_000
"""Maximum number of rows classified; a random sample if there are more."""
MAX_PROBABILITIES = 1_000_000
"""Maximum number of rows times classes, so that the app can hold the predictions in memory."""
MAX_LABELS = 10_000
"""Maximum number of rows whose labels are checked; a random sample if there are more."""
MAX_DOUBTFUL, MAX_DOUBTFUL_CHARACTERS = 500, 400
"""Maximum number of rows that can be corrected on the page, and maximum length of each in characters."""
COLUMNS = ("text_column", "label_column")
REPORT = "report.json"
"""The file in the job's folder that holds the predictions."""


def run(job: Job) -> dict[str, Any]:
    """Run a job: evaluate a classifier on a table, find doubtful labels, correct them, or fit a learning curve."""
    work = {"doubtful": _doubtful, "correct": _correct, "report": _measure, "curve": _curve}
    return work[job.kind](job)


def _measure(job: Job) -> dict[str, Any]:
    """Evaluate the classifier on a table and write `REPORT`; return how it was read and how many rows it has learned.

    If the columns do not fit the classifier, the result has a "problem" instead, and others can be chosen.
    """
    job.progress("reading the table")
    classifier, name = Predictor.load(Path(job.spec["checkpoint"])), file_name(job.spec)[-60:]
    path, chosen_columns = job.session / job.spec["file"], {name: job.spec.get(name) for name in COLUMNS}
    table = Table(path, name=name, sheet=job.spec.get("sheet"), usual_sheet=classifier.checkpoint.config.data.sheet)
    found: dict[str, Any] = {"columns": list(table.sample), "sheets": list(table.sheets), "sheet": table.sheet}
    stored_rows = read_rows(job.session / "kept", str(job.spec.get("own", "")))
    # Rows stored by an older version do not say which of them were trained on: the share is then estimated.
    trained = [stored_rows.texts[row] for row in stored_rows.trained] if stored_rows and stored_rows.trained else None
    try:
        table_rows = rows_of_file(classifier.checkpoint, table, training_texts=trained, **chosen_columns)
    except DataError as error:
        return {**found, "problem": str(error)}
    n_rows = len(table_rows.labelled)
    refuse_many(n_rows, name=name)
    chosen = sample_indices(n_rows, limit=min(MAX_REPORT_ROWS, MAX_PROBABILITIES // len(classifier.classes)))
    rows = table_rows.labelled.subset(chosen)
    kind = "held-out rows" if table_rows.is_held_out else "rows"
    drawn = f" drawn at random from {n_rows:,}" if len(rows) < n_rows else ""
    rows_description = f"{len(rows):,} {kind} of {name}"
    if drawn:
        rows_description = f"{len(rows):,} of the {n_rows:,} {kind} of {name}, drawn at random"

    def on_rows(done: int, total: int) -> None:
        job.progress(f"{done:,} of {total:,} rows{drawn}", now=False, share=done / total)

    report = report_on(classifier, rows, rows_description=rows_description, on_rows=on_rows)
    predictions = report.predictions
    assert predictions is not None
    write_json(
        job.folder / REPORT,
        {
            "rows_are": report.rows_description,
            "figures": {**report.metrics, **table_rows.metrics(report.metrics["accuracy"])},
            "texts": [text[: limits().characters] for text in predictions.rows.texts],
            "labels": list(predictions.rows.labels),
            "row_numbers": [table_rows.numbers[row] for row in chosen],
            "probabilities": predictions.probabilities.tolist(),
            "lengths": predictions.lengths.tolist(),
            "unknown": predictions.unknown.tolist(),
        },
    )
    n_trained = round(table_rows.learned * len(rows)) if trained is None else int(repeats(rows.texts, trained).sum())
    found |= {column: getattr(table_rows, column) for column in COLUMNS}
    return {**found, "notes": table_rows.notes, "n_learned": n_trained}


def _doubtful(job: Job) -> dict[str, Any]:
    """The rows with doubtful labels, found by linear models: the classifier was trained on most rows."""
    job.progress("reading the rows")
    stored_rows = _stored_rows(job)
    classes = load_checkpoint(job.session / "own" / job.spec["own"]).classes
    labelled = [row for row, label in enumerate(stored_rows.labels) if label in classes]
    checked = [labelled[row] for row in sample_indices(len(labelled), limit=MAX_LABELS)]
    rows = stored_rows.labelled(checked, classes)

    def on_fold(done: int, total: int) -> None:
        job.progress(f"{done} of {total} folds")

    doubtful = doubtful_labels(rows, held_out_probabilities(rows, on_fold=on_fold), which="rows of your table")
    row_numbers = [stored_rows.row_numbers[row] if stored_rows.row_numbers else row for row in checked]
    return {
        "doubtful": [
            asdict(replace(row, row=row_numbers[row.row], text=start_of(row.text, limit=MAX_DOUBTFUL_CHARACTERS)))
            for row in doubtful.rows[:MAX_DOUBTFUL]
        ],
        "sentence": str(doubtful),
        "n_checked": doubtful.n_checked,
        "n_rows": len(stored_rows.texts),
        "classes": list(rows.classes),
        "advice": label_advice(doubtful.rows, rows),
        "table": {**stored_rows.spec, "own": job.spec["own"]},
    }


def _stored_rows(job: Job) -> StoredRows:
    stored_rows = read_rows(job.session / "kept", str(job.spec["own"]))
    if stored_rows is None:
        raise DataError("The rows that this classifier was trained on are no longer on this server.")
    return stored_rows


def _curve(job: Job) -> dict[str, Any]:
    """The linear baseline's learning curve on the training rows of a classifier."""
    job.progress("reading the rows")
    stored_rows = _stored_rows(job)
    classes = sorted({*stored_rows.labels, *stored_rows.test_labels})
    test = labelled_texts(stored_rows.test_texts, stored_rows.test_labels, tuple(classes))

    def on_subset(done: int, total: int) -> None:
        job.progress(f"{done} of {total} subsets of the rows")

    curve = linear_learning_curve(stored_rows.labelled(stored_rows.train, classes), test, on_subset=on_subset)
    return {"points": [point.cells for point in curve.points], "verdict": curve.verdict, "n_test": curve.n_test}


def _correct(job: Job) -> dict[str, Any]:
    """Write the corrected table, with safe cells for download and unchanged cells for training; return both names."""
    job.progress("writing the table")
    corrections = {int(row): str(label) for row, label in job.spec["corrections"].items()}
    as_given = f"files/{Path(job.spec.get('file', 'rows')).stem}-corrected.csv"
    for file, escapes in ((job.folder / "corrected.csv", True), (job.session / as_given, False)):
        if "file" in job.spec:
            table = read_table(job.session, job.spec)
            column = guessed(table, job.spec).label_column
            text = corrected_table_csv(table, corrections, label_column=column, escape_formulas=escapes)
        else:
            stored_rows = _stored_rows(job)
            rows = stored_rows.labelled(range(len(stored_rows.texts)), list(dict.fromkeys(stored_rows.labels)))
            text = corrected_csv(rows, corrections, escape_formulas=escapes)
        file.write_bytes(text.encode("utf-8-sig", "backslashreplace"))
    return {"download": "corrected.csv", "file": as_given}
