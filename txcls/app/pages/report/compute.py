"""The computations of the Report page: on test rows, cached for all sessions; on a visitor's own rows, not cached."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from txcls.app.jobs.own_files import KeptRows, guessed, read_table
from txcls.app.shell import checkpoints, own
from txcls.app.shell.cache import Source, cached
from txcls.app.shell.compute_queue import my_turn
from txcls.app.shell.limits import limits
from txcls.data.datasets import dataset_names, is_available, open_dataset
from txcls.data.hashes import normalised
from txcls.data.splits import training_and_validation
from txcls.data.types import LabelledTexts
from txcls.errors import DataError
from txcls.evaluation.baseline import BaselineAnswers, answer_with_baseline
from txcls.evaluation.label_errors import SuspectRow, corrected_table_csv, held_out_probabilities, suspect_rows
from txcls.evaluation.on_file import rows_of_file
from txcls.evaluation.report import Answers, Report, chosen_rows, report_on, some_rows, stored_report
from txcls.evaluation.scoring import as_plain_text

MOST_ROWS = 1_000
"""Most rows that are classified, a random choice if there are more."""
MOST_OWN_ROWS = 2_000
"""The same for test rows of a visitor's own classifier."""
MOST_LABELS = 10_000
"""Most rows of a visitor's own table whose labels are checked."""
MOST_TRAINING_ROWS = 20_000
"""Training rows that the linear baseline is fitted to at most."""
OWN_TABLE = "table"
"""The data set name of a classifier that was trained on a visitor's rows."""
OnRows = Callable[[int, int], object]


def _size_of_report(report: Report) -> int:
    answers = report.answers
    texts = 0 if answers is None else sum(4 * len(text) + 80 for text in answers.rows.texts)
    return texts + (0 if answers is None else answers.probabilities.nbytes) + 200_000


def stored(source: Source) -> Report:
    """The figures that the checkpoint's files hold."""
    return stored_report(checkpoints.classifier(source).checkpoint)


def on_test_rows(source: Source, *, on_rows: OnRows) -> Report:
    """Predictions for at most `MOST_ROWS` test rows; DataError if they are not on this machine."""

    @cached(heavy=True, size=_size_of_report)
    def report_on_test_rows(source: Source, most: int) -> Report:
        rows = checkpoints.test_texts(source).rows
        sample = some_rows(rows, most=most)
        description = f"{len(sample):,} test rows"
        if len(sample) < len(rows):
            description = f"{len(sample):,} of the {len(rows):,} test rows, drawn at random"
        return report_on(
            checkpoints.classifier(source), sample, rows_are=description, without_order=False, on_rows=on_rows
        )

    return report_on_test_rows(source, _most(source))


def _most(source: Source) -> int:
    return MOST_OWN_ROWS if checkpoints.has_kept_rows(source) else MOST_ROWS


def places(source: Source) -> list[int]:
    """For each row of `on_test_rows`, its number in the visitor's file; empty if that is not known."""
    known = own.kept(source.name).get("places", ())
    return [known[row] for row in chosen_rows(len(known), most=_most(source))]


@dataclass(frozen=True, eq=False)
class TableReport:
    """A report on an uploaded table.

    Attributes:
        report: predictions for its rows, and figures.
        notes: sentences on how the table was read.
        n_learned: number of classified rows that the classifier was trained on, as far as known.
    """

    report: Report
    notes: tuple[str, ...]
    n_learned: int


def on_own_table(source: Source, name: str, data: bytes, *, on_rows: OnRows) -> TableReport:
    """Predictions for the rows of an uploaded table, which is not stored.

    Raises:
        DataError: it cannot be read, has too many rows, or none whose label the classifier knows.
    """
    with my_turn():
        classifier = checkpoints.classifier(source)
        ending = (
            "".join(Path(name.lower()).suffixes[-2:]) if name.lower().endswith(".gz") else Path(name.lower()).suffix
        )
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"table{ending}"
            file.write_bytes(data)
            table = rows_of_file(classifier.checkpoint, file, name=name[-60:])
        if len(table.rows) > limits().rows:
            raise DataError(
                f"{len(table.rows):,} rows; this server accepts at most {limits().rows:,}: upload a part of them"
            )
        sample = some_rows(table.rows, most=MOST_ROWS)
        description = f"{len(sample):,} rows of {name[-60:]}"
        if len(sample) < len(table.rows):
            description = f"{len(sample):,} of the {len(table.rows):,} rows of {name[-60:]}, drawn at random"
        report = report_on(classifier, sample, rows_are=description, on_rows=on_rows)
        return TableReport(report, table.notes, _n_learned(source, sample))


def _n_learned(source: Source, rows: LabelledTexts) -> int:
    """Number of rows whose text a visitor's own classifier was trained on."""
    stored_rows = own.kept_rows(source.name)
    known = set() if stored_rows is None else {normalised(stored_rows.texts[row]) for row in stored_rows.learned}
    return sum(normalised(text) in known for text in rows.texts)


