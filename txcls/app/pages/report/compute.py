"""The computations of the Report page. Those on test rows are cached for all sessions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from txcls.app.jobs.json_lines import read_json
from txcls.app.jobs.queue import JobState
from txcls.app.jobs.report_table import MAX_REPORT_ROWS, REPORT
from txcls.app.shell import checkpoints, own_session
from txcls.app.shell.cache import Source, cached, size_of_texts
from txcls.app.shell.compute_queue import my_turn
from txcls.data.datasets import dataset_names, is_available, open_dataset
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.compare_with_baseline import BaselinePredictions, predict_with_baseline, rows_to_fit
from txcls.evaluation.confusions import label_advice
from txcls.evaluation.label_errors import DoubtfulRow, doubtful_labels, held_out_probabilities
from txcls.evaluation.report import Report, RowPredictions, report_on, sample_rows, stored_report

MAX_TRAINING_ROWS = 20_000
"""Maximum number of rows that the linear baseline is fitted to."""
OWN_TABLE = "table"
"""The data set name of a classifier that was trained on a visitor's rows."""
OnProgress = Callable[[int, int], object]
"""Called with the number done and the total."""


def _size_of_report(report: Report) -> int:
    predictions = report.predictions
    return 200_000 + (
        0 if predictions is None else size_of_texts(predictions.rows.texts) + predictions.probabilities.nbytes
    )


def on_test_rows(source: Source, *, on_rows: OnProgress = lambda done, total: None) -> Report:
    """Predictions for the test rows, or a sample of those of a published data set; DataError if they are not here."""

    @cached(heavy=True, size=_size_of_report)
    def report_on_test_rows(source: Source) -> Report:
        rows = checkpoints.test_rows(source)
        # Of a visitor's table, at most 5,000 rows are held out, as on the command line: 6 to 24 seconds of CPU time.
        sample = rows if checkpoints.has_stored_rows(source) else sample_rows(rows, limit=MAX_REPORT_ROWS)
        description = f"{len(sample):,} test rows"
        if len(sample) < len(rows):
            description = f"{len(sample):,} of the {len(rows):,} test rows, drawn at random"
        return report_on(
            checkpoints.classifier(source),
            sample,
            rows_description=description,
            measure_without_order=False,
            on_rows=on_rows,
        )

    return report_on_test_rows(source)


def row_numbers(source: Source) -> list[int]:
    """The numbers in the visitor's file of the rows of `on_test_rows`; empty if they are not known."""
    return list(own_session.stored_data(source.name).get("row_numbers", ()))


@dataclass(frozen=True, eq=False)
class TableReport:
    """A report on an uploaded table.

    Attributes:
        report: the report.
        notes: sentences on how the table was read.
        n_learned: the number of its rows that the classifier is known to have been trained on.
    """

    report: Report
    notes: tuple[str, ...]
    n_learned: int


def on_own_table(source: Source, job: JobState) -> TableReport | None:
    """The report that a job wrote on the visitor's table; None if there is none for this classifier."""
    session = own_session.session()
    if session is None or job.status != "done" or job.spec["state"] != source.state:
        return None
    key = "_report_on_own_table"
    cached_report: tuple[float, TableReport] | None = st.session_state.get(key)
    if cached_report is None or cached_report[0] != job.since:
        written = read_json(session.job("report") / REPORT)
        if written is None:
            return None
        stored = stored_report(checkpoints.classifier(source).checkpoint)
        rows = LabelledTexts(written["texts"], written["labels"], stored.classes)
        predictions = RowPredictions(
            rows, *(np.array(written[name]) for name in ("probabilities", "lengths", "unknown"))
        )
        report = replace(
            stored,
            rows_description=written["rows_are"],
            metrics=written["figures"],
            comparison=None,
            predictions=predictions,
            row_numbers=written.get("row_numbers", ()),
        )
        cached_report = job.since, TableReport(report, tuple(job.result["notes"]), int(job.result["n_learned"]))
        st.session_state[key] = cached_report
    return cached_report[1]


def why_no_rows(source: Source) -> str:
    """Sentences on why there are no test rows and what the page therefore lacks; "" if there are test rows."""
    dataset = checkpoints.summary(source.name).dataset
    if checkpoints.has_stored_rows(source) or (dataset in dataset_names() and is_available(dataset)):
        return ""
    how = "" if dataset not in dataset_names() else f" (`python -m txcls data fetch {dataset}`)"
    return (
        "The test texts of this classifier are not on this machine, and checkpoints do not contain them, so this page "
        "shows only saved metrics. Mistakes, doubtful labels and the linear baseline need the "
        f"texts{how}, or a table of your own above."
    )


def fitted_rows(source: Source) -> LabelledTexts:
    """All rows of the checkpoint's data set but the test rows; DataError if they are not available."""
    if (stored_rows := own_session.stored_rows(source.name)) is not None:
        return stored_rows.labelled(stored_rows.train, checkpoints.classifier(source).classes)
    if checkpoints.summary(source.name).dataset == OWN_TABLE:
        raise DataError("They are not on this server: the zip file of a classifier does not contain its rows.")
    checkpoint = checkpoints.classifier(source).checkpoint
    return rows_to_fit(checkpoint, open_dataset(checkpoint.config.data))


@cached(heavy=True, size=lambda predictions: 8 * len(predictions.predicted) + 10_000)
def baseline(source: Source) -> BaselinePredictions:
    """The linear baseline's predictions for the rows of `on_test_rows`; DataError if training rows are missing."""
    predictions = on_test_rows(source).predictions
    assert predictions is not None
    return predict_with_baseline(predictions, fitted_rows(source), limit=MAX_TRAINING_ROWS)


@dataclass(frozen=True, eq=False)
class LabelCheck:
    """Rows with doubtful labels.

    Attributes:
        doubtful: most doubtful first; their `row` is an index of `rows`, or a row number in the visitor's file.
        sentence: how many labels are doubtful, to models of what accuracy.
        n_checked, n_rows: how many rows were checked, and exist.
        classes: the classes that a label can be corrected to.
        rows: the rows, if the app holds them.
        row_numbers: their numbers in an uploaded table; empty if they are not from one.
        advice: sentences on classes with many such rows.
        table: the spec that reads the visitor's file, if the rows are those of a visitor's own classifier.
    """

    doubtful: Sequence[DoubtfulRow]
    sentence: str
    n_checked: int
    n_rows: int
    classes: Sequence[str]
    rows: LabelledTexts | None = None
    row_numbers: Sequence[int] = ()
    advice: Sequence[str] = ()
    table: Mapping[str, Any] | None = None


def check_row_labels(
    predictions: RowPredictions, *, was_trained_on_rows: bool, which: str, on_fold: OnProgress
) -> LabelCheck:
    """Check the labels of classified rows, which are `which`: see `DoubtfulLabels`.

    If the classifier was trained on them, its predictions are not used.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    with my_turn():
        probabilities = held_out_probabilities(
            predictions.rows, None if was_trained_on_rows else predictions.probabilities, on_fold=on_fold
        )
        doubtful = doubtful_labels(
            predictions.rows, probabilities, with_classifier=not was_trained_on_rows, which=which
        )
    rows, n = predictions.rows, len(predictions)
    advice = label_advice(doubtful.rows, rows)
    return LabelCheck(doubtful.rows, str(doubtful), n, n, rows.classes, rows=rows, advice=advice)


def check_of_own_rows(job: JobState) -> LabelCheck:
    """The result of a job that checked the rows of a visitor's own classifier."""
    return LabelCheck(**{**job.result, "doubtful": [DoubtfulRow(**row) for row in job.result["doubtful"]]})