def why_no_rows(source: Source) -> str:
    """Why there are no test rows, and what is therefore not shown; "" if there are."""
    dataset = checkpoints.summary(source.name).dataset
    if checkpoints.has_kept_rows(source) or (dataset in dataset_names() and is_available(dataset)):
        return ""
    how = "" if dataset not in dataset_names() else f" (`python -m txcls data fetch {dataset}`)"
    return (
        "The test texts of this classifier are not on this machine, and checkpoints do not contain them, so this page "
        "shows only saved figures. Mistakes, doubtful labels and the linear baseline need the "
        f"texts{how}, or a table of your own above."
    )


def training_rows(source: Source) -> LabelledTexts:
    """The training rows of the checkpoint's data set, validation rows left out; DataError if they are not here."""
    if (stored_rows := own.kept_rows(source.name)) is not None:
        return _labelled(source, stored_rows, stored_rows.learned)
    if checkpoints.summary(source.name).dataset == OWN_TABLE:
        raise DataError("They are not on this server: a classifier from a zip file comes without its rows.")
    config = checkpoints.classifier(source).checkpoint.config.data
    return training_and_validation(open_dataset(config), config)[0]


def _labelled(source: Source, stored_rows: KeptRows, rows: Sequence[int]) -> LabelledTexts:
    """Stored rows as rows with the classifier's classes."""
    classes = checkpoints.classifier(source).classes
    index = {name: number for number, name in enumerate(classes)}
    known = [row for row in rows if stored_rows.labels[row] in index]
    return LabelledTexts(
        [stored_rows.texts[row] for row in known], [index[stored_rows.labels[row]] for row in known], classes
    )


@cached(heavy=True, size=lambda answers: 8 * len(answers.predicted) + 10_000)
def baseline(source: Source) -> BaselineAnswers:
    """The linear baseline on the rows of `on_test_rows`; DataError if the training rows are not on this machine."""
    answers = on_test_rows(source, on_rows=lambda done, total: None).answers
    assert answers is not None
    return answer_with_baseline(answers, training_rows(source), most=MOST_TRAINING_ROWS)


def suspects(answers: Answers, *, has_learned: bool, on_fold: OnRows) -> list[SuspectRow]:
    """The rows whose label looks wrong; ignores the classifier's predictions if it was trained on these rows.

    Raises:
        DataError: there are too few rows, or only one class.
    """
    with my_turn():
        own = None if has_learned else answers.probabilities
        return suspect_rows(answers.rows, held_out_probabilities(answers.rows, own, on_fold=on_fold))


@dataclass(frozen=True, eq=False)
class LabelCheck:
    """Rows of a visitor's own table whose label looks wrong.

    Attributes:
        suspects: the most probable first; their `row` is an index of `rows`.
        rows: the rows that were checked.
        places: the number of each in the visitor's file; empty for a data set of the package.
        total: number of rows of the table.
        spec: names the visitor's table and its columns; no file for a data set of the package.
    """

    suspects: list[SuspectRow]
    rows: LabelledTexts
    places: Sequence[int]
    total: int
    spec: Mapping[str, Any]

    @property
    def file_name(self) -> str:
        """The table's name in the visitor's words; "" for a data set of the package."""
        return str(self.spec.get("names", {}).get(self.spec.get("file", ""), ""))


def own_suspects(source: Source, *, on_fold: OnRows) -> LabelCheck:
    """Check the labels of all rows of the table of a visitor's own classifier, training rows included.

    The classifier's predictions are not used, since it was trained on most of these labels.

    Raises:
        DataError: the rows are not here, too few, or of one class.
    """
    stored_rows = own.kept_rows(source.name)
    if stored_rows is None:
        raise DataError("The rows that this classifier was trained on are no longer on this server.")
    with my_turn():
        classes = set(checkpoints.classifier(source).classes)
        known = [row for row, label in enumerate(stored_rows.labels) if label in classes]
        checked = [known[row] for row in chosen_rows(len(known), most=MOST_LABELS)]
        rows = _labelled(source, stored_rows, checked)
        suspect_list = suspect_rows(rows, held_out_probabilities(rows, on_fold=on_fold))
    places = [stored_rows.places[row] for row in checked] if stored_rows.places else []
    return LabelCheck(suspect_list, rows, places, len(stored_rows.texts), stored_rows.spec)


def corrected_table(
    desk: Path, spec: Mapping[str, Any], corrections: Mapping[int, str], *, spreadsheet_safe: bool = True
) -> bytes:
    """The visitor's whole table, all its columns, with some labels replaced by the row's number in the file, as CSV.

    Args:
        desk: the visitor's folder.
        spec: names the table and its columns, as `LabelCheck.spec` does.
        corrections: the new label of some rows; "" drops the row.
        spreadsheet_safe: put an apostrophe before cells that a spreadsheet would run as formulas.

    Raises:
        DataError: the table is no longer here, or cannot be read any more.
    """
    table = read_table(desk, spec)
    column = guessed(table, spec).label_column
    plain = as_plain_text if spreadsheet_safe else str
    text = corrected_table_csv(table, corrections, label_column=column, plain=plain)
    return text.encode("utf-8-sig", "backslashreplace")
